"""Fields in another unit give the same surrogate in that unit."""

from __future__ import annotations

import pytest

from tests.surrogate.tiny import tiny
from twoscale import METHODS, Surrogate

_FACTORS = (2.0**100, 2.0**-100)  # 1.3e30 and 8e-31; powers of two round nothing

_CASES = [
    *((method, {}) for method in METHODS),
    *(("two-scale", {"predictor": name}) for name in ("affine", "affine-mlp", "kernel", "encoder")),
    *(
        ("two-scale", {"predictor": name, "objective": "field"})
        for name in ("mlp", "affine", "affine-mlp", "kernel")
    ),
    ("two-scale", {"predictor": "encoder", "objective": "vector"}),
    ("whole-field", {"predictor": "filter"}),
    ("two-scale", {"code_size": 40, "coarse_components": 4}),
    ("conforming", {"predictor": "kernel", "objective": "field"}),
]


def fit(poisson16, method, settings, *, factors=(1.0, 1.0)):
    x, u = (fields[:80] * factor for fields, factor in zip(poisson16, factors, strict=True))
    return Surrogate(method, device="cpu", seed=2, **tiny(method, **settings)).fit(x, u)


def distance(one, other):
    return float((one - other).double().norm() / other.double().norm())


@pytest.mark.parametrize(("method", "settings"), _CASES)
def test_predictions_and_errors_do_not_depend_on_the_unit(poisson16, method, settings):
    x, u = (fields[80:90] for fields in poisson16)
    plain = fit(poisson16, method, settings)
    expected, error = plain.predict(x), plain.evaluate(x, u)
    for factors in (_FACTORS, _FACTORS[::-1]):
        scaled = fit(poisson16, method, settings, factors=factors)
        assert distance(scaled.predict(x * factors[0]) / factors[1], expected) < 1e-6
        metrics = scaled.evaluate(x * factors[0], u * factors[1])
        assert scaled.retained == plain.retained
        for name in ("mre", "ssim", "spectral_error"):
            assert metrics[name] == pytest.approx(error[name], rel=1e-6)
        assert metrics["mae"] == pytest.approx(error["mae"] * factors[1], rel=1e-6)
        assert metrics["mse"] == pytest.approx(error["mse"] * factors[1] ** 2, rel=1e-6)


@pytest.mark.parametrize("objective", ["A1", "A3", "A5"])
@pytest.mark.parametrize("factor", _FACTORS)
def test_fine_tuning_does_not_depend_on_the_unit(poisson16, objective, factor):
    x, u = poisson16
    options = {"objective": objective, "epochs": 7, "warm_up": 2}

    def tuned(factor):
        base = fit(poisson16, "two-scale", {"predictor": "affine"}, factors=(factor, factor))
        base.problem = Surrogate(problem="poisson").problem
        return base.finetune(x[:80] * factor, u[:80] * factor, **options)

    plain, scaled = tuned(1.0), tuned(factor)
    assert distance(scaled.predict(x[80:] * factor) / factor, plain.predict(x[80:])) < 1e-6
    for name, weight in plain.finetuning_["weights"].items():
        relative = name == "spectral"
        expected = weight if relative else weight / factor
        assert scaled.finetuning_["weights"][name] == pytest.approx(expected, rel=1e-6)
        first, last = (one.history_["finetuning"]["components"][name] for one in (plain, scaled))
        assert last == pytest.approx([v * (1 if relative else factor) for v in first], rel=1e-6)
