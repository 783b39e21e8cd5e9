"""Gradients go through `predict` for tensors that ask for them."""

import pytest
import torch

from tests.surrogate.tiny import PREDICTORS, make
from twoscale import Surrogate

CASES = [("two-scale", {"predictor": name}) for name in PREDICTORS]
CASES += [
    ("refinement", {}),
    ("fno", {}),
    ("whole-field", {"predictor": "filter"}),
    ("conforming", {"predictor": "affine"}),
]
CASES += [("global", {"predictor": "affine", "symmetries": "square", "average_symmetries": True})]
STEP = 1e-2


def smooth(*shape, seed=0):
    values = torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
    return values.cumsum(-1) / 4


def difference(function, inputs, direction):
    """Return the central difference of a sum along a direction, in float64."""
    ends = [function(inputs + sign * STEP * direction).double() for sign in (1, -1)]
    return float((ends[0] - ends[1]).sum() / (2 * STEP))


@pytest.mark.parametrize(("method", "settings"), CASES)
@pytest.mark.filterwarnings("ignore::twoscale.TwoscaleWarning")
def test_gradients_are_differences(method, settings):
    x = smooth(24, 16, 16)
    surrogate = make(method, **settings).fit(x, x.cumsum(1) / 4)
    weight, direction = smooth(3, 16, 16, seed=1), smooth(3, 16, 16, seed=2)
    inputs = x[:3].clone().requires_grad_()
    predicted = surrogate.predict(inputs)
    torch.testing.assert_close(predicted.detach(), surrogate.predict(x[:3]), rtol=1e-4, atol=1e-5)
    (predicted * weight).sum().backward()
    expected = difference(lambda at: surrogate.predict(at) * weight, x[:3], direction)
    assert float((inputs.grad * direction).sum()) == pytest.approx(expected, rel=2e-2, abs=1e-3)
    assert all(one.grad is None for one in surrogate.operator_.parameters())


def test_parameters_have_gradients():
    x, p = smooth(24, 8, 8), smooth(24, 2, seed=3)
    u = x.cumsum(2) + p.prod(1)[:, None, None]
    surrogate = make("global", predictor="kernel").fit(x, u, parameters=p)
    scalars = p[:3].clone().requires_grad_()
    surrogate.predict(x[:3], parameters=scalars).sum().backward()
    direction = smooth(3, 2, seed=4)
    expected = difference(lambda at: surrogate.predict(x[:3], parameters=at), p[:3], direction)
    assert float((scalars.grad * direction).sum()) == pytest.approx(expected, rel=2e-2)
    beside = surrogate.predict(x[:3].numpy(), parameters=scalars)
    assert beside.requires_grad


def test_gradients_only_where_asked_for():
    x = smooth(24, 8, 8)
    surrogate = make("global", predictor="affine").fit(x, x.cumsum(2))
    assert not surrogate.predict(x[:2]).requires_grad
    asked = x[:5].clone().requires_grad_()
    with torch.no_grad():
        assert not surrogate.predict(asked).requires_grad
    assert surrogate.predict(asked, batch_size=2).requires_grad


@pytest.mark.gpu
def test_gradients_on_a_gpu_bypass_recordings():
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    x = smooth(24, 16, 16).cuda()
    surrogate = Surrogate("two-scale", epochs=2, coarse_components=4).fit(x, x.cumsum(1) / 4)
    plain = [surrogate.predict(x[:3]) for _ in range(3)]  # the later ones are replayed
    asked = x[:3].clone().requires_grad_()
    predicted = surrogate.predict(asked)
    torch.testing.assert_close(predicted.detach(), plain[-1])
    predicted.sum().backward()
    assert float(asked.grad.abs().sum()) > 0
    assert torch.equal(surrogate.predict(x[:3]), plain[-1])
    assert surrogate.score(x, x.cumsum(1) / 4) < 1
