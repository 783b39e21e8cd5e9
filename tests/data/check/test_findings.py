"""Each finding on data that were made to have it, and on data that were not."""

import re

import numpy as np
import pytest

from tests.data.tools import edit_description, shard_file
from twoscale.data import Dataset, check_dataset, description, generate, import_fields
from twoscale.data.check.fingerprints import close_pairs
from twoscale.problems import Darcy, Poisson

SIDE, COUNT = 20, 120
LEVELS = ["ok", "note", "warning", "error"]


def texts(dataset, level):
    """Return the findings of one level in words."""
    return [one.text for one in check_dataset(dataset) if one.level == level]


@pytest.fixture(scope="module")
def darcy(tmp_path_factory):
    """Coefficients and solutions of a problem with all symmetries of the square."""
    folder = tmp_path_factory.mktemp("darcy")
    dataset = generate(Darcy(), folder / "d", resolution=SIDE, samples=COUNT)
    return tuple(dataset.read(name, 0, COUNT) for name in ("input", "output"))


@pytest.fixture
def findings(tmp_path):
    """Import arrays and return the findings by their codes; of several, the worst."""

    def found(x, u, parameters=None, **options):
        arrays = {"x": x, "u": u} | ({} if parameters is None else {"p": parameters})
        np.savez(tmp_path / "f.npz", **arrays)
        keys = {"inputs": "x", "outputs": "u", "parameters": None if parameters is None else "p"}
        data = import_fields(
            [tmp_path / "f.npz"], tmp_path / "d", overwrite=True, **keys, **options
        )
        every = sorted(check_dataset(data), key=lambda one: LEVELS.index(one.level))
        return {one.code: one for one in every}

    return found


def waves(count=COUNT, side=32, *, end=False, seed=0):
    """Fields that are periodic along both axes, with phases at random; the last node is extra."""
    rng = np.random.default_rng(seed)
    nodes = np.arange(side + end) / side
    rows, columns = rng.uniform(0, 2 * np.pi, (2, count, 1, 1))
    sizes = rng.standard_normal((count, 1, 1))
    return sizes * np.sin(2 * np.pi * nodes[:, None] + rows) * np.cos(4 * np.pi * nodes + columns)


def test_sound_fields_cause_no_warning(findings, darcy, tmp_path):
    levels = {one.level for one in findings(*darcy).values()}
    assert levels == {"ok", "note"}
    generated = generate(Poisson(), tmp_path / "p", resolution=16, samples=60)
    assert any("outputs solve poisson" in one for one in texts(generated, "ok"))
    assert len(texts(generated, "note")) == 1  # that the outputs are zero at the boundary
    assert texts(generated, "warning") == texts(generated, "error") == []


# Values


def test_a_positive_coefficient_over_magnitudes_wants_a_logarithm(findings, darcy):
    x, u = darcy
    fields = np.exp(2 * waves(side=SIDE))
    finding = findings(fields, u)["logarithm"]
    assert finding.level == "warning"
    assert "positive values over" in finding.message
    assert "fit with input_transform=log" in finding.advice
    two_levels = np.where(x > x.mean(), 1.0, 1e-3)
    for plain in (
        np.log(fields),
        x,
        two_levels,
        np.random.default_rng(0).uniform(1e-4, 1, x.shape),
    ):
        assert "logarithm" not in findings(plain, u)
    assert "logarithm" not in findings(x, fields)  # outputs are what they are
    p = np.exp(3 * np.random.default_rng(0).standard_normal(COUNT))
    assert "parameter" in findings(x, u, parameters=p)["logarithm"].message


def test_nodes_that_never_change(findings, darcy):
    x, u = darcy
    masked = x.copy()
    masked[:, 5:8, 5:8] = 4.0
    finding = findings(masked, u)["constant_nodes"]
    assert "input: 9 nodes inside (2.8 %) are the same in all samples" in finding.message
    assert "constant_nodes" not in findings(x, u)


def test_outputs_at_the_boundary(findings, darcy):
    x, u = darcy
    assert "boundary are zero" in findings(x, u)["boundary"].message
    assert "the same in all samples" in findings(x, u + 1)["boundary"].message
    assert findings(x, x)["boundary"].message == "output: values at the boundary are free"
    assert "boundary" not in findings(waves(), waves(), periodic=(True, True))


# Samples


def test_too_few_samples_for_the_variety(findings):
    rough = np.random.default_rng(0).standard_normal((40, 8, 8))
    finding = findings(rough, rough)["samples"]
    assert finding.level == "warning"
    assert "numbers hold 99 % of the outputs' variance, and 32 samples train" in finding.message
    assert findings(waves(), waves())["samples"].level == "ok"
    assert findings(waves(), waves())["samples"].message.startswith("4 numbers hold 99 %")


def test_repetitions_exact_and_rounded(findings, darcy):
    x, u = (fields.copy() for fields in darcy)
    x[5], u[5] = x[100], u[100]
    x[7] = x[8] * (1 + 2e-7)
    found = findings(x, u)
    assert found["duplicates"].message.endswith("in 1 sample (100)")
    assert found["near_duplicates"].message.endswith("in 1 sample (8)")
    assert "contradictions" not in found
    u[5] += 1
    assert "1 sample (100)" in findings(x, u)["contradictions"].message


def test_leakage_within_the_usual_split(findings, darcy):
    x, u = (fields.copy() for fields in darcy)
    order = np.random.default_rng(0).permutation(COUNT)
    training, test = order[0], order[-1]
    x[test], u[test] = x[training], u[training]
    assert f"1 test sample ({test})" in findings(x, u)["leakage"].message
    x[test], u[test] = darcy[0][test], darcy[1][test]
    x[order[1]] = x[training]
    assert "leakage" not in findings(x, u)


def test_leakage_between_two_datasets(tmp_path, darcy):
    x, u = darcy
    sets = []
    for name, part in (("a", slice(0, 60)), ("b", slice(60, 120)), ("c", slice(57, 90))):
        fields = x[part] * (1 + 1e-7 * (name == "c"))
        np.savez(tmp_path / "f.npz", x=fields, u=u[part])
        sets.append(import_fields([tmp_path / "f.npz"], tmp_path / name, inputs="x", outputs="u"))
    *_, fine = check_dataset(sets[0], test=sets[1])
    assert (fine.level, fine.code) == ("ok", "leakage")
    *_, leaked = check_dataset(sets[0], test=sets[2])
    assert leaked.level == "warning"
    assert "3 test samples (0, 1, 2)" in leaked.message
    other = generate(Poisson(), tmp_path / "p", resolution=8, samples=4)
    *_, wrong = check_dataset(sets[0], test=other)
    assert (wrong.level, wrong.code) == ("error", "test_set")


def test_close_points_are_found_among_many():
    points = np.random.default_rng(0).standard_normal((5000, 4))
    points[4000] = points[17] + 1e-8
    assert sorted(close_pairs(points)[0].tolist()) == [17, 4000]
    assert len(close_pairs(points)) == 1
    assert len(close_pairs(points[:1])) == len(close_pairs(np.ones((5, 4)))) == 0


def test_steps_of_a_simulation_are_no_independent_samples(findings):
    times = np.linspace(0, 1, COUNT)[:, None, None]
    nodes = np.linspace(0, 1, SIDE)
    steps = np.sin(3 * times + 4 * nodes[:, None]) * np.cos(times - nodes)
    assert findings(steps, steps**2)["ordered_samples"].level == "warning"
    shuffled = np.random.default_rng(0).permutation(steps)
    assert "ordered_samples" not in findings(shuffled, shuffled**2)


# Axes


def test_samples_that_come_last(findings, darcy):
    found = findings(*(np.moveaxis(fields, 0, -1) for fields in darcy), axes="nhw")
    assert "numpy.moveaxis(fields, -1, 0)" in found["samples_last"].advice
    rough = np.random.default_rng(0).standard_normal((30, 12, 12))
    assert "samples_last" not in findings(rough, rough)


def test_outputs_that_are_transposed(findings, darcy):
    x, u = darcy
    assert "swapaxes" in findings(x, u.swapaxes(1, 2))["transposed"].advice
    assert "swapaxes" in findings(x[:, :12], u.swapaxes(1, 2)[:, :, :12])["transposed"].advice
    assert "transposed" not in findings(x, u)
    assert "transposed" not in findings(waves(), np.roll(waves(), 5, 1))


def test_channels_that_were_read_as_rows(findings):
    lines = np.random.default_rng(0).standard_normal((12, 3, 64))
    assert "fields[:, :, None]" in findings(lines, lines[:, 0])["channels_as_rows"].advice


def test_axes_that_look_periodic(findings, darcy):
    x = waves()
    assert findings(x, x)["periodic"].level == "note"
    assert "periodic" not in findings(x, x, periodic=(True, True))
    assert "periodic" not in findings(*darcy)
    wrong = findings(*darcy, periodic=(True, False))["periodic"]
    assert wrong.level == "warning"
    assert "rows are declared periodic, but fields have a kink" in wrong.message
    rough = np.random.default_rng(0).standard_normal((30, 12, 12))
    for axes in ((True, True), (False, False)):
        assert "periodic" not in findings(rough, rough, periodic=axes)


def test_a_last_node_that_repeats_the_first(findings):
    x = waves(end=True)
    assert "fields[..., :-1]" in findings(x, x)["periodic_end"].advice
    assert "periodic_end" not in findings(x[:, :-1, :-1], x[:, :-1, :-1])
    flat = np.repeat(x[:, :, :1], 32, axis=2)[:, :-1]
    assert "periodic_end" not in findings(flat, flat)


# Symmetries


def test_symmetries_that_the_data_allow(findings, darcy):
    x, u = darcy
    assert "symmetries=square" in findings(x, u)["symmetries"].advice
    narrow = x[:, :16]
    assert "symmetries=mirrors" in findings(narrow, narrow)["symmetries"].advice
    slope = np.linspace(1, 2, SIDE)
    assert (
        "symmetries=transpose" in findings(x, u * np.add.outer(slope, slope))["symmetries"].advice
    )
    finding = findings(x, u * np.add.outer(slope, slope**2))["symmetries"]
    assert finding.level == "ok"
    assert (
        finding.message
        == "not symmetric under half turns: the mean or the variance of output changes"
    )
    assert "symmetries" not in findings(x[:20], u[:20])


def test_shifts_along_periodic_axes(findings):
    x = waves()
    assert "symmetries=shifts" in findings(x, x, periodic=(True, True))["symmetries"].advice
    x = waves(400)
    slope = x * np.linspace(1, 4, 32)[:, None]
    found = findings(x, slope, periodic=(True, True))["symmetries"]
    assert "shifts" not in found.text


def test_shifts_that_only_the_map_does_not_have(findings):
    """Means and variances stay the same; the solution is that of a flow which is faster inside."""
    x = waves(400)
    inside = np.cos(2 * np.pi * np.arange(32) / 32)
    u = np.where(inside[:, None] > 0, np.roll(x, 4, axis=2), x)
    assert "shifts" not in findings(x, u, periodic=(True, True))["symmetries"].text


def test_a_declared_symmetry_that_the_data_contradict(tmp_path):
    dataset = generate(Poisson(), tmp_path / "p", resolution=12, samples=200)
    x, u = (dataset.read(name, 0, 200).copy() for name in ("input", "output"))
    x[:, :6] *= 2
    np.savez(tmp_path / "f.npz", x=x, u=u)
    data = import_fields([tmp_path / "f.npz"], tmp_path / "d", inputs="x", outputs="u")
    problem = {"name": "poisson", "parameters": {}}
    edit_description(data.path, lambda attributes: attributes.update(problem=problem))
    (finding,) = [one for one in check_dataset(Dataset(data.path)) if one.code == "symmetries"]
    assert finding.level == "warning"
    assert "but the mean or the variance of input changes" in finding.message


def test_findings_do_not_depend_on_the_chunks(tmp_path, darcy, monkeypatch):
    x, u = darcy
    np.savez(tmp_path / "f.npz", x=x, u=u)
    found = []
    for name, size in (("a", 2**22), ("b", 4 * SIDE * SIDE * 7)):
        monkeypatch.setattr(description, "_CHUNK_BYTES", size)
        data = import_fields([tmp_path / "f.npz"], tmp_path / name, inputs="x", outputs="u")
        found.append([one.text for one in check_dataset(data)])
    assert found[0] == found[1]


# Storage, problems, channels


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_lost_file_is_an_error_of_all_its_chunks(tmp_path, monkeypatch, damage):
    monkeypatch.setattr(description, "_CHUNK_BYTES", 4 * 16 * 16 * 4)
    dataset = generate(Poisson(), tmp_path / "d", resolution=16, samples=12)
    file = shard_file(dataset.path, "input")
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage)
    errors = texts(Dataset(dataset.path), "error")
    assert any("input 0 to 3, input 4 to 7" in error for error in errors)


def test_an_unknown_problem_is_warned_of(tmp_path):
    dataset = generate(Poisson(), tmp_path / "d", resolution=16, samples=4)
    edit_description(dataset.path, lambda attributes: attributes["problem"].update(name="stokes"))
    warning, _ = texts(Dataset(dataset.path), "warning")  # and that there are few samples
    assert "'stokes' is not known here" in warning
    assert texts(Dataset(dataset.path), "error") == []


def test_an_input_without_a_solution_is_an_error(findings):
    """Darcy's permeability must be positive."""
    found = findings(np.full((3, 8, 8), -1.0), np.ones((3, 8, 8)), problem=Darcy())
    assert "do not solve darcy" in found["solution"].message


@pytest.mark.parametrize(
    ("offset", "words"),
    [
        (1e5, "input: the fields vary by about 1e-5 of their mean only, .* about 2 digits"),
        (-1e7, "input: the fields vary by about 1e-7 of their mean only, .* about 0 digits"),
        (1e12, "input: the fields are all the same in single precision"),
        (1e3, None),
        (0.0, None),
    ],
)
def test_variation_lost_in_an_offset_is_warned_of(findings, offset, words):
    x, u = np.random.default_rng(0).standard_normal((2, 12, 8, 8))
    found = findings(offset + x, u)
    assert ("precision" in found) == (words is not None)
    if words:
        assert re.match(words, found["precision"].message)


def test_constant_fields_are_warned_of(findings):
    x, u = np.random.default_rng(0).standard_normal((2, 12, 8, 8))
    u[7] = 3.0
    found = findings(x, u)["constant_fields"]
    assert found.message == "output: constant fields in 1 sample (7)"


@pytest.fixture
def stacked(tmp_path):
    """Import some of several arrays; return the texts of the findings of each level."""
    rng = np.random.default_rng(0)
    arrays = {name: rng.standard_normal((12, 8, 8)) for name in "xyu"}
    arrays |= {"p": np.arange(12.0), "q": np.full(12, 2.5), "r": np.arange(12) // 2}
    arrays |= {"flat": np.full((12, 8, 8), 3.0), "hot": 1e6 * arrays["x"]}
    arrays |= {"last": rng.standard_normal((12, 8, 8, 2))}
    np.savez(tmp_path / "f.npz", **arrays)

    def found(**options):
        options |= {"outputs": "u", "overwrite": True}
        data = import_fields(tmp_path / "f.npz", tmp_path / "d", **options)
        return {level: texts(data, level) for level in LEVELS}

    return found


def test_findings_are_per_channel(stacked):
    found = stacked(inputs=["x", "flat", "hot"])
    assert found["error"] == []
    warning, _ = found["warning"]  # and that there are few samples
    assert warning.startswith("input 'flat': the fields are all the same in single precision")
    fine = found["ok"]
    assert "input 'flat': all values finite, from 3 to 3" in fine
    assert any(re.match(r"input 'x': all values finite, from -\d.* to \d", one) for one in fine)
    assert any(one.startswith("output: all values finite") for one in fine)
    apart = r"input '(x|flat)' has values up to 3e\+00, input 'hot' up to \de\+06: nothing to do"
    assert any(re.match(apart, one) for one in found["note"])
    assert "12 pairs of 3x8x8 fields to 8x8 fields, float32" in fine


def test_parameters_are_checked(stacked):
    found = stacked(parameters=["p", "q"])
    warning, _ = found["warning"]
    assert warning.startswith("parameter 'q': the values are all the same in single precision")
    fine = found["ok"]
    assert "parameter 'p': all values finite, from 0 to 11" in fine
    assert "input: no parameter set occurs twice" in fine
    assert "12 pairs of 2 parameters to 8x8 fields, float32" in fine


def test_repetitions_are_of_fields_and_parameters_together(stacked):
    warning, *_ = stacked(parameters="r")["warning"]
    assert "repetitions of earlier parameter sets in 6 samples (1, 3, 5, 7, 9 and 1" in warning
    both = stacked(inputs="x", parameters="r")["warning"]
    assert not [one for one in both if "repetitions" in one]
    _, warning, *_ = stacked(inputs="flat")["warning"]
    assert "repetitions of earlier fields in 11 samples" in warning


def test_channels_that_may_be_last_are_pointed_out(stacked, tmp_path):
    warnings = stacked(inputs="last", axes="nhw,nchw")["warning"]
    assert not [one for one in warnings if "8 channels" in one]  # as was asked for
    dataset = Dataset(tmp_path / "d")
    dataset.metadata["reading"]["axes"] = None
    warnings = texts(dataset, "warning")
    assert [one for one in warnings if one.startswith("input: 8 channels on 8x2 nodes")]
