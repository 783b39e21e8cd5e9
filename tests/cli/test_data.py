"""The commands that make datasets and look at them."""

import json

import numpy as np
import pytest

from tests.cli.outcome import refused
from twoscale.data import Dataset
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space


@pytest.fixture
def arrays(tmp_path):
    """A file of inputs, outputs on another grid, and parameters."""
    rng = np.random.default_rng(0)
    held = {
        "vx": rng.standard_normal((11, 8, 9)),
        "vy": rng.standard_normal((11, 8, 9)),
        "p": rng.standard_normal((11, 5, 6)),
        "nu": rng.random(11),
        "last": rng.standard_normal((11, 8, 9, 2)),
        "line": rng.standard_normal((11, 12)),
    }
    np.savez(tmp_path / "f.npz", **held)
    return tmp_path / "f.npz"


def test_import_of_channels_parameters_and_periodic_axes(twoscale, arrays, tmp_path):
    given = ("--input", "vx,vy", "--parameters", "nu", "--output", "p", "--periodic", "columns")
    outcome = twoscale("import", arrays, *given, "--out", tmp_path / "d")
    assert outcome.status == 0
    assert "11 pairs of 2x8x9p fields and 1 parameter to 5x6p fields in" in outcome.out
    dataset = Dataset(tmp_path / "d")
    assert dataset.input_space == Space(
        Grid((8, 9), periodic=(False, True)), 2, names=("vx", "vy", "nu"), parameters=1
    )
    assert dataset.output_space == Space(Grid((5, 6), periodic=(False, True)), names=("p",))
    checked = json.loads(twoscale("check", tmp_path / "d", "--json").out)["findings"]
    assert {one["level"] for one in checked if one["code"] != "samples"} == {"ok"}
    assert any(finding["message"].startswith("parameter 'nu'") for finding in checked)


def test_channels_that_may_be_last_are_asked_about(twoscale, arrays, tmp_path):
    command = ("import", arrays, "--input", "last", "--output", "p", "--out", tmp_path / "d")
    refused(twoscale(*command), "8 channels of 9x2", "(axes nhw,nhwc)")
    assert not (tmp_path / "d").exists()
    assert twoscale(*command, "--axes", "nhwc").status == 0
    assert Dataset(tmp_path / "d").input_space.shape == (2, 8, 9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--output", "p"), ("it holds vx (11, 8, 9), vy",)),
        (("--input", "vx", "--output", "p,"), ("like a or a,b", "p,")),
        (("--input", "vx", "--output", "p", "--periodic", "x"), ("none, rows, columns, both",)),
        (("--input", "nu", "--output", "p"), ("as 'parameters'",)),
        (("--parameters", "vx", "--output", "p"), ("(samples, parameters)", "(11, 8, 9)")),
    ],
)
def test_imports_that_are_refused(twoscale, arrays, tmp_path, options, words):
    refused(twoscale("import", arrays, *options, "--out", tmp_path / "d"), *words)
    assert list(tmp_path.iterdir()) == [arrays]


def test_parameters_of_a_problem_are_stored_with_its_data(twoscale, tmp_path):
    made = ("--resolution", 9, "--samples", 4, "--device", "cpu", "--out", tmp_path / "d")
    outcome = twoscale("generate", "darcy", "--set", "high=100", "--set", "medium.alpha=3", *made)
    assert outcome.status == 0
    problem = Dataset(tmp_path / "d").problem
    assert (problem.high, problem.medium.alpha) == (100.0, 3.0)
    assert twoscale("check", tmp_path / "d").status == 0
