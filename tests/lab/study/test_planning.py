"""What is left to do, and in which order."""

import pytest

from tests.lab.study.tiny import TEXT, tiny_study
from twoscale_lab.study.folder import StudyFolder
from twoscale_lab.study.planning import make_plan

MORE = """cases:
  - {method: fno, settings: {modes: 4, epochs: 1}}
  - {method: local, problem: [poisson, darcy], training: [40, null]}
"""


@pytest.fixture
def folder(tmp_path):
    return StudyFolder(tmp_path / "out")


def described(plan):
    return [
        (group.data.name, sorted({cell.case.id.partition(" ")[2] for cell in group.cells}))
        for group in plan.groups
    ]


def test_fits_go_together_and_before_what_builds_on_them(folder):
    plan = make_plan(folder, tiny_study().cells())
    data = "poisson-16-100-0"
    assert described(plan) == [
        (data, ["local", "two-scale"]),
        (data, ["two-scale+A1"]),
        (data, ["two-scale+A1"]),
    ]
    assert [len(group.cells) for group in plan.groups] == [4, 1, 1]
    assert plan.pending == plan.cells
    assert not plan.done


def test_groups_share_data_and_training_size(folder):
    plan = make_plan(folder, tiny_study(TEXT.replace("cases:\n", MORE)).cells(seeds=[0]))
    assert described(plan) == [
        ("poisson-16-100-0", ["local training=40"]),
        ("poisson-16-100-0", ["local", "two-scale"]),
        ("poisson-16-100-0", ["fno epochs=1 modes=4"]),
        ("poisson-16-100-0", ["two-scale+A1"]),
        ("darcy-16-100-0", ["local training=40"]),
        ("darcy-16-100-0", ["local"]),
    ]


def test_what_is_tuned_brings_its_base(folder):
    plan = make_plan(folder, tiny_study().cells(seeds=[0], only=["two-scale+A1"]))
    assert [cell.case.id for cell in plan.cells] == ["poisson-16 two-scale+A1"]
    assert [group.cells[0].case.id for group in plan.groups] == [
        "poisson-16 two-scale",
        "poisson-16 two-scale+A1",
    ]


def test_what_is_tuned_from_one_network_is_tuned_anew_with_it(folder, monkeypatch):
    """Of the base and one of its tunings there is but the record, of the other nothing."""
    study = tiny_study(TEXT.replace("objective: [null, A1]", "objective: [null, A1, A2]"))
    cells = study.cells(seeds=[0])
    known = {cell.key: "a result" for cell in cells if cell.case.objective != "A2"}
    monkeypatch.setattr(folder, "result", lambda cell: known.get(cell.key))
    plan = make_plan(folder, cells)
    assert [cell.case.id for cell in plan.done] == ["poisson-16 local"]
    anew = [("poisson-16-100-0", [name]) for name in ("two-scale", "two-scale+A1", "two-scale+A2")]
    assert sorted(described(plan)) == anew
    only = [cell for cell in cells if cell.case.objective == "A2"]
    assert sorted(described(make_plan(folder, only, others=cells))) == anew
    monkeypatch.setattr(folder, "has_run", lambda cell: True)
    assert len(make_plan(folder, cells).groups) == 1


def test_longer_work_costs_more(folder):
    plan = make_plan(folder, tiny_study().cells())
    fits, tuned, _ = plan.groups
    assert tuned.cost > 0
    assert fits.cost == pytest.approx(4 * 100 * 2 * 80)
