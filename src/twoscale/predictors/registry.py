"""The predictors by name: what they are, their settings, and how they are built from them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.networks import FieldEncoder
from twoscale.predictors.base import CodePredictor, MLPPredictor
from twoscale.predictors.closed_form import AffineMLPPredictor, AffinePredictor, KernelPredictor
from twoscale.predictors.encoder import EncoderPredictor
from twoscale.predictors.kernel import KERNELS, LENGTH_SCALES
from twoscale.predictors.plans import Settings, plan_of

Arguments = dict[str, Any]


@dataclass(frozen=True)
class PredictorKind:
    """A predictor that settings can name: what it is, and what its class is made with.

    `settings` are those it has beside the representations', or with another default than theirs.
    """

    title: str
    predictor: type[CodePredictor]
    settings: dict[str, Any]
    arguments: Callable[[Grid, Settings], Arguments]

    def build(self, grid: Grid, settings: Settings) -> CodePredictor:
        """Return the predictor for fields on a grid, not yet fitted."""
        return self.predictor(**self.arguments(grid, settings))


def _affine(grid: Grid, settings: Settings) -> Arguments:
    return {"ridge": settings["ridge"], "nearest": settings["objective"] == "field"}


def _mlp(grid: Grid, settings: Settings) -> Arguments:
    return {
        "hidden": (settings["hidden_width"],) * settings["hidden_layers"],
        "objective": settings["objective"],
        "plan": plan_of(settings, evaluation_batch=8192, small=True),
    }


def _affine_mlp(grid: Grid, settings: Settings) -> Arguments:
    return {
        "affine": AffinePredictor(**_affine(grid, settings)),
        "correction": MLPPredictor(**_mlp(grid, settings)),
    }


def _kernel(grid: Grid, settings: Settings) -> Arguments:
    kernel, length = settings["kernel"], settings["length_scale"]
    return {
        "kinds": tuple(KERNELS) if kernel is None else (kernel,),
        "length_scales": LENGTH_SCALES if length is None else (length,),
        "most": settings["kernel_samples"],
        **_affine(grid, settings),
    }


def _encoder(grid: Grid, settings: Settings) -> Arguments:
    names = ("width", "blocks", "cut", "objective")
    own = {name: settings[name] for name in names}
    return {"shape": grid.shape, **own, "plan": plan_of(settings)}


def defaults_of(maker: Callable[..., Any], *names: str) -> dict[str, Any]:
    """Return the default arguments of what is built, so that each stands in one place."""
    arguments = inspect.signature(maker).parameters
    return {name: arguments[name].default for name in names or arguments}


_RIDGE: dict[str, Any] = {"ridge": None}

_NETWORK: dict[str, Any] = {
    "hidden_layers": 3,
    "hidden_width": 128,
    "epochs": 500,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "weight_decay": 1e-4,
    "patience": 30,
}

_KERNEL: dict[str, Any] = {"kernel": None, "length_scale": None, "kernel_samples": None}

OPTIMISERS: dict[str, dict[str, Any]] = {
    "muon": {"learning_rate": 4e-3, "clip": None},
    "adam": {"learning_rate": 1e-3, "clip": 0.1},
}
"""Of an encoder, with what suits them."""

_ENCODER: dict[str, Any] = {
    **defaults_of(FieldEncoder, "width", "blocks", "cut"),
    "objective": "field",
    "epochs": 30,
    "batch_size": 32,
    "evaluation_batch": 64,
    "optimiser": "muon",
    **OPTIMISERS["muon"],
    "weight_decay": 0.0,
}

PREDICTORS: dict[str, PredictorKind] = {
    "mlp": PredictorKind("the paper's network", MLPPredictor, _NETWORK, _mlp),
    "affine": PredictorKind("ridge regression", AffinePredictor, _RIDGE, _affine),
    "affine-mlp": PredictorKind(
        "ridge regression, and a network on what it leaves",
        AffineMLPPredictor,
        _RIDGE | _NETWORK,
        _affine_mlp,
    ),
    "kernel": PredictorKind("kernel ridge regression", KernelPredictor, _RIDGE | _KERNEL, _kernel),
    "encoder": PredictorKind("convolutional network", EncoderPredictor, _ENCODER, _encoder),
}

_BUILT_IN = tuple(PREDICTORS)
_RESERVED = {"method", "seed", "device", "problem"}

TOGETHER = ("mlp", "affine", "affine-mlp", "kernel")
"""Predictors that have each other's settings as well: records are named by all of them. Any other
predictor has its own settings only."""

SETTINGS_TOGETHER: dict[str, Any] = {
    key: value for name in TOGETHER for key, value in PREDICTORS[name].settings.items()
}


def with_predictor(defaults: Settings, given: Settings) -> dict[str, Any]:
    """Return a latent method's defaults with those of the given predictor in place."""
    name = str(given["predictor"])
    if name not in PREDICTORS:
        raise TwoscaleError(
            f"predictor must be one of {', '.join(PREDICTORS)}, got '{name}': "
            "one of your own has to be made known first, by twoscale.register_predictor"
        )
    if name in TOGETHER:
        return dict(defaults)
    kind = PREDICTORS[name]
    unseen = {"input_variance"} if kind.predictor.reads_fields else set()
    others = {k: v for k, v in defaults.items() if k not in SETTINGS_TOGETHER.keys() | unseen}
    optimiser = str(given.get("optimiser", kind.settings.get("optimiser")))
    suited = {k: v for k, v in OPTIMISERS.get(optimiser, {}).items() if k in kind.settings}
    return others | kind.settings | suited | {"predictor": name}


def own_settings(given: Settings) -> set[str]:
    """Return the settings of the given predictor, if it is somebody's own."""
    name = str(given.get("predictor"))
    return set() if name in _BUILT_IN or name not in PREDICTORS else {*PREDICTORS[name].settings}


def register_predictor(name: str, predictor: type[CodePredictor], *, title: str = "") -> None:
    """Let `Surrogate(predictor=name)` use a predictor of one's own.

    The arguments of its constructor are its settings, with their defaults; but for `shape`, the
    fields' (height, width), and `nearest`, which is true with objective=field. A surrogate is saved
    with the name: whoever loads it registers the predictor before.
    """
    if not (isinstance(predictor, type) and issubclass(predictor, CodePredictor)):
        raise TwoscaleError(f"a predictor is a subclass of CodePredictor, got {predictor!r}")
    if missing := sorted(getattr(predictor, "__abstractmethods__", ())):
        raise TwoscaleError(f"{predictor.__name__} lacks {', '.join(missing)}: see CodePredictor")
    if name in _BUILT_IN:
        raise TwoscaleError(f"'{name}' is one of twoscale's own predictors: take another name")
    taken = defaults_of(predictor)
    settings = {key: value for key, value in taken.items() if key not in ("shape", "nearest")}
    if reserved := settings.keys() & _RESERVED:
        raise TwoscaleError(
            f"{', '.join(sorted(reserved))} of {predictor.__name__} would be taken for that of the "
            "surrogate: name the argument otherwise"
        )
    if bare := [key for key, value in settings.items() if value is inspect.Parameter.empty]:
        raise TwoscaleError(
            f"the arguments of {predictor.__name__} are settings and need defaults: "
            f"give one to {', '.join(bare)}"
        )

    def arguments(grid: Grid, chosen: Settings) -> Arguments:
        offered = {**chosen, "shape": grid.shape, "nearest": chosen["objective"] == "field"}
        return {key: offered[key] for key in taken}

    PREDICTORS[name] = PredictorKind(title or name, predictor, settings, arguments)
