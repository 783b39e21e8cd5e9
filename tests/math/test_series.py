"""Series through the nodes of a grid."""

import math

import pytest
import torch

from twoscale.domain.grid import Grid
from twoscale.math.series import FieldSeries, series_of

GRIDS = [
    Grid((1, 8)),
    Grid((7, 10)),
    Grid((2, 3)),
    Grid((6, 5), periodic=(True, False)),
    Grid((4, 7), periodic=(True, True)),
]
EVERY = [series for grid in GRIDS for series in series_of(grid)]


def fields_of(series, generator):
    """Random fields, zero at the ends of axes with sines."""
    fields = torch.randn(3, 2, *series.grid.shape, dtype=torch.float64, generator=generator)
    for name, axis in zip(series.names, (-2, -1), strict=True):
        if name == "sine":
            fields.index_fill_(axis, torch.tensor([0, series.grid.shape[axis] - 1]), 0.0)
    return fields


def test_the_grid_says_which_series_there_are():
    assert [one.names for one in series_of(Grid((9, 9)))] == [
        ("sine", "sine"),
        ("sine", "cosine"),
        ("cosine", "sine"),
        ("cosine", "cosine"),
    ]
    assert [one.names for one in series_of(Grid((8, 1), periodic=(True, False)))] == [
        ("fourier", "cosine")
    ]
    assert [one.names for one in series_of(Grid((2, 2)))] == [("cosine", "cosine")]


@pytest.mark.parametrize("series", EVERY, ids=lambda one: f"{one.grid}-{'-'.join(one.names)}")
def test_coefficients_give_the_fields_back(series, generator):
    fields = fields_of(series, generator)
    coefficients = series.coefficients(fields)
    assert coefficients.is_complex() == any(series.grid.periodic)
    assert coefficients.shape[-2:] == series.waves(fields.device).shape[:2]
    torch.testing.assert_close(series.fields(coefficients), fields)


@pytest.mark.parametrize("names", [("sine", "sine"), ("fourier", "fourier")])
def test_the_norm_is_kept(names, generator):
    grid = Grid.square(8, periodic=names[0] == "fourier")
    series = FieldSeries(names, grid)
    fields = fields_of(series, generator)
    torch.testing.assert_close(series.coefficients(fields).abs().norm(), fields.norm())


@pytest.mark.parametrize(
    ("name", "function"), [("sine", torch.sin), ("cosine", torch.cos), ("fourier", torch.cos)]
)
def test_a_wave_is_one_mode(name, function):
    """Three half waves, or three periods on a periodic axis."""
    grid = Grid((1, 16), periodic=(False, name == "fourier"))
    series = FieldSeries(("cosine", name), grid)
    turns = 6 if name == "fourier" else 3
    x = torch.arange(16, dtype=torch.float64) * grid.spacing[1]
    modes = series.coefficients(function(math.pi * turns * x)[None, None]).abs()[0, 0]
    waves = series.waves(x.device)[0, :, 1]
    assert set(waves[modes > 1e-10].abs().tolist()) == {float(turns)}
