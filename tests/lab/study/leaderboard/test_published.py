"""Errors that others published: complete, with sources, one for each benchmark of the study."""

import pytest

from twoscale.problems import make_problem
from twoscale_lab.study.catalogue import load_study
from twoscale_lab.study.leaderboard.board import STUDY, Leaderboard, leaderboard


def test_the_study_measures_every_benchmark_by_every_method():
    cells = load_study(STUDY).cells()
    for benchmark in leaderboard().benchmarks:
        place = (benchmark.problem, benchmark.resolution, benchmark.training)
        here = [
            cell
            for cell in cells
            if (cell.case.problem, cell.case.resolution, cell.training) == place
        ]
        names = sorted(cell.case.settings.get("predictor") or cell.case.method for cell in here)
        ours = ["search", "whole-field", "kernel", "affine", "fno"]
        ours += ["filter"] if benchmark.problem.startswith("cno-") else []
        assert names == sorted(2 * ours)
        assert {cell.seed for cell in here} == {0, 1}
        outside = benchmark.quantity.startswith("outside.")
        assert all(len(cell.tests) == 2 for cell in here) or not outside
        make_problem(benchmark.problem).grid(benchmark.resolution, benchmark.resolution)


def test_a_benchmark_has_its_best_error_its_fno_and_its_caveats():
    darcy = next(one for one in leaderboard().benchmarks if one.problem == "darcy-fno")
    assert (darcy.best.method, darcy.best.percent) == ("MgFNO", "0.28")
    assert darcy.rival.error == pytest.approx(0.0108)
    assert darcy.caveats == ["MgFNO: measured by its authors' own script"]
    assert "85²" in darcy.name
    fine = next(one for one in leaderboard().benchmarks if one.resolution == 421)
    assert (fine.best, fine.rival, fine.caveats) == (None, None, [])


def test_every_source_is_used_and_an_unknown_one_is_refused():
    board = leaderboard()
    used = {one.source for benchmark in board.benchmarks for one in benchmark.published}
    assert used == set(board.sources)
    assert board.sources["li2021"].words.endswith("Parametric Partial Differential Equations")
    with pytest.raises(ValueError, match="no source is called 'li2021'"):
        Leaderboard(sources={}, benchmarks=board.benchmarks[7:8])
