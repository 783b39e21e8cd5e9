"""The script that records coverages and flags: its data, its shifts, its record."""

import pytest
import torch
import trust_record

from twoscale import Darcy, NavierStokes, Poisson

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def tiny():
    settings = {"two-scale affine": {"predictor": "affine", "patches": 2, "coarse_components": 4}}
    return trust_record.Size(16, 100, 30, 60, 80, 20, settings)


def test_parts_share_no_sample():
    for size in trust_record.SIZES.values():
        parts = list(size.parts().values())
        assert [part.start for part in parts[1:]] == [part.stop for part in parts[:-1]]
        assert size.calibration >= 1000
    assert trust_record.SIZES["paper"].fresh == 5000


@pytest.mark.parametrize("problem", [Poisson(), Darcy(), NavierStokes()])
def test_shifted_inputs_are_of_the_same_shape_and_not_the_same(tiny, problem):
    data = trust_record.Data.of(problem, tiny, CPU)
    fresh = data.parts["fresh"][0][: tiny.shifted]
    found = dict(trust_record.shifts(problem, tiny, fresh))
    assert {"noise of 20%", "constant", "1.5 times as large"} < set(found)
    for fields in found.values():
        assert fields.shape == fresh.shape
        assert float((fields - fresh).abs().max()) > 0


def test_the_record_has_a_row_for_each_case(tiny, monkeypatch, capsys):
    monkeypatch.setattr(trust_record, "PROBLEMS", {"darcy": Darcy()})
    (record,) = trust_record.measure(tiny, CPU)
    rows = record["coverage"]
    assert [(one["problem"], one["equation"]) for one in rows] == [
        ("darcy", True),
        ("darcy", False),
    ]
    for row in rows:
        assert row["coverage"] > 0.8
        assert row["calibration_samples"] == 60
        assert row["seconds"]["ratio"] > 0
    assert rows[0]["scores"] == ["residual", "distance"]
    assert rows[0]["mean_radius"] < rows[1]["mean_radius"]
    assert rows[0]["unscaled"] == pytest.approx(rows[1]["unscaled"])
    flags = record["flags"]["darcy"]
    assert flags["fresh"] < 0.2 < flags["contrast 10, not 3"]
    assert "covered" in capsys.readouterr().out
