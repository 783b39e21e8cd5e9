"""Inputs unlike the training inputs are flagged, those like them are not."""

from dataclasses import replace

import pytest
import torch

from twoscale.fields.grid import Grid, Space
from twoscale.fields.source import ArraySource
from twoscale.problems import Darcy, Poisson
from twoscale.problems.random_field import GaussianRandomField
from twoscale.trust.known_inputs import KnownInputs

SIDE = 32
USUAL = GaussianRandomField()


def drawn(problem, count, seed):
    fields = problem.sample(Grid(SIDE, SIDE), range(count), seed=seed)
    return fields.float()[:, None]


def range_of(fields, parameters=0):
    space = Space(fields.shape[1], Grid(*fields.shape[2:]), parameters)
    return KnownInputs(space).fit(ArraySource(fields))


@pytest.fixture(scope="module", params=[Poisson, Darcy])
def known(request):
    problem = request.param()
    return problem, range_of(drawn(problem, 800, 0))


def share(known, fields):
    return float(known(fields).outside.double().mean())


def test_fresh_inputs_of_the_same_kind_are_known(known):
    problem, range_ = known
    assert share(range_, drawn(problem, 400, 1)) <= 0.05


def test_other_inputs_are_outside(known):
    """Another correlation length, contrast or size, noise, and a constant."""
    problem, range_ = known
    fresh = drawn(problem, 100, 2)
    spread = fresh.std()
    rough = replace(USUAL, tau=20.0)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(fresh.shape, generator=generator)
    others = {
        "size": 1.5 * fresh,
        "noise": fresh + 0.2 * spread * noise,
        "mean": fresh + spread,
        "constant": torch.full((1, 1, SIDE, SIDE), float(fresh.mean())),
        "spike": fresh + 30 * spread * (torch.arange(SIDE**2) == 333).reshape(SIDE, SIDE),
    }
    if problem.name == "darcy":
        others["rough"] = drawn(Darcy(medium=rough), 100, 3)
        others["contrast"] = drawn(Darcy(high=12.0, low=3.0), 100, 3)
    else:
        others["rough"] = drawn(Poisson(forcing=rough), 100, 3)
        others["smooth"] = drawn(Poisson(forcing=replace(USUAL, alpha=3.0)), 100, 3)
    found = {name: share(range_, fields) for name, fields in others.items()}
    assert min(found.values()) >= 0.95, found


def test_reasons_name_the_channel_that_is_unusual():
    fields = torch.cat([drawn(Poisson(), 300, 0), 1e6 + drawn(Poisson(), 300, 1)], 1)
    known = range_of(fields)
    fields[0, 1] *= 1.001
    familiarity = known(fields[:1])
    assert bool(familiarity.outside.all())
    values = familiarity.by_name["values"]
    assert float(values[0, 0]) <= 1 < float(values[0, 1])
    assert familiarity.missed.shape == (1, 2)


@pytest.mark.parametrize("channels", [0, 1])
def test_a_parameter_is_looked_at_by_its_value(channels):
    generator = torch.Generator().manual_seed(0)
    scalars = torch.rand(300, 1, 1, 1, generator=generator)
    side = SIDE if channels else 1
    fields = drawn(Poisson(), 300, 0)[:, :channels, :side, :side]
    known = range_of(torch.cat([fields, scalars.expand(-1, -1, side, side)], 1), parameters=1)
    low, high = (torch.cat([fields[:1], torch.full((1, 1, side, side), v)], 1) for v in (0.5, 3.0))
    assert not known(low).outside.any()
    assert known(high).outside.all()


@pytest.mark.parametrize("shape", [(1, 20), (5, 7), (17, 3), (1, 1)])
def test_any_grid_has_a_range(shape):
    generator = torch.Generator().manual_seed(0)
    known = range_of(torch.randn(120, 1, *shape, generator=generator))
    assert share(known, torch.randn(200, 1, *shape, generator=generator)) <= 0.1
    assert known(100 + torch.randn(5, 1, *shape, generator=generator)).outside.all()


def test_the_state_is_all_there_is():
    known = range_of(drawn(Darcy(), 60, 0))
    fields = drawn(Darcy(medium=replace(USUAL, tau=9.0)), 20, 1)
    again = KnownInputs(known.space).restore(known.state_dict())
    assert torch.equal(known(fields).unusual, again(fields).unusual)
