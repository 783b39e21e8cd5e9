"""Inputs unlike the training inputs are flagged, those like them are not."""

import math
from dataclasses import replace

import pytest
import torch

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.fields.samples import Source
from twoscale.fields.source import ArraySource, Batch
from twoscale.problems import Darcy, Poisson
from twoscale.problems.random_field import GaussianRandomField
from twoscale.trust.input_range import InputRange

SIDE = 32
USUAL = GaussianRandomField()


def drawn(problem, count, seed):
    fields = problem.sample(Grid((SIDE, SIDE)), range(count), seed=seed)
    return fields.float()[:, None]


def range_of(fields, scalars=None):
    count = 0 if scalars is None else scalars.shape[1]
    space = Space(Grid(fields.shape[2:]), fields.shape[1], parameters=count)
    return InputRange(space).fit(Source(ArraySource(fields), space, parameters=scalars))


@pytest.fixture(scope="module", params=[Poisson, Darcy])
def known(request):
    problem = request.param()
    return problem, range_of(drawn(problem, 800, 0))


def share(known, fields):
    return float(known(Batch.of(fields)).outside.double().mean())


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
    familiarity = known(Batch.of(fields[:1]))
    assert bool(familiarity.outside.all())
    values = familiarity.by_name["values"]
    assert float(values[0, 0]) <= 1 < float(values[0, 1])
    assert familiarity.by_name["missed"].shape == (1, 2)


@pytest.mark.parametrize("channels", [0, 1])
def test_a_parameter_is_looked_at_by_its_value(channels):
    generator = torch.Generator().manual_seed(0)
    scalars = torch.rand(300, 1, generator=generator)
    side = SIDE if channels else 1
    fields = drawn(Poisson(), 300, 0)[:, :channels, :side, :side]
    known = range_of(fields, scalars)
    low, high = (Batch(fields, torch.full((300, 1), value)) for value in (0.5, 3.0))
    assert float(known(low).outside.double().mean()) <= 0.05
    assert float(known(high).outside.double().mean()) == 1


@pytest.mark.parametrize("shape", [(1, 20), (5, 7), (17, 3), (1, 1)])
def test_any_grid_has_a_range(shape):
    generator = torch.Generator().manual_seed(0)
    known = range_of(torch.randn(120, 1, *shape, generator=generator))
    assert share(known, torch.randn(200, 1, *shape, generator=generator)) <= 0.1
    assert known(Batch.of(100 + torch.randn(5, 1, *shape, generator=generator))).outside.all()


# Faults that were found once


@pytest.mark.parametrize("size", [1e3, 1e10, 1e18, 1e19, 1e25, 1e36, math.inf, math.nan])
def test_inputs_of_any_size_are_outside_and_no_distance_is_nan(known, size):
    problem, range_ = known
    familiarity = range_(Batch.of(size * drawn(problem, 20, 4)))
    assert bool(familiarity.outside.all())
    assert not familiarity.distances.isnan().any()
    assert not familiarity.by_name["missed"].isnan().any()


@pytest.mark.parametrize("value", [0.0, 1.0, -3e20])
def test_constant_training_inputs_know_themselves_only(value):
    fields = torch.full((60, 1, SIDE, SIDE), value)
    known = range_of(fields)
    assert not known(Batch.of(fields)).unusual.isnan().any()
    assert not known(Batch.of(fields)).outside.any()
    assert known(Batch.of(fields + 1e-2 * max(1.0, abs(value)))).outside.all()
    assert range_of(fields[:1])(Batch.of(fields[:1])).outside.tolist() == [False]


@pytest.mark.parametrize("count", [600, 3000])
@pytest.mark.parametrize("order", ["rising", "falling"])
def test_the_order_of_training_inputs_does_not_matter(count, order):
    def sizes(count, seed):
        generator = torch.Generator().manual_seed(seed)
        return torch.rand(count, 1, 1, 1, generator=generator).mul(9).add(1)

    def made(amplitudes, seed):
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn(len(amplitudes), 1, 12, 12, generator=generator)
        return amplitudes * noise.cumsum(2).cumsum(3)

    amplitudes = sizes(count, 0).sort(dim=0, descending=order == "falling").values
    known = range_of(made(amplitudes, 1))
    fresh = made(sizes(1000, 2), 3)
    assert share(known, fresh) <= 0.06
    assert share(known, 10 * fresh) >= 0.6


def checkerboards(fields, low, high):
    """Put checkerboards between the rows and columns 4, 12, 20, ..."""
    changed = fields.clone()
    board = torch.where((torch.arange(7)[:, None] + torch.arange(7)) % 2 == 0, low, high)
    for row in range(5, 57, 8):
        for column in range(5, 57, 8):
            changed[:, 0, row : row + 7, column : column + 7] = board
    return changed


def noise_in_a_block(fields, side, draw):
    changed, generator = fields.clone(), torch.Generator().manual_seed(0)
    for one in changed:
        row, column = torch.randint(1, 64 - side, (2,), generator=generator).tolist()
        one[0, row : row + side, column : column + side] = draw((side, side), generator)
    return changed


def test_changes_of_a_part_of_the_field_are_seen():
    """Also if they spare every eighth row and column, and all nodes of a coarse grid."""
    problem, grid = Darcy(), Grid((64, 64))
    fields = problem.sample(grid, range(700), seed=0).float()[:, None]
    known, fresh = range_of(fields[:500]), fields[500:]
    assert share(known, fresh) <= 0.05
    assert share(known, checkerboards(fresh, 4.0, 12.0)) == 1
    media = noise_in_a_block(
        fresh, 16, lambda sides, by: torch.rand(sides, generator=by).lt(0.5) * 8.0 + 4.0
    )
    assert share(known, media) >= 0.9
