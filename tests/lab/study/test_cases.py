"""Names of cases: one for each, and the case again from its name."""

import pytest

from twoscale.errors import TwoscaleError
from twoscale_lab.study.cells import Case, parse_case

NAMES = [
    "poisson-128 two-scale",
    "poisson-128 two-scale+A3",
    "poisson-128 two-scale coarse_components=20 residual_variance=0.99",
    "poisson-128 two-scale coarse_components=20 coarse_variance=0.99 objective=vector",
    "poisson-128 local training=1250",
    "darcy-256 fno batch_size=4 evaluation_batch=8",
    "darcy-256 fno early_stop=none",
    "poisson-128 two-scale solver=full",
    "poisson-64 local patches=4x2",
    "poisson-64 refinement base=two-scale objective=vector",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_gives_its_case_and_the_case_its_name(name):
    case = parse_case(name)
    assert case.id == name
    assert parse_case(case.id) == case


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("poisson-128 two-scale coarse_components=10", "poisson-128 two-scale"),
        ("poisson-128 two-scale objective=block-balanced", "poisson-128 two-scale"),
        ("poisson-128 two-scale coarse_variance=none", "poisson-128 two-scale"),
        ("poisson-128 local patches=4", "poisson-128 local"),
        ("poisson-128 local epochs=20 batch_size=8", "poisson-128 local batch_size=8 epochs=20"),
        ("poisson-128 refinement base=local", "poisson-128 refinement"),
        (
            "poisson-128 refinement base=two-scale objective=block-balanced",
            "poisson-128 refinement base=two-scale",
        ),
    ],
)
def test_defaults_are_dropped_and_settings_sorted(given, name):
    assert parse_case(given).id == name


def test_values_and_texts_of_settings_are_the_same_case():
    built = Case(
        problem="poisson",
        resolution=64,
        method="local",
        settings={"patches": (2, 2), "epochs": 20},
    )
    assert built == parse_case("poisson-64 local epochs=20 patches=2")
    assert hash(built) == hash(parse_case(built.id))


def test_all_training_fields_need_no_mention():
    assert parse_case("poisson-64 local training=8000").id == "poisson-64 local"
    assert parse_case("poisson-64 local training=400", samples=500).id == "poisson-64 local"
    assert parse_case("poisson-64 local training=400").id == "poisson-64 local training=400"


def test_the_base_is_the_case_that_is_tuned():
    assert parse_case("poisson-64 local+A3 epochs=20").base.id == "poisson-64 local epochs=20"
    assert parse_case("poisson-64 local").base == parse_case("poisson-64 local")


def test_resolved_settings_include_the_defaults():
    resolved = parse_case("poisson-64 local epochs=20").resolved
    assert resolved["epochs"] == 20
    assert resolved["output_variance"] == 0.99


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two-scale", "a case is named like"),
        ("poisson two-scale", "a case is named like"),
        ("poisson-64 two-scale and more", "a case is named like"),
        ("heat-64 two-scale", "no problem is called 'heat'"),
        ("poisson-64 three", "no method is called 'three'"),
        ("poisson-64 local+A9", "no objective is called 'A9'"),
        ("poisson-64 local colour=red", "no setting 'colour'"),
        ("poisson-64 local epochs=-1", "epochs must be a whole number"),
        ("poisson-64 local training=all", "training must be a number of fields"),
    ],
)
def test_a_wrong_name_is_told(name, message):
    with pytest.raises(TwoscaleError, match=message):
        parse_case(name)
