"""Cells: known by their content, whatever the words it was given in."""

from dataclasses import replace

import pytest

from twoscale_lab.study.cells import make_cell, parse_case

BASE = parse_case("poisson-64 two-scale+A3", samples=1000)


def key(case=BASE, seed=0, **options):
    return make_cell(case, seed, **options).key


def test_keys_do_not_change_by_themselves():
    """If they do, every finished cell of everyone is run again: do so on purpose only."""
    assert key() == "873770f6bcfb9365"


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"case": replace(BASE, problem="darcy")},
        {"case": replace(BASE, resolution=32)},
        {"case": replace(BASE, samples=2000)},
        {"case": replace(BASE, training=500)},
        {"case": replace(BASE, method="local")},
        {"case": replace(BASE, objective="A2")},
        {"case": replace(BASE, objective=None)},
        {"case": replace(BASE, settings={"coarse_components": 11})},
        {"settings": {"epochs": 499}},
        {"finetuning": {"epochs": 49}},
        {"fixed_steps": 900},
    ],
)
def test_everything_that_matters_changes_the_key(other):
    assert key(**other) != key()


@pytest.mark.parametrize(
    "same",
    [
        {"case": replace(BASE, training=800)},
        {"case": replace(BASE, settings={"coarse_components": "10", "patches": 4})},
        {"settings": {"epochs": 500}, "finetuning": {"epochs": 50}},
        {"fixed_steps": 800},
    ],
)
def test_defaults_that_are_spelled_out_do_not(same):
    assert key(**same) == key()


def test_what_the_case_gives_goes_before_the_protocol():
    case = replace(BASE, settings={"epochs": 7})
    assert make_cell(case, 0, settings={"epochs": 9}).settings["epochs"] == 7
    assert make_cell(BASE, 0, settings={"epochs": 9}).settings["epochs"] == 9


def test_the_base_is_the_same_fit_without_the_tuning():
    cell = make_cell(BASE, 3, settings={"epochs": 9}, finetuning={"epochs": 8})
    assert cell.base.key == key(BASE.base, 3, settings={"epochs": 9})
    assert cell.base.base is None
    assert cell.finetuning["epochs"] == 8
    assert cell.finetuning["objective"] == "A3"


def test_passes_grow_as_the_training_set_shrinks():
    case = replace(BASE, training=100)
    cell = make_cell(case, 0, fixed_steps=800, finetuning={"warm_up": 0})
    assert cell.settings["epochs"] == 8 * 500
    assert cell.settings["patience"] == 8 * 30
    assert cell.settings["batch_size"] == 32
    assert (cell.finetuning["epochs"], cell.finetuning["warm_up"]) == (8 * 50, 0)
    network = make_cell(replace(case, method="fno", objective=None), 0, fixed_steps=800)
    assert network.settings["early_stop"] == 8 * 15


def test_a_cell_tells_its_data_and_training_fields():
    cell = make_cell(BASE, 0)
    assert cell.data.name == "poisson-64-1000-0"
    assert cell.training == 800
    assert cell.name == "poisson-64 two-scale+A3 seed 0"


def test_the_key_is_of_the_settings_of_the_predictor_in_use():
    """A setting of another predictor is none of the cell's."""
    cell = make_cell(replace(BASE, objective=None, settings={"predictor": "affine"}), 0)
    assert "ridge" in cell.settings
    assert not {"epochs", "hidden_width", "kernel"} & cell.settings.keys()


@pytest.mark.parametrize(
    ("name", "on_codes", "corrected"),
    [
        ("local", True, False),
        ("local predictor=kernel", True, False),
        ("two-scale predictor=encoder symmetries=problem average_symmetries=true", False, False),
        ("refinement", True, True),
        ("fno", False, False),
    ],
)
def test_a_cell_knows_its_parts(name, on_codes, corrected):
    cell = make_cell(parse_case(f"poisson-64 {name}", samples=1000), 0)
    assert cell.on_codes == on_codes
    assert (cell.parts.correction is not None) == corrected
