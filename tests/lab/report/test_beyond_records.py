"""What the study beyond the paper reached, held to what the project promises."""

from fnmatch import fnmatchcase
from pathlib import Path
from statistics import mean

import pytest

from twoscale.files import read_json

RESULTS = Path(__file__).parents[3] / "results"
CELLS = read_json(RESULTS / "study" / "beyond.json")["cells"]

LONG = "poisson-128 two-scale coarse_components=80 * residual_variance=0.9995"
ENCODER = "two-scale coarse_components=40 predictor=encoder"
FEW = "poisson-128 two-scale coarse_components=80 * symmetries=problem training=250"


def cells(pattern):
    """Return all seeds of one case, in order."""
    found = [cell for cell in CELLS if fnmatchcase(cell["case"], pattern)]
    assert len({cell["case"] for cell in found}) == 1, pattern
    return sorted(found, key=lambda cell: cell["seed"])


def metrics(pattern):
    """Return the metrics of all seeds of one case, in order."""
    return [cell["metrics"] for cell in cells(pattern)]


def seconds(pattern, stage="total"):
    """Return the times of those seeds that had the device to themselves."""
    return [
        cell["metrics"]["timings"][stage]
        for cell in cells(pattern)
        if cell["metrics"]["trained_together"] == cell.get("processes", 1) == 1
    ]


def test_poisson_is_learned_to_half_a_permille_in_a_hundredth_of_the_time():
    found = metrics(LONG)
    assert len(found) == 3
    assert max(one["mre"] for one in found) <= 0.0005
    assert len(seconds(LONG)) == 3
    assert max(seconds(LONG)) <= min(seconds("poisson-128 fno")) / 100


@pytest.mark.parametrize(
    ("ours", "fno", "seeds", "aim"),
    [
        ("darcy-128 two-scale coarse_components=40 epochs=16 *", "darcy-128 fno", 3, 0.0012),
        (f"darcy-256 {ENCODER} residual_variance=0.998 *", "darcy-256 fno *", 3, 0.0011),
        (f"darcy-256 {ENCODER} residual_variance=0.9999 *", "darcy-256 fno *", 2, 0.0008),
    ],
)
def test_darcy_is_learned_better_than_by_fno_in_a_third_of_the_time(ours, fno, seeds, aim):
    """Every seed, even the slowest, in a third of the time of FNO's fastest."""
    assert len(seconds(ours, "training")) == seeds
    assert max(one["mre"] for one in metrics(ours)) <= aim
    assert min(one["mre"] for one in metrics(fno)) > 0.0024
    assert max(seconds(ours, "training")) <= min(seconds(fno, "training")) / 3


def test_the_usual_epochs_on_darcy_128_take_a_third_of_the_time_on_average():
    """Seed 0, which also loads and compiles, takes 43 s of FNO's 120, the others 37."""
    ours, fno = f"darcy-128 {ENCODER} residual_variance=0.998 *", "darcy-128 fno"
    assert max(one["mre"] for one in metrics(ours)) <= 0.0011
    assert len(seconds(ours, "training")) == 3
    assert mean(seconds(ours, "training")) <= mean(seconds(fno, "training")) / 3


@pytest.mark.parametrize(("pattern", "seeds"), [("darcy-128 fno", 3), ("darcy-256 fno *", 1)])
def test_fno_has_its_seeds(pattern, seeds):
    assert [cell["seed"] for cell in cells(pattern)] == list(range(seeds))
    assert seconds(pattern)


def test_poisson_has_smaller_errors_at_seams_than_overlap_has():
    for one in metrics(LONG):
        assert one["common_seams"]["value_trace_error"] < 8.5e-6
        assert one["common_seams"]["normal_derivative_trace_error"] < 5.4e-4


def test_few_fields_are_enough():
    found = metrics(FEW)
    assert len(found) == 3
    assert max(one["mre"] for one in found) <= 0.001


def compare(place, size, peer):
    """Yield what is left of another code's error and seam errors with a conforming one of its size.

    These are of the representations alone, seed by seed.
    """
    ours = cells(f"{place} conforming code_size={size} * predictor=affine")
    assert len(ours) == 3
    for cell, other in zip(ours, cells(f"{place} {peer}"), strict=True):
        assert cell["seed"] == other["seed"]
        one, two = cell["metrics"], other["metrics"]
        assert one["output_code"] == pytest.approx(two["output_code"], rel=0.02)
        seams = ("value_trace_error", "normal_derivative_trace_error")
        shares = [one["oracle_seams"][name] / two["oracle_seams"][name] for name in seams]
        yield one["oracle_mre"] / two["oracle_mre"], max(shares)


@pytest.mark.parametrize(
    ("size", "peer"),
    [
        (162, "two-scale code_size=162 *"),
        (162, "two-scale objective=field predictor=affine"),
        (700, "two-scale coarse_components=40 code_size=700 *"),
    ],
)
def test_conforming_codes_halve_the_error_of_two_scale_ones_of_their_size(size, peer):
    for error, seams in compare("poisson-128", size, peer):
        assert error <= 1 / 2
        assert seams <= 1 / 5


def test_with_ten_coarse_modes_among_700_two_scale_is_not_halved():
    """Half is out of reach there: not even one PCA of whole fields has that (0.61 of it)."""
    for error, seams in compare("poisson-128", 700, "two-scale code_size=700 *"):
        assert 1 / 2 < error <= 0.65
        assert 1 / 5 < seams <= 0.22


def test_conforming_codes_are_better_on_darcy_too():
    for error, seams in compare("darcy-128", 627, "two-scale code_size=627 *"):
        assert error < 0.9
        assert seams < 0.4
