"""Linear maps that are diagonal in a series, learned and continued."""

import math

import numpy as np
import pytest
import torch

from twoscale import CNOPoisson, CNOWave, SpectralFilter, Surrogate, TwoscaleError, WholeField
from twoscale.domain.grid import Grid
from twoscale.math.series import FieldSeries


def random_fields(series, samples, highest, *, channels=1, seed=0):
    """Fields of all modes with up to `highest` half waves per axis, (samples, channels, ...)."""
    waves = series.waves(torch.device("cpu"))
    generator = torch.Generator().manual_seed(seed)
    shape = (samples, channels, *series.grid.shape)
    modes = series.coefficients(torch.randn(shape, generator=generator, dtype=torch.float64))
    return series.fields(modes * (waves.abs() <= highest).all(-1))


def mapped(series, fields, symbol):
    """What a map does that multiplies each mode by a function of its half waves."""
    rows, columns = series.waves(torch.device("cpu")).unbind(-1)
    return series.fields(series.coefficients(fields) * symbol(rows, columns))


def make(**options):
    parts = {"inputs": WholeField(), "predictor": SpectralFilter(), "outputs": WholeField()}
    return Surrogate(**parts, device="cpu", **options)


def fit(x, u, **options):
    return make(**options).fit(x, u)


def error(surrogate, x, u):
    """Return the relative L2 error of all fields."""
    return float(np.linalg.norm(surrogate.predict(x) - u) / np.linalg.norm(u))


NAMES = [("sine", "sine"), ("sine", "cosine"), ("cosine", "cosine")]


@pytest.mark.parametrize("names", NAMES, ids="-".join)
@pytest.mark.parametrize("shape", [(13, 18), (1, 33)], ids=str)
def test_a_multiplier_is_recovered(names, shape):
    if shape[0] == 1:
        names = ("cosine", names[1])
    series = FieldSeries(names, Grid(shape))
    x = random_fields(series, 60, math.inf)
    u = 3.0 + mapped(series, x, lambda i, j: 1 / (1 + i**2 + 2 * j**2))
    surrogate = fit(x[:40].numpy(), u[:40].numpy())
    assert error(surrogate, x[40:].numpy(), u[40:].numpy()) < 1e-5
    assert surrogate.chosen_["series"] == " x ".join(names)
    assert surrogate.chosen_["known_modes"] == 1.0
    assert surrogate.chosen_["unknown_modes"] == "none"
    assert surrogate.chosen_["validation_error"] < 1e-6


def test_one_periodic_axis():
    series = FieldSeries(("sine", "fourier"), Grid((12, 16), periodic=(False, True)))
    x = random_fields(series, 40, math.inf)
    u = mapped(series, x, lambda i, j: torch.exp(1j * j) / (1 + i))
    surrogate = fit(x[:30].numpy(), u[:30].numpy(), periodic=(False, True))
    assert error(surrogate, x[30:].numpy(), u[30:].numpy()) < 1e-5


@pytest.mark.parametrize(
    ("problem", "outside", "tolerance"),
    [
        (CNOPoisson(waves=12), CNOPoisson(waves=20), 1e-5),
        (CNOWave(waves=16), CNOWave(waves=22), 1e-4),
    ],
    ids=["poisson", "wave"],
)
def test_modes_that_no_training_field_has_are_predicted(problem, outside, tolerance):
    grid = problem.grid(33, 33)
    x = problem.sample(grid, range(100), seed=0)
    surrogate = fit(x.float().numpy(), problem.solve(x).float().numpy())
    new = outside.sample(grid, range(10), seed=1)
    assert error(surrogate, new.float().numpy(), outside.solve(new).float().numpy()) < tolerance
    assert surrogate.chosen_["known_modes"] == pytest.approx((problem.waves / 31) ** 2)


def test_unseen_modes_of_periodic_fields():
    series = FieldSeries(("fourier", "fourier"), Grid.square(24, periodic=True))

    def symbol(i, j):
        return 1 / (10 + i**2 + j**2)

    x, new = (random_fields(series, 60, waves, seed=waves) for waves in (14, 18))
    surrogate = fit(x.numpy(), mapped(series, x, symbol).numpy(), periodic=True)
    assert surrogate.chosen_["known_modes"] < 0.5
    assert error(surrogate, new.numpy(), mapped(series, new, symbol).numpy()) < 1e-3


def test_channels_are_mixed_mode_by_mode():
    series = FieldSeries(("sine", "sine"), Grid((12, 14)))
    x = random_fields(series, 60, math.inf, channels=2)
    x[:, 1] *= 1e3
    u = torch.stack([x[:, 0] + 1e-3 * x[:, 1], -1e4 * x[:, 0]], 1)
    u = mapped(series, u, lambda i, j: 1 / (i + j))
    surrogate = fit(x[:40].numpy(), u[:40].numpy())
    predicted = surrogate.predict(x[40:].numpy())
    np.testing.assert_allclose(predicted[:, 0], u[40:, 0].numpy(), atol=1e-5)
    np.testing.assert_allclose(predicted[:, 1], u[40:, 1].numpy(), atol=1e-1)
    assert surrogate.chosen_["unknown_modes"] == ["none", "none"]


def test_each_channel_has_modes_of_its_own():
    series = FieldSeries(("sine", "sine"), Grid((24, 24)))
    x, new = (
        torch.cat([random_fields(series, 80, n, seed=k + n) for n in (22, highest)], 1)
        for k, highest in ((0, 12), (1, 16))
    )

    def solve(fields):
        return mapped(series, fields.sum(1, keepdim=True), lambda i, j: 1 / (i**2 + j**2))

    surrogate = fit(x.numpy(), solve(x).numpy())
    assert error(surrogate, new.numpy(), solve(new).numpy()) < 1e-5
    assert surrogate.chosen_["unknown_modes"][0] == "none"


def test_parameters_add_a_field_each():
    series = FieldSeries(("sine", "sine"), Grid((12, 12)))
    x = random_fields(series, 60, math.inf)
    scalars = np.random.default_rng(0).standard_normal((60, 2))
    pattern = random_fields(series, 2, math.inf, seed=5)[:, 0].numpy()
    u = x.numpy()[:, 0] / 2 + np.einsum("np,phw->nhw", scalars, pattern)
    surrogate = make().fit(x[:40], u[:40], parameters=scalars[:40])
    predicted = surrogate.predict(x[40:], parameters=scalars[40:])
    np.testing.assert_allclose(predicted, u[40:], atol=1e-4)


def test_images_under_symmetries_are_training_fields():
    """Half of the modes are seen only in the other half's images."""
    series = FieldSeries(("sine", "sine"), Grid((12, 12)))
    x = mapped(series, random_fields(series, 60, math.inf), lambda i, j: (i < j).double())
    new = random_fields(series, 10, math.inf, seed=1)
    u, truth = (mapped(series, one, lambda i, j: (i != j) / (i + j)) for one in (x, new))
    surrogate = fit(x, u, symmetries="square")
    assert surrogate.chosen_["known_modes"] == pytest.approx(0.9)
    new = mapped(series, new, lambda i, j: (i != j).double())
    assert error(surrogate, new.numpy(), truth.numpy()) < 1e-5


def test_series_are_chosen_by_few_fields_and_learned_from_all(monkeypatch):
    series = FieldSeries(("cosine", "sine"), Grid((10, 12)))
    x = random_fields(series, 40, math.inf)
    u = mapped(series, x, lambda i, j: 1 / (1 + i + j))
    u = u + random_fields(series, 40, math.inf, seed=1) / 100
    whole = fit(x, u)
    monkeypatch.setattr("twoscale.predictors.spectral_filter.SERIES_SAMPLES", 4)
    by_few = fit(x, u)
    assert by_few.chosen_ == whole.chosen_
    assert torch.equal(by_few.operator_.predictor.symbol, whole.operator_.predictor.symbol)


def test_a_damaged_series_is_refused():
    surrogate = fit(*(random_fields(FieldSeries(NAMES[0], Grid((8, 8))), 20, 5) for _ in range(2)))
    operator = surrogate.operator_
    state = operator.state_dict() | {"predictor.series_number": torch.tensor(7)}
    fresh = surrogate.parts.operator()
    with pytest.raises(TwoscaleError, match="the series of the filter is unknown"):
        fresh.restore(state, operator.inputs.space, operator.outputs.space)


def test_other_grids_and_parameters_alone_are_refused():
    x = torch.randn(20, 12, 12)
    with pytest.raises(TwoscaleError, match="on the same grid, got 12x12 fields to 12x6 fields"):
        fit(x, x[:, :, ::2])
    with pytest.raises(TwoscaleError, match="got 2 parameters to 12x12 fields: bring them to one"):
        make().fit(None, x, parameters=torch.randn(20, 2))


def test_what_compresses_limits_it():
    """With a PCA of the outputs, modes that training lacks are not in the code."""
    problem, outside = CNOPoisson(waves=4), CNOPoisson(waves=12)
    x = problem.sample(problem.grid(17, 17), range(60), seed=0).float()
    new = outside.sample(problem.grid(17, 17), range(5), seed=1).float()
    truth = outside.solve(new).numpy()
    made = make(), Surrogate("global", predictor="filter", device="cpu")
    errors = [error(one.fit(x, problem.solve(x)), new.numpy(), truth) for one in made]
    assert errors[0] < 1e-4 < 1e-2 < errors[1]
