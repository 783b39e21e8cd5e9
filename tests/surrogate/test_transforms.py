"""Surrogates whose inputs are transformed: like those fitted on transformed inputs by hand."""

import numpy as np
import pytest
import torch

from tests.surrogate.tiny import PREDICTORS, TINY, make
from twoscale import Darcy, Grid, PatchPCA, Surrogate, Transformed, TwoscaleError, fit_auto
from twoscale.fields.source import ArraySource, MappedSource
from twoscale.problems.random_field import GaussianRandomField

pytestmark = pytest.mark.filterwarnings("ignore::twoscale.TwoscaleWarning")

CASES = [(method, {}) for method in TINY]
CASES += [("two-scale", {"predictor": name}) for name in PREDICTORS]
CASES += [("global", {"predictor": "affine", "symmetries": "square", "average_symmetries": True})]
any_case = pytest.mark.parametrize(("method", "settings"), CASES, ids=str)


@pytest.fixture(scope="module")
def heat():
    """Conductivities from 0.04 to 20 and temperatures, (samples, 16, 16), float32."""
    field = GaussianRandomField().sample(Grid((16, 16)), range(300), entropy=[7])
    conductivity = torch.exp(0.6 * field / field.std())
    return conductivity.float(), Darcy().solve(conductivity).float()


@any_case
def test_it_is_the_fit_on_logarithms(method, settings, heat, tmp_path):
    k, u = (one[:60] for one in heat)
    made = make(method, input_transform="log", **settings).fit(k, u)
    by_hand = make(method, **settings).fit(k.log(), u)
    expected = by_hand.predict(k[:5].log())
    torch.testing.assert_close(made.predict(k[:5]), expected, rtol=1e-4, atol=1e-5)
    made.save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    assert loaded.settings["input_transform"] == "log"
    assert torch.equal(loaded.predict(k[:5]), made.predict(k[:5]))
    inputs = k[:2].clone().requires_grad_()
    logs = k[:2].log().requires_grad_()
    made.predict(inputs).sum().backward()
    by_hand.predict(logs).sum().backward()
    torch.testing.assert_close(inputs.grad * k[:2], logs.grad, rtol=1e-2, atol=1e-4)
    with pytest.raises(TwoscaleError, match="channel '0' has the value 0, and its logarithm is"):
        made.predict(torch.zeros(1, 16, 16))


@pytest.mark.parametrize("predictor", ["affine", "kernel"])
def test_heat_conduction_is_learned_better_from_logarithms(predictor, heat):
    k, u = heat
    options = {"predictor": predictor, "input_variance": 0.999, "objective": "field"}
    errors = {
        transform: make("local", input_transform=transform, output_variance=0.9999, **options)
        .fit(k[:240], u[:240])
        .evaluate(k[240:], u[240:])["mre"]
        for transform in ("none", "log")
    }
    assert errors["log"] < (0.7 if predictor == "affine" else 0.5) * errors["none"]


def test_a_search_takes_the_logarithm_if_it_is_better(heat):
    ticks = iter(range(1000))
    found = fit_auto(*heat, budget=1, device="cpu", clock=lambda: 0.02 * next(ticks))
    assert found.search.best.candidate.transform == "log"
    assert found.surrogate.settings["input_transform"] == "log"
    assert found.search.best.candidate.label.endswith(" log")


def test_a_search_keeps_the_transform_that_is_given(heat):
    k, u = heat
    ticks = iter(range(10_000))
    options = {"budget": 1, "device": "cpu", "clock": lambda: 0.1 * next(ticks)}
    found = fit_auto(k[:60], u[:60], input_transform="reciprocal", **options)
    assert {trial.candidate.transform for trial in found.search.trials} == {"none"}
    assert found.surrogate.settings["input_transform"] == "reciprocal"
    signed = fit_auto(k[:60].log(), u[:60], **options)
    assert {trial.candidate.transform for trial in signed.search.trials} == {"none"}


def test_streams_and_parameters(heat):
    k, u = (one[:60] for one in heat)
    p = np.exp(np.random.default_rng(0).standard_normal((60, 1)))
    made = make("local", predictor="affine", input_transform="log")
    stream = [MappedSource(ArraySource(one[:, None]), lambda chunk: chunk) for one in (k, u)]
    made.fit(*stream, validation=(k[:9], u[:9]))
    expected = made.predict(k[:3])
    made.fit(k, u, validation=(k[:9], u[:9]))
    torch.testing.assert_close(made.predict(k[:3]), expected, rtol=1e-3, atol=1e-5)
    made.fit(k, u * torch.from_numpy(p[:, :, None]).log().float(), parameters=p)
    with pytest.raises(TwoscaleError, match="channel '1' has the value -1, and its logarithm"):
        made.predict(k[:3], parameters=-np.ones((3, 1)))
    made.fit(None, u, parameters=p)
    assert made.operator_.scalars.kinds == ("log",)


def test_residuals_see_the_inputs_themselves(heat):
    k, u = (one[:60] for one in heat)
    made = make("two-scale", input_transform="log", problem="darcy").fit(k, u)
    metrics = made.evaluate(k, u)
    plan = {"objective": "A5", "epochs": 2, "warm_up": 1, "learning_rate": 1e-9}
    tuned = made.finetune(k, u, validation=(k, u), **plan)
    recorded = tuned.history_["finetuning"]["components"]["residual"][-1]
    assert recorded == pytest.approx(metrics["residual_rms"], rel=1e-3)


def test_two_channels_with_a_transform_each(heat):
    k, u = (one[:60] for one in heat)
    both = torch.stack([k, u], 1)
    made = make("local", predictor="affine", input_transform=("log", "none"))
    made.fit(both, u, input_names=["k", "source"])
    assert made.predict(both[:2]).shape == (2, 16, 16)
    assert repr(made.parts.inputs).startswith("Transformed(('log', 'none'), fields=PatchPCA(")
    same = Surrogate(
        inputs=Transformed(("log", "none"), PatchPCA(0.99)), predictor="affine", method="local"
    ).fit(both, u)
    torch.testing.assert_close(same.predict(both[:2]), made.predict(both[:2]))
    both[0, 0] *= -1
    with pytest.raises(TwoscaleError, match="channel 'k' has the value -"):
        made.evaluate(both, u)
