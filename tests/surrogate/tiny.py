"""Settings small enough that every method is fitted in a moment on 16 x 16 fields."""

from __future__ import annotations

from typing import Any

from twoscale import METHODS, Surrogate
from twoscale.methods.recipes import assemble, defaults, resolve
from twoscale.operators.operators import FieldOperator

_LATENT = {"epochs": 3, "hidden_layers": 1, "hidden_width": 8}

TINY: dict[str, dict[str, Any]] = {
    "global": _LATENT,
    "local": _LATENT,
    "overlap": _LATENT,
    "refinement": {**_LATENT, "refinement_epochs": 2, "channels": 3},
    "fno": {"epochs": 2, "layers": 1, "width": 3, "modes": 3, "padding": 2},
    "two-scale": {**_LATENT, "coarse_components": 4},
    "three-scale": {**_LATENT, "coarse_components": 4},
    "conforming": {**_LATENT, "code_size": 40},
    "whole-field": {"epochs": 2, "width": 4, "blocks": 1},
}

assert set(TINY) == set(METHODS), "every method needs tiny settings here"


PREDICTORS: dict[str, dict[str, Any]] = {
    "mlp": _LATENT,
    "affine": {},
    "affine-mlp": _LATENT,
    "kernel": {},
    "encoder": {"epochs": 1, "width": 4, "blocks": 1},
    "fno": {"epochs": 1, "layers": 1, "width": 3, "modes": 3, "padding": 2},
    "filter": {},
}


def tiny(method: str, **settings: Any) -> dict[str, Any]:
    """Return tiny settings with others in place of some; a predictor brings its own."""
    usual = TINY[method]
    if "predictor" in settings:
        own = PREDICTORS[{"fno": "fno", "whole-field": "encoder"}.get(method, "mlp")]
        usual = {name: value for name, value in usual.items() if name not in own}
        usual |= PREDICTORS.get(settings["predictor"], {})
    choices = {name: settings[name] for name in ("base", "predictor") if name in settings}
    known = defaults(method, choices)
    usual = {name: value for name, value in usual.items() if name in known}
    return usual | settings


def make(method: str, **options: Any) -> Surrogate:
    """Return a tiny surrogate on the CPU, to be fitted."""
    own = {name: options.pop(name) for name in ("seed", "problem", "periodic") if name in options}
    return Surrogate(method, device="cpu", **own, **tiny(method, **options))


def build(method: str, **settings: Any) -> FieldOperator:
    """Return a tiny operator, to be fitted."""
    return assemble(method, resolve(method, tiny(method, **settings))).operator()


# What metrics.json holds at least.
RECORD = {
    "mre",
    "oracle_mre",
    "mse",
    "mae",
    "ssim",
    "spectral_error",
    "value_jump",
    "normal_derivative_jump",
    "value_trace_error",
    "normal_derivative_trace_error",
    "common_seams",
    "residual_rms",
    "residual_mean_abs",
    "input_code",
    "output_code",
    "parameters",
    "timings",
}

_TRANSFORMED = {"pca_input", "transform", "training"}

# The stages of every method's fit that are timed.
STAGES = {
    "global": _TRANSFORMED | {"pca_output"},
    "local": _TRANSFORMED | {"pca_output"},
    "overlap": _TRANSFORMED | {"pca_output"},
    "refinement": _TRANSFORMED | {"pca_output", "refinement"},
    "fno": {"transform", "training"},
    "two-scale": _TRANSFORMED | {"pca_coarse", "pca_residual", "pca_overhead"},
    "three-scale": _TRANSFORMED | {"pca_coarse", "pca_middle", "pca_residual", "pca_overhead"},
    "conforming": _TRANSFORMED | {"pca_skeleton", "pca_bubbles", "pca_overhead"},
    "whole-field": {"transform", "training"},
}
