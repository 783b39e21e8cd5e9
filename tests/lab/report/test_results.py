import numpy as np
import pytest

from tests.lab.study.synthetic import make_cell, make_record, write_record
from tests.lab.study.tiny import TEXT
from twoscale_lab.report.related import along_variances, base_of, curves, signature
from twoscale_lab.report.results import property_of, read_study
from twoscale_lab.study.catalogue import parse_study

CASES = [
    "poisson-128 local",
    "poisson-128 two-scale",
    "poisson-128 two-scale+A3",
    "poisson-128 two-scale residual_variance=0.99",
    "poisson-128 two-scale coarse_components=20 residual_variance=0.99",
    "poisson-128 two-scale objective=vector",
    "poisson-128 two-scale training=1250",
    "darcy-256 two-scale",
]


@pytest.fixture
def study(tmp_path):
    return read_study(write_record(tmp_path, make_record("some", CASES)))


def case(study, name):
    found = study.case(name)
    assert found is not None
    return found


def test_cells_are_gathered_into_cases_with_spreads(study):
    assert [one.id for one in study.cases] == CASES
    assert len(study.cells) == 3 * len(CASES)
    local = case(study, "poisson-128 local")
    values = [make_cell("poisson-128 local", seed)["metrics"]["mre"] for seed in range(3)]
    assert local.values("mre") == dict(enumerate(values))
    spread = local.spread("mre")
    assert spread.mean == pytest.approx(np.mean(values))
    assert spread.deviation == pytest.approx(np.std(values, ddof=1))
    assert local.spread("residual_code") is None
    assert (local.training, local.place) == (8000, "poisson-128")


def test_labels_name_the_method_and_what_varies(study):
    labels = [one.label for one in study.cases]
    assert labels[0] == "Plain L2L"
    assert len(set(labels[:-1])) == len(labels) - 1
    assert labels[3].startswith("Two-scale, ")
    assert "residual variance 0.99" in labels[3]
    assert "1,250 fields" in labels[6]
    assert labels[7] == "Two-scale"


def test_given_labels_come_first(tmp_path):
    """They, and the order of the cases, are those of the definition."""
    text = TEXT.replace("{method: local}", "{method: local, label: plain}")
    cases = ["poisson-16 two-scale", "poisson-16 local"]
    path = write_record(tmp_path, make_record("some", cases, samples=100), fields=False)
    found = read_study(path, parse_study(text, name="some")).cases
    assert [one.label for one in found] == ["plain", "Two-scale"]


def test_cases_are_selected_by_pattern_and_property(study):
    def ids(**options):
        return [one.id for one in study.select(**options).cases]

    assert ids(patterns=["two-scale"]) == ["poisson-128 two-scale", "darcy-256 two-scale"]
    assert ids(patterns=["darcy-*", "local"]) == ["poisson-128 local", "darcy-256 two-scale"]
    assert ids(properties={"objective": "A3"}) == ["poisson-128 two-scale+A3"]
    assert ids(properties={"settings.objective": "vector", "method": "two-scale"}) == [CASES[5]]
    assert ids(patterns=["darcy-*"], properties={"method": ["local", "fno"]}) == []


def test_objective_and_the_setting_of_that_name_are_two_things(study):
    tuned = case(study, "poisson-128 two-scale+A3")
    assert property_of(tuned, "objective") == "A3"
    assert property_of(tuned, "settings.objective") == "block-balanced"


def test_curves_join_what_differs_in_the_axis_only(study):
    (curve,) = curves(study, "coarse_components")
    assert [one.id for one in curve.cases] == [CASES[3], CASES[4]]
    assert curve.at == (10, 20)
    (sizes,) = curves(study, "training")
    assert sizes.at == (1250, 8000)
    assert sizes.label == "Two-scale"
    # Single cases are shown when there are no curves.
    assert len(curves(study.select(["local", "two-scale"]), "resolution")) == 3


def test_the_schedule_makes_no_other_case(study):
    names = signature(case(study, "poisson-128 local"))
    assert "settings.epochs" not in names
    assert "settings.input_variance" in names


def test_a_base_differs_in_the_named_properties_only(study):
    tuned, plain = case(study, CASES[2]), case(study, CASES[1])
    assert base_of(study, tuned, {"objective": None}) is plain
    assert base_of(study, plain, {"objective": None}) is plain
    assert base_of(study, plain, {"settings.objective": "vector"}) is case(study, CASES[5])
    assert base_of(study, case(study, CASES[4]), {"coarse_components": 10}) is case(study, CASES[3])
    assert base_of(study, plain, {"method": "local"}) is case(study, CASES[0])
    assert base_of(study, tuned, {"method": "local"}) is None  # not fine-tuned here
    assert base_of(study, case(study, CASES[7]), {"method": "local"}) is None


@pytest.fixture
def predictors(tmp_path):
    """A study of two-scale with two predictors, whose settings differ."""
    names = [f"poisson-128 two-scale{rest}" for rest in ("", " predictor=affine", " solver=full")]
    names.append("poisson-128 two-scale predictor=affine ridge=0.001")
    return read_study(write_record(tmp_path, make_record("some", names)))


def test_a_base_with_another_predictor_agrees_in_the_settings_of_both(predictors):
    plain, affine, full, ridge = predictors.cases
    assert base_of(predictors, plain, {"predictor": "affine"}) is affine
    assert base_of(predictors, affine, {"predictor": "mlp"}) is plain
    assert base_of(predictors, full, {"predictor": "affine"}) is None
    assert base_of(predictors, ridge, {"ridge": None}) is affine
    assert base_of(predictors, plain, {"ridge": 0.001}) is None


def test_families_may_have_different_predictors(predictors):
    assert [len(cases) for cases in along_variances(predictors.cases).values()] == [1, 1, 1, 1]


def test_families_differ_in_variances_only(study):
    found = along_variances(study.select(["poisson-128 *"]).cases[:5])
    assert [len(cases) for cases in found.values()] == [1, 2, 1, 1]
    assert "Two-scale, coarse components 20" in found


def test_fields_are_read_from_beside_the_record(study):
    assert study.fields["poisson-128/truth"].shape == (128, 128)
    assert f"poisson-128/prediction/{CASES[0]}" in study.fields
