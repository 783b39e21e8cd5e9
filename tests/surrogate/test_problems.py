"""A surrogate and its equation: what the equation sees, and what does not fit it."""

import numpy as np
import pytest
import torch

from twoscale import Affine, PatchPCA, Poisson, Surrogate, TwoscaleError


@pytest.fixture(scope="module")
def with_parameters(poisson16):
    x, u = (fields.numpy() for fields in poisson16)
    scalars = np.random.default_rng(0).uniform(1, 2, (len(x), 2))
    surrogate = Surrogate(
        "two-scale", problem="poisson", predictor="affine", device="cpu", coarse_components=4
    )
    return surrogate.fit(x, u, parameters=scalars), x, u, scalars


def test_an_equation_does_not_see_parameters(with_parameters):
    surrogate, x, u, scalars = with_parameters
    predicted = torch.from_numpy(surrogate.predict(x, parameters=scalars)).double()
    residual = Poisson().residual(torch.from_numpy(x).double(), predicted)
    found = surrogate.evaluate(x, u, parameters=scalars)
    assert found["residual_rms"] == pytest.approx(float(residual.square().mean().sqrt()), rel=1e-6)
    assert found["residual_mean_abs"] == pytest.approx(float(residual.abs().mean()), rel=1e-6)


def test_fine_tuning_on_the_residual_with_parameters_beside(with_parameters):
    surrogate, x, u, scalars = with_parameters
    tuned = surrogate.finetune(x, u, parameters=scalars, objective="A5", epochs=7)
    assert np.isfinite(tuned.predict(x[:2], parameters=scalars[:2])).all()


@pytest.mark.parametrize(
    ("inputs", "parameters"), [("two channels", False), ("another grid", False), (None, True)]
)
def test_fields_that_the_equation_cannot_have_are_refused(poisson16, inputs, parameters):
    x, u = (fields.numpy() for fields in poisson16)
    given = {"two channels": np.stack([x, x], 1), "another grid": x[:, :9], None: None}[inputs]
    scalars = np.ones((len(x), 2)) if parameters else None
    with pytest.raises(TwoscaleError, match="poisson has 1 input and 1 output channels on one"):
        Surrogate("global", problem="poisson").fit(given, u, parameters=scalars)


def test_a_wrap_that_contradicts_the_equation_is_refused():
    with pytest.raises(TwoscaleError, match="periodic=True contradicts poisson"):
        Surrogate(problem="poisson", periodic=True)


@pytest.mark.parametrize("shape", [(3, 50), (2, 2), (5, 5), (1, 3)])
@pytest.mark.parametrize("method", ["local", "overlap", "two-scale"])
def test_short_sides_get_fewer_patches(method, shape):
    x = np.random.default_rng(0).standard_normal((40, *shape))
    settings = {"few_features": False} if method == "two-scale" else {}
    surrogate = Surrogate(method, predictor="affine", device="cpu", **settings).fit(x, 2 * x)
    assert surrogate.predict(x[:2]).shape == (2, *shape)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (lambda: Affine(ridge=-1.0), "ridge must be a fraction from 0 to 1, got '-1.0'"),
        (lambda: Affine(ridge="a"), "ridge must be a fraction"),
    ],
)
def test_arguments_out_of_range_are_refused(part, message):
    with pytest.raises(TwoscaleError, match=message):
        Surrogate(predictor=part())


def test_a_composed_surrogate_is_recorded_as_what_it_is(tmp_path, poisson16):
    x, u = (fields.numpy() for fields in poisson16)
    parts = {"inputs": PatchPCA(0.9), "predictor": Affine(), "outputs": PatchPCA(3, patches=2)}
    surrogate = Surrogate(**parts, device="cpu").fit(x, u)
    assert (surrogate.method, surrogate.settings) == ("composed", {})
    assert surrogate._common_layout().counts == (2, 2)
    surrogate.save(tmp_path / "s")
    loaded = Surrogate.load(tmp_path / "s")
    assert (loaded.method, loaded.settings) == ("composed", {})
    assert repr(loaded) == repr(surrogate)
