"""Derivatives of fitted operators, beside differences."""

import pytest
import torch

from tests.surrogate.tiny import make
from twoscale.serve import ServedModel
from twoscale.serve.derivatives import jacobian_action

STEP = 1e-5
CASES = [
    ("two-scale", {"predictor": "affine-mlp"}),
    ("global", {"predictor": "kernel"}),
    ("whole-field", {}),
    ("fno", {}),
    ("refinement", {}),
    ("conforming", {"predictor": "affine"}),
]


def normal(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def run(call):
    (result,) = call.work(call.arguments)
    return result


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case[0])
def model(request):
    method, settings = request.param
    x = normal(24, 12, 12).cumsum(-1).float() / 4
    return ServedModel(make(method, **settings).fit(x, (x**2).cumsum(1) / 4), points="3x3")


@pytest.mark.filterwarnings("ignore::twoscale.TwoscaleWarning")
def test_derivatives_are_differences(model):
    """For two samples at once: gradient, Jacobian and Hessian."""
    at = [normal(2, 144, seed=1).cumsum(-1) / 12]
    sens, direction = normal(2, 9, seed=2), normal(2, 144, seed=3)
    points = model.points

    def value(shift):
        return run(model.vector_call("Evaluate", [at[0] + shift * direction], points))

    def gradient(shift):
        return run(model.vector_call("Gradient", [at[0] + shift * direction, sens], points, [0]))

    change = (value(STEP) - value(-STEP)) / (2 * STEP)
    along = run(model.vector_call("ApplyJacobian", [*at, direction], points, [0]))
    torch.testing.assert_close(along, change, rtol=1e-3, atol=1e-3 * float(change.abs().max()))
    torch.testing.assert_close(
        (gradient(0) * direction).sum(1), (change * sens).sum(1), rtol=1e-3, atol=1e-6
    )
    curved = (gradient(STEP) - gradient(-STEP)) / (2 * STEP)
    second = run(model.vector_call("ApplyHessian", [*at, sens, direction], points, [0, 0]))
    size = float(gradient(0).abs().max())
    torch.testing.assert_close(second, curved, rtol=1e-3, atol=1e-5 * size)


def test_memory_that_runs_out_is_an_error():
    def function(vectors):
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory")

    with pytest.raises(RuntimeError, match="can't allocate memory"):
        jacobian_action(function, [normal(1, 3)], 0, normal(1, 3))


def test_the_second_derivative_of_a_smooth_step_is_there(darcy):
    model = ServedModel(darcy, inputs="kl:6,width=0.5", points="2x2")
    at, sens, direction = [normal(1, 6)], normal(1, 4, seed=1), normal(1, 6, seed=2)
    ends = [
        run(
            model.vector_call(
                "Gradient", [at[0] + sign * STEP * direction, sens], model.points, [0]
            )
        )
        for sign in (1, -1)
    ]
    expected = (ends[0] - ends[1]) / (2 * STEP)
    found = run(model.vector_call("ApplyHessian", [*at, sens, direction], model.points, [0, 0]))
    assert float(found.abs().max()) > 0
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-6 * float(expected.abs().max()))


def test_parameters_have_derivatives_of_their_own():
    x, p = normal(24, 8, 8).float(), normal(24, 2, seed=3).float()
    surrogate = make("global", predictor="kernel").fit(
        x, x.cumsum(2) + p.prod(1)[:, None, None], parameters=p
    )
    model = ServedModel(surrogate)
    assert model.input_sizes == [64, 2]
    at, sens = [normal(1, 64), normal(1, 2, seed=4)], normal(1, 64, seed=5)
    found = run(model.vector_call("Gradient", [*at, sens], places=[1]))
    steps = STEP * torch.eye(2, dtype=torch.float64)
    changes = [
        run(model.vector_call("Evaluate", [at[0], at[1] + step]))
        - run(model.vector_call("Evaluate", [at[0], at[1] - step]))
        for step in steps
    ]
    expected = torch.stack([(change * sens).sum() for change in changes]) / (2 * STEP)
    torch.testing.assert_close(found[0], expected, rtol=1e-3, atol=1e-6)
    mixed = run(
        model.vector_call("ApplyHessian", [*at, sens, normal(1, 64, seed=6)], places=[1, 0])
    )
    assert mixed.shape == (1, 2)
