import re

import numpy as np
import pytest

from tests.data.tools import edit_description, shard_file
from twoscale.data import Dataset, check_dataset, description, generate, import_fields
from twoscale.problems import Darcy, Poisson


def _levels(dataset):
    return {finding.text: finding.level for finding in check_dataset(dataset)}


def _import(tmp_path, x, u, **options):
    np.savez(tmp_path / "f.npz", x=x, u=u)
    return import_fields([tmp_path / "f.npz"], tmp_path / "d", inputs="x", outputs="u", **options)


def _only(levels, level):
    return [message for message, found in levels.items() if found == level]


def test_generated_data_is_fine(tmp_path):
    dataset = generate(Poisson(), tmp_path / "d", resolution=16, samples=60)
    levels = _levels(dataset)
    assert set(levels.values()) == {"ok", "note"}
    assert len(_only(levels, "note")) == 1  # that the outputs are zero at the boundary
    assert any("outputs solve poisson" in message for message in levels)


def test_repeated_and_constant_fields_are_warned_of(tmp_path):
    rng = np.random.default_rng(0)
    x, u = rng.standard_normal((2, 12, 8, 8))
    x[5] = x[2]
    u[7] = 3.0
    warnings = _only(_levels(_import(tmp_path, x, u)), "warning")
    assert any("repetitions" in w and "1 sample (5)" in w for w in warnings)
    assert any("output: constant fields in 1 sample (7)" in w for w in warnings)


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_lost_file_is_an_error_of_all_its_chunks(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(description, "_CHUNK_BYTES", 4 * 16 * 16 * 4)
    dataset = generate(Poisson(), tmp_path / "d", resolution=16, samples=12)
    file = shard_file(dataset.path, "input")
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    errors = _only(_levels(Dataset(dataset.path)), "error")
    assert any("input 0 to 3, input 4 to 7" in error for error in errors)


def test_an_unknown_problem_is_warned_of(tmp_path):
    dataset = generate(Poisson(), tmp_path / "d", resolution=16, samples=4)
    edit_description(dataset.path, lambda attributes: attributes["problem"].update(name="stokes"))
    levels = _levels(Dataset(dataset.path))
    warning, _ = _only(levels, "warning")  # and that there are few samples
    assert "'stokes' is not known here" in warning
    assert _only(levels, "error") == []


def test_an_input_without_a_solution_is_an_error(tmp_path):
    """Darcy's permeability must be positive."""
    x = np.full((3, 8, 8), -1.0)
    levels = _levels(_import(tmp_path, x, np.ones((3, 8, 8)), problem=Darcy()))
    assert any("do not solve darcy" in error for error in _only(levels, "error"))


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (1e5, "input: the fields vary by about 1e-5 of their mean only, .* about 2 digits:"),
        (-1e7, "input: the fields vary by about 1e-7 of their mean only, .* about 0 digits:"),
        (1e12, "input: the fields are all the same in single precision"),
        (1e3, None),
        (0.0, None),
    ],
)
def test_variation_lost_in_an_offset_is_warned_of(tmp_path, offset, words):
    x, u = np.random.default_rng(0).standard_normal((2, 12, 8, 8))
    dataset = _import(tmp_path, offset + x, u)
    found = [w for w in _only(_levels(dataset), "warning") if ": the fields" in w]
    assert len(found) == (words is not None)
    if words:
        assert re.match(words, found[0])


def _stack(tmp_path, **options):
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((12, 8, 8)) for name in "xyu"}
    arrays |= {"p": np.arange(12.0), "q": np.full(12, 2.5), "r": np.arange(12) // 2}
    arrays |= {"flat": np.full((12, 8, 8), 3.0), "hot": 1e6 * arrays["x"]}
    arrays |= {"last": rng.standard_normal((12, 8, 8, 2))}
    np.savez(tmp_path / "f.npz", **arrays)
    return _levels(import_fields([tmp_path / "f.npz"], tmp_path / "d", outputs="u", **options))


def test_findings_are_per_channel(tmp_path):
    levels = _stack(tmp_path, inputs=["x", "flat", "hot"])
    assert _only(levels, "error") == []
    warning, _ = _only(levels, "warning")  # and that there are few samples
    assert warning.startswith("input 'flat': the fields are all the same in single precision")
    fine = _only(levels, "ok")
    assert "input 'flat': all values finite, from 3 to 3" in fine
    assert any(re.match(r"input 'x': all values finite, from -\d.* to \d", one) for one in fine)
    assert any(one.startswith("output: all values finite") for one in fine)
    apart = r"input '(x|flat)' has values up to 3e\+00, input 'hot' up to \de\+06: nothing to do"
    assert any(re.match(apart, one) for one in _only(levels, "note"))
    assert "12 pairs of 3x8x8 fields to 8x8 fields, float32" in fine


def test_parameters_are_checked(tmp_path):
    levels = _stack(tmp_path, parameters=["p", "q"])
    warning, _ = _only(levels, "warning")
    assert warning.startswith("parameter 'q': the values are all the same in single precision")
    fine = _only(levels, "ok")
    assert "parameter 'p': all values finite, from 0 to 11" in fine
    assert "input: no parameter set occurs twice" in fine
    assert "12 pairs of 2 parameters to 8x8 fields, float32" in fine


def test_repetitions_are_of_fields_and_parameters_together(tmp_path):
    warning, *_ = _only(_stack(tmp_path, parameters="r"), "warning")
    assert "repetitions of earlier parameter sets in 6 samples (1, 3, 5, 7, 9 and 1" in warning
    both = _only(_stack(tmp_path, inputs="x", parameters="r", overwrite=True), "warning")
    assert not [one for one in both if "repetitions" in one]
    _, warning, *_ = _only(_stack(tmp_path, inputs="flat", overwrite=True), "warning")
    assert "repetitions of earlier fields in 11 samples" in warning


def test_channels_that_may_be_last_are_pointed_out(tmp_path):
    levels = _stack(tmp_path, inputs="last", axes="nhw,nchw")
    assert not [one for one in _only(levels, "warning") if "8 channels" in one]  # as was asked for
    dataset = Dataset(tmp_path / "d")
    dataset.metadata["reading"]["axes"] = None
    warnings = _only(_levels(dataset), "warning")
    assert [one for one in warnings if one.startswith("input: 8 channels on 8x2 nodes: if the")]
