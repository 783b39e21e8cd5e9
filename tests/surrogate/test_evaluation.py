import math
from functools import partial

import pytest
import torch

from tests.representation.contract import Chunks
from tests.sources import field_pairs, fit_on
from twoscale import Grid, Poisson, Surrogate
from twoscale.errors import TwoscaleWarning
from twoscale.methods.recipes import assemble, resolve
from twoscale.networks import count_parameters
from twoscale.surrogate.evaluation import evaluate_operator, warn_of_failure
from twoscale.surrogate.prediction import called

COMMON = Grid.square(16).partition((4, 4))
SEAM_KEYS = {
    "value_jump",
    "normal_derivative_jump",
    "value_trace_error",
    "normal_derivative_trace_error",
}


@pytest.fixture(scope="module")
def overlap(poisson16):
    """An operator whose native seams differ from the common ones, fitted for a moment."""
    x, u = poisson16.batch
    pairs = field_pairs(Chunks(x[:150]), Chunks(u[:150]))
    settings = resolve("overlap", {"epochs": 2, "hidden_width": 8, "output_variance": 0.9})
    operator = assemble("overlap", settings).operator()
    return fit_on(operator, pairs, pairs)


@pytest.fixture(scope="module")
def held_out(poisson16):
    x, u = poisson16.batch
    return x[150:], u[150:]


def evaluate(operator, fields, *, predict=None, lengths=(50,), **options):
    x, u = fields
    pairs = field_pairs(Chunks(x, lengths), Chunks(u, lengths))
    with torch.no_grad():
        options = {"problem": None, "names": ("0",)} | options
        return evaluate_operator(
            operator, predict or partial(called, operator), pairs, common=COMMON, **options
        )


def test_the_metrics_by_their_formulas(overlap, held_out):
    x, u = held_out
    metrics = evaluate(overlap, held_out, problem=Poisson())
    with torch.no_grad():
        prediction = overlap(x).double()
        oracle = overlap.outputs.reconstruct(u).double()
    truth = u.double()
    error = prediction - truth
    residual = Poisson().residual(x.double(), prediction)
    expected = {
        "mre": error.norm() / truth.norm(),
        "oracle_mre": (oracle - truth).norm() / truth.norm(),
        "mse": error.square().mean(),
        "mae": error.abs().mean(),
        "residual_rms": residual.square().mean().sqrt(),
        "residual_mean_abs": residual.abs().mean(),
    }
    for name, value in expected.items():
        assert metrics[name] == pytest.approx(float(value), rel=1e-6), name
    assert metrics["input_code"] == overlap.inputs.code_size
    assert metrics["output_code"] == overlap.outputs.code_size
    assert metrics["parameters"] == count_parameters(overlap.predictor)
    assert metrics["samples"] == 50


def test_the_representation_alone_has_seams_too(overlap, held_out):
    metrics = evaluate(overlap, held_out)
    oracle = overlap.outputs.reconstruct(held_out[1])
    expected = evaluate(overlap, held_out, predict=lambda x: oracle)["common_seams"]
    for name, value in metrics["oracle_seams"].items():
        assert value == pytest.approx(expected[name], rel=1e-6), name


def test_native_and_common_seams(overlap, held_out):
    x, _ = held_out
    metrics = evaluate(overlap, held_out)
    with torch.no_grad():
        prediction = overlap(x).double()

    def value_jump(lines):
        rows = [(prediction[:, :, b] - prediction[:, :, b - 1]).abs() for b in lines]
        columns = [(prediction[..., b] - prediction[..., b - 1]).abs() for b in lines]
        return float(torch.cat(rows + columns).mean())

    assert set(metrics["common_seams"]) == SEAM_KEYS
    assert set(metrics) >= SEAM_KEYS
    assert metrics["value_jump"] == pytest.approx(value_jump(range(2, 16, 2)), rel=1e-6)
    assert metrics["common_seams"]["value_jump"] == pytest.approx(value_jump([4, 8, 12]), rel=1e-6)


def test_the_truth_is_a_perfect_prediction(overlap, held_out):
    x, u = held_out
    answers = {x[k].numpy().tobytes(): u[k] for k in range(len(x))}

    def predict(inputs):
        return torch.stack([answers[field.numpy().tobytes()] for field in inputs.fields])

    metrics = evaluate(overlap, held_out, predict=predict, problem=Poisson())
    for name in ("mre", "mse", "mae", "spectral_error", "value_trace_error"):
        assert metrics[name] == 0.0
    assert metrics["ssim"] == pytest.approx(1.0)
    assert metrics["residual_rms"] < 1e-3
    assert metrics["value_jump"] > 0


def test_chunks_do_not_matter(overlap, held_out):
    whole = evaluate(overlap, held_out, problem=Poisson())
    parts = evaluate(overlap, held_out, problem=Poisson(), lengths=(7, 1, 13))
    for name, value in whole.items():
        if isinstance(value, float):
            assert parts[name] == pytest.approx(value, rel=1e-4), name


def test_only_inference_is_timed_here(overlap, held_out):
    assert set(evaluate(overlap, held_out)["timings"]) == {"inference"}


def test_errors_of_one_and_more_are_told(recwarn):
    warn_of_failure({"mre": 0.9})
    assert not recwarn.list
    with pytest.warns(TwoscaleWarning, match="is 250 %: fields of zeros would be no worse"):
        warn_of_failure({"mre": 2.5})
    with pytest.warns(TwoscaleWarning, match="is infinite or undefined"):
        warn_of_failure({"mre": None})


@torch.no_grad()
def test_relative_errors_of_zero_fields_are_none(overlap):
    zeros = field_pairs(Chunks(torch.ones(5, 1, 16, 16)), Chunks(torch.zeros(5, 1, 16, 16)))
    metrics = evaluate_operator(
        overlap, partial(called, overlap), zeros, common=COMMON, problem=None, names=("0",)
    )
    assert metrics["mre"] is None
    assert metrics["mae"] > 0


def test_two_overall_errors_and_those_of_each_sample(overlap, held_out):
    x, u = held_out
    x, u = x[:6], u[:6] * torch.tensor([1, 1, 1, 1, 0.01, 0]).reshape(-1, 1, 1, 1)
    metrics = evaluate(overlap, (x, u), lengths=(4,), per_sample=True)
    with torch.no_grad():
        errors = (overlap(x) - u).double().flatten(1).norm(dim=1) / u.double().flatten(1).norm(
            dim=1
        )
    assert metrics["pooled_error"] == metrics["mre"]
    assert metrics["mean_relative_l2"] == pytest.approx(float(errors[:5].mean()), rel=1e-6)
    assert metrics["mean_relative_l2"] != pytest.approx(metrics["mre"], rel=0.1)
    with torch.no_grad():
        l1 = (overlap(x) - u).double().abs().flatten(1).sum(1) / u.double().abs().flatten(1).sum(1)
    assert metrics["median_relative_l1"] == pytest.approx(float(l1[:5].median()), rel=1e-6)
    assert metrics["per_sample"].keys() == {"error"}
    assert metrics["per_sample"]["error"][:5] == pytest.approx(errors[:5].numpy(), rel=1e-6)
    assert math.isnan(metrics["per_sample"]["error"][5])  # relative to a field of zeros
    assert "per_sample" not in evaluate(overlap, (x, u))


def test_errors_of_each_sample_and_channel():
    x = torch.randn(30, 8, 8, generator=torch.Generator().manual_seed(0))
    u = torch.stack([x, 1000 * x.cumsum(1)], 1)
    surrogate = Surrogate("global", predictor="affine", code_size=20, device="cpu").fit(x, u)
    metrics = surrogate.evaluate(x, u, per_sample=True)
    each = metrics["per_sample"]["channels"]
    assert list(each) == list(metrics["channels"])
    squares = [values**2 for values in each.values()]
    assert metrics["per_sample"]["error"] == pytest.approx((sum(squares) / 2) ** 0.5)
    error = (surrogate.predict(x) - u)[:, 1].flatten(1).norm(dim=1) / u[:, 1].flatten(1).norm(dim=1)
    assert list(each.values())[1] == pytest.approx(error.numpy(), rel=1e-4)
