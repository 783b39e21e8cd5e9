"""Cells with tests of their own, and cells whose surrogate is searched for."""

import pytest

from twoscale.errors import TwoscaleError
from twoscale.run import Run
from twoscale_lab.study.catalogue import load_study, parse_study
from twoscale_lab.study.cells import Case
from twoscale_lab.study.datasets import generation_seconds
from twoscale_lab.study.folder import StudyFolder
from twoscale_lab.study.quantities import quantity
from twoscale_lab.study.runner import run_study

TEXT = """
title: Tests of their own
question: Are cells tested on the right fields?
seeds: [0]
problem: cno-poisson
resolution: 12
protocol:
  problems: {cno-poisson: {waves: 3}}
  tests: {samples: 8, outside: {cno-poisson: {waves: 5}}}
  settings: {search: {budget: 1}}
cases:
  - {method: search, training: 30}
  - method: global
    training: 30
    settings: {predictor: affine, objective: field, input_variance: 1.0, output_variance: 0.999999}
"""


def study(text=TEXT):
    return parse_study(text, name="tests")


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished study; tests must not write to it."""
    out = tmp_path_factory.mktemp("study")
    return out, run_study(study(), out, device="cpu").record["cells"]


def test_cells_are_fitted_on_all_training_fields_and_tested_on_others(done):
    out, cells = done
    assert [cell["case"].split()[1] for cell in cells] == ["search", "global"]
    for cell, planned in zip(cells, study().cells(), strict=True):
        run = Run.open(out / "cells" / cell["key"], device="cpu")
        assert run.dataset.samples == cell["training"] == 30
        assert len(run.split.training) + len(run.split.validation) == 30
        assert (run.test_dataset.samples, cell["metrics"]["samples"]) == (8, 8)
        assert run.test_dataset.problem.waves == 3
        assert cell["tests"] == [data.name for data in planned.tests]


def test_validation_fields_are_the_same_for_all_methods_and_measured(done):
    out, cells = done
    runs = [Run.open(out / "cells" / cell["key"], device="cpu") for cell in cells]
    assert runs[0].split.validation.tolist() == runs[1].split.validation.tolist()
    for cell, run in zip(cells, runs, strict=True):
        again = run.evaluate(run.dataset, samples=run.split.validation.tolist())
        for name in ("mean_relative_l2", "median_relative_l1"):
            found = quantity(cell, f"validation.{name}")
            assert found == pytest.approx(again[name], rel=1e-6)
    searched = runs[0].search
    assert quantity(cells[0], "validation.mean_relative_l2") == pytest.approx(
        searched["trials"][searched["chosen"]]["error"], rel=1e-6
    )


def test_an_affine_map_knows_the_modes_it_saw_and_no_others(done):
    _, (_, affine) = done
    assert quantity(affine, "mean_relative_l2") < 1e-3
    assert quantity(affine, "outside.mean_relative_l2") > 0.1
    assert quantity(affine, "outside.median_relative_l1") > 0.1


def test_seconds_of_data_fit_and_prediction_are_recorded(done):
    out, (searched, affine) = done
    data = study().cells()[0].data
    for cell in (searched, affine):
        assert quantity(cell, "data_seconds") == generation_seconds(StudyFolder(out), data) > 0
        assert quantity(cell, "field_seconds") > 0
    assert quantity(searched, "fit_seconds") == searched["found"]["seconds"]
    assert searched["found"]["trials"] >= 1
    timings = affine["metrics"]["timings"]
    assert quantity(affine, "fit_seconds") == timings["total"] - timings["inference"]


def test_finished_cells_are_not_run_again(done):
    out, cells = done
    outcome = run_study(study(), out, device="cpu")
    assert not outcome.plan.groups
    assert outcome.record["cells"] == cells


def test_parameters_and_tests_are_part_of_a_cell():
    one, other = (study(TEXT.replace("waves: 3", f"waves: {waves}")).cells()[0] for waves in (3, 4))
    assert one.key != other.key
    assert one.data.name == "cno-poisson-12-30-0-waves=3"
    assert one.data.make_problem().waves == 3
    assert [data.seed for data in one.tests] == [1, 1]
    assert one.key != study(TEXT.replace("samples: 8", "samples: 9")).cells()[0].key


def test_a_case_is_named_by_its_number_of_training_fields():
    cell = study().cells()[0]
    assert cell.case.id == "cno-poisson-12 search training=30"
    assert cell.settings == {"budget": 1.0}
    with pytest.raises(TwoscaleError, match="say how many fields train each case"):
        study(TEXT.replace("search, training: 30", "search"))
    with pytest.raises(TwoscaleError, match="tests of its own has no fine-tuning"):
        study(TEXT.replace("method: global\n", "method: global\n    objective: A1\n"))


def test_a_search_has_a_budget_and_nothing_else():
    case = Case(problem="darcy", resolution=16, method="search", settings={"budget": "1min"})
    assert case.id == "darcy-16 search budget=60.0"
    with pytest.raises(TwoscaleError, match="the setting budget only, got 'epochs'"):
        Case(problem="darcy", resolution=16, method="search", settings={"epochs": 3})


def test_the_small_leaderboard_has_a_schedule_of_its_own():
    board = load_study("leaderboard")
    small, paper = board.at("small").cells(), board.cells()
    assert len(small) == len(paper) / 2  # one seed instead of two
    epochs = {cell.settings.get("epochs") for cell in small}
    assert max(value for value in epochs if isinstance(value, int)) <= 3
    assert not any("epochs=" in cell.case.id for cell in small)


def test_a_tiny_version_of_a_benchmark_runs(tmp_path):
    only = ["navier-stokes-16 two-scale *predictor=kernel* training=24"]
    board = load_study("leaderboard")
    (cell,) = run_study(board, tmp_path, scale="small", only=only, device="cpu").record["cells"]
    assert 0 < quantity(cell, "mean_relative_l2") < 1
    assert quantity(cell, "outside.mean_relative_l2") is None
