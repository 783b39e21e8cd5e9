import pytest
import torch

from twoscale import NavierStokes, TwoscaleError
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.domain.symmetries import SYMMETRIES
from twoscale.fields.source import ArraySource
from twoscale.predictors.symmetry_evidence import SymmetryEvidence

TURNS = [name for name in SYMMETRIES if name not in ("none", "shifts")]


def evidence(inputs, outputs, **grid):
    """Return the evidence of fields (samples, height, width) or (samples, channels, ...)."""
    sides = [one[:, None] if one.ndim == 3 else one for one in (inputs, outputs)]
    spaces = tuple(Space(Grid(one.shape[2:], **grid), one.shape[1]) for one in sides)
    return SymmetryEvidence(tuple(map(ArraySource, sides)), spaces)


@pytest.mark.parametrize("name", TURNS)
def test_nothing_speaks_against_the_symmetries_of_the_equation(name, poisson16):
    assert evidence(*poisson16).against(name) == ""


def test_a_mean_or_variance_that_changes(poisson16):
    x, u = poisson16
    slope = torch.linspace(1, 2, 16)
    against = evidence(x, u * slope).against
    assert against("mirror-columns") == "the mean or the variance of output changes"
    assert against("square") == against("mirror-columns")
    assert against("mirror-rows") == ""
    both = torch.stack([u, u + slope], 1)
    assert evidence(x, both).against("mirrors") == "the mean or the variance of output '1' changes"


def test_a_map_that_changes_though_its_fields_look_alike(poisson16):
    x, u = poisson16
    found = evidence(x, u.flip(1)).against
    assert found("mirror-rows") == ""  # the mirrored solution has the symmetry still
    assert found("rotations").startswith("training images raise the error of an affine map from")


def test_shifts_of_a_flow_whose_start_is_fixed():
    problem = NavierStokes()
    x = problem.sample(problem.grid(16, 16), range(300), seed=0)
    found = evidence(x, problem.solve(x), periodic=(True, True))
    assert "affine map" in found.against("shifts")


def test_shifts_of_a_map_that_has_them(generator):
    x = torch.randn(80, 8, 12, generator=generator)
    assert evidence(x, x.roll(2, 2), periodic=(True, True)).against("shifts") == ""


def test_few_samples_say_nothing_and_damaged_ones_do_not_count(poisson16):
    x, u = poisson16
    assert not evidence(x[:40], u[:40]).enough
    assert evidence(x[:40], u[:40] * torch.linspace(1, 9, 16)).against("square") == ""
    broken = u.clone()
    broken[:, 3, 3] = torch.nan
    broken[:60] = u[:60]
    assert len(evidence(x, broken).fields[0]) == 60


def test_symmetries_that_the_grid_does_not_have(generator):
    x = torch.randn(60, 6, 7, generator=generator)
    with pytest.raises(TwoscaleError, match="as many rows as columns"):
        evidence(x, x).against("transpose")
