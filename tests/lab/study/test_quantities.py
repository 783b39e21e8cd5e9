"""Quantities of a cell's record, against sums made by hand."""

import pytest

from twoscale.errors import TwoscaleError
from twoscale_lab.study.quantities import (
    check_quantity,
    is_shared_time,
    is_time,
    quantity,
    values_by_seed,
)

TUNED = {
    "objective": "A3",
    "training": 8000,
    "metrics": {
        "mre": 0.012,
        "oracle_mre": 0.004,
        "value_jump": 3.0,
        "common_seams": {"value_jump": 2.0},
        "timings": {
            "pca_input": 1.0,
            "pca_coarse": 0.25,
            "pca_residual": 2.0,
            "pca_overhead": 0.5,
            "transform": 0.125,
            "training": 10.0,
            "finetune_prepare": 1.0,
            "finetuning": 4.0,
            "inference": 0.0625,
            "total": 18.9375,
        },
    },
    "retained": {"output": {"code": 14, "ranks": {"coarse": [10], "residual": [1, 3]}}},
    "weights": {"value": 76.5},
}
BASE = {
    "objective": None,
    "metrics": {"mre": 0.5, "oracle_mre": None, "timings": {"training": 3.0, "total": 5.0}},
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mre", 0.012),
        ("value_jump", 3.0),
        ("common_seams.value_jump", 2.0),
        ("pca_input", 1.0),
        ("pca_output", 0.0),
        ("pca_fit", 3.75),
        ("pca_solve", 3.25),
        ("train", 15.0),
        ("timings.finetuning", 4.0),
        ("invocation_train", 4.0),
        ("invocation_total", 5.0),
        ("total", 18.9375),
        ("learned_to_oracle", 3.0),
        ("coarse_code", 10.0),
        ("residual_code", 4.0),
        ("training_samples", 8000.0),
        ("weights.value", 76.5),
        ("weights.spectral", None),
        ("explained_variance.input", None),
        ("ssim", None),
    ],
)
def test_quantities_of_a_fine_tuned_cell(name, value):
    assert quantity(TUNED, name) == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pca_fit", None),
        ("pca_output", None),
        ("invocation_train", 3.0),
        ("invocation_total", 5.0),
        ("learned_to_oracle", None),
        ("coarse_code", None),
        ("common_seams.value_jump", None),
    ],
)
def test_quantities_of_a_method_without_pca(name, value):
    assert quantity(BASE, name) == value


def test_times_are_told_from_the_rest():
    assert all(map(is_time, ("total", "pca_fit", "invocation_train", "timings.training")))
    assert not any(map(is_time, ("mre", "coarse_code", "weights.value", "training_samples")))


def test_an_unknown_quantity_is_told():
    with pytest.raises(TwoscaleError, match=r"no quantity is called 'mres' \(did you mean mre"):
        check_quantity("mres")
    assert check_quantity("common_seams.flux_jump") == "common_seams.flux_jump"


def test_a_time_is_a_share_where_no_seed_was_trained_alone():
    def cells(*together):
        return [
            {**BASE, "seed": seed, "metrics": BASE["metrics"] | {"trained_together": count}}
            for seed, count in enumerate(together)
        ]

    assert is_shared_time(cells(5, 5), "total")
    assert is_shared_time(cells(5), "timings.training")
    assert not is_shared_time(cells(5, 1), "total")
    assert not is_shared_time([BASE], "total")
    assert not is_shared_time(cells(5), "timings.inference")
    assert not is_shared_time(cells(5), "mre")
    assert set(values_by_seed(cells(5, 1), "total")) == {1}
    several = [{**TUNED, "seed": seed} for seed in (0, 1)]
    several[0] = {**several[0], "metrics": TUNED["metrics"] | {"trained_together": 5}}
    assert set(values_by_seed(several, "pca_fit")) == {0, 1}  # each fitted its own
    assert set(values_by_seed(several, "total")) == {1}


def test_other_processes_disturb_every_time():
    busy = {**TUNED, "seed": 0, "processes": 4}
    assert is_shared_time([busy], "total")
    assert is_shared_time([busy], "inference")
    assert not is_shared_time([busy], "mre")
    assert set(values_by_seed([busy, {**TUNED, "seed": 7}], "inference")) == {7}


def test_a_fine_tuning_is_timed_by_itself():
    metrics = BASE["metrics"] | {"trained_together": 5}
    assert is_shared_time([{**BASE, "metrics": metrics}], "invocation_total")
    tuned = {**BASE, "objective": "A3", "metrics": metrics | {"timings": {"finetuning": 2.0}}}
    assert not is_shared_time([tuned], "invocation_total")
