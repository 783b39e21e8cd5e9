"""Predictions on other grids than that of the training."""

import numpy as np
import pytest
import torch

from tests.conftest import make_poisson
from twoscale import Grid, Surrogate, TwoscaleError
from twoscale.domain.space import Space
from twoscale.surrogate.prediction import Resampling


def waves(side, count=40, *, periodic=False, seed=0):
    """Combinations of smooth functions and their derivatives along rows, at the nodes of a grid."""
    points = np.arange(side) / side if periodic else np.linspace(0, 1, side)
    k = np.arange(1, 4)
    phase = 2 * np.pi * np.outer(points, k) if periodic else np.pi * np.outer(points, k) / 2
    a = np.random.default_rng(seed).standard_normal((count, 3, 3))
    x = np.einsum("ik,nkl,jl->nij", np.sin(phase), a, np.cos(phase))
    u = np.einsum("ik,nkl,jl->nij", k * np.cos(phase), a, np.cos(phase))
    return x.astype(np.float32), u.astype(np.float32)


def affine(**options):
    exact = {"input_variance": 0.999999, "output_variance": 0.999999}
    return Surrogate("global", predictor="affine", device="cpu", **exact, **options)


@pytest.fixture(scope="module")
def fitted():
    return affine().fit(*waves(33))


@pytest.mark.parametrize("side", [17, 33, 65, 48])
def test_an_analytic_operator_on_any_grid(fitted, side):
    x, u = waves(side, seed=5)
    predicted = fitted.predict(x, resample=True)
    assert predicted.shape == u.shape
    error = np.linalg.norm(predicted - u) / np.linalg.norm(u)
    metrics = fitted.evaluate(x, u, resample=True)
    assert metrics["mre"] == pytest.approx(error, rel=0.05)
    if side == 33:
        assert "resampled_from" not in metrics
        assert metrics["mre"] == fitted.evaluate(x, u)["mre"]
        return
    assert error < 0.02
    assert metrics["resampled_from"] == {"input": [side, side], "output": [side, side]}
    assert metrics["resampled_to"] == {"input": [33, 33], "output": [33, 33]}
    assert metrics["interpolation_mre"] < min(1e-3, metrics["mre"])
    assert (metrics["interpolation_mre"] == 0) == (side == 17)  # whose nodes are all in the other
    assert metrics["interpolation_mre"] <= metrics["oracle_mre"] * 1.01


def test_nodes_in_common_are_thinned(fitted):
    """Every second node of a finer grid is a node of the fitted one: nothing is interpolated in."""
    x, _ = waves(65, seed=5)
    fine = fitted.predict(x, resample=True)
    np.testing.assert_allclose(fine[:, ::2, ::2], fitted.predict(x[:, ::2, ::2]), atol=1e-5)


def test_periodic_axes_have_periodic_nodes():
    surrogate = affine(periodic=True).fit(*waves(32, periodic=True))
    x, u = waves(64, seed=5, periodic=True)
    metrics = surrogate.evaluate(x, u, resample=True)
    assert metrics["interpolation_mre"] < 0.01
    assert metrics["mre"] < 0.01


def test_poisson_at_two_resolutions(poisson16):
    """A surrogate of the coarse grid is as good on the fine one as interpolation allows."""
    x, u = (fields.numpy() for fields in make_poisson((31, 31), 40, seed=1))
    coarse = Surrogate("two-scale", predictor="affine", problem="poisson", device="cpu")
    coarse.fit(*poisson16)
    metrics = coarse.evaluate(x, u, resample=True)
    same = coarse.evaluate(x[:, ::2, ::2], u[:, ::2, ::2])
    assert metrics["mre"] < same["mre"] + 3 * metrics["interpolation_mre"]
    assert metrics["residual_rms"] is not None
    assert set(metrics["common_seams"]) == set(same["common_seams"])


def test_every_kind_of_input(fitted):
    x, _ = waves(17, seed=5)
    batch = fitted.predict(x[:2], resample=True)
    one = fitted.predict(torch.from_numpy(x[0]), resample=True)
    assert isinstance(one, torch.Tensor)
    np.testing.assert_allclose(one.numpy(), batch[0], atol=1e-5)
    np.testing.assert_array_equal(fitted.predict(x[:2, None], resample=True), batch)
    parts = [fitted.predict(**given) for _, given in fitted.input_parts(x, resample=True)]
    np.testing.assert_allclose(np.concatenate(parts)[:2], batch, atol=1e-5)


def test_parameters_come_beside_fields_of_any_grid():
    x, u = waves(33)
    p = np.linspace(1, 2, len(x)).astype(np.float32)
    surrogate = affine().fit(x, u + p[:, None, None], parameters=p)
    fine, v = waves(65)
    metrics = surrogate.evaluate(fine, v + p[:, None, None], parameters=p, resample=True)
    assert metrics["mre"] < 0.02
    assert surrogate.predict(fine[:2], parameters=p[:2], resample=True).shape == (2, 65, 65)


def test_outputs_of_a_grid_of_their_own_keep_it():
    x, u = waves(33)
    surrogate = affine().fit(x, u[:, ::2, ::2])
    assert surrogate.predict(waves(65)[0], resample=True).shape == (40, 17, 17)
    assert surrogate.evaluate(*waves(65), resample=True)["resampled_to"]["output"] == [17, 17]


def test_the_way_out_is_named(fitted):
    x, u = waves(17)
    message = "inputs of 33x33 fields, these are 17x17 fields: set resample"
    for call in (lambda: fitted.predict(x), lambda: fitted.evaluate(x, u)):
        with pytest.raises(TwoscaleError, match=message):
            call()


def test_other_channels_stay_refused(fitted):
    x, u = waves(17)
    with pytest.raises(TwoscaleError, match=r"inputs of 33x33 fields, these are 2x17x17 fields$"):
        fitted.predict(np.stack([x, x], 1), resample=True)
    with pytest.raises(TwoscaleError, match=r"outputs of 17x17 fields, these are 2x17x17 fields$"):
        fitted.evaluate(x, np.stack([u, u], 1), resample=True)


def test_a_line_does_not_become_an_image():
    spaces = (Space(Grid((1, 9))), Space(Grid((1, 9))))
    with pytest.raises(TwoscaleError, match="fields on a line and images are not interpolated"):
        Resampling.of_inputs(spaces, Grid((4, 9))).check()
