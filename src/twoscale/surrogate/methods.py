"""The methods by name: settings with the paper's protocol as defaults, and what they build."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from twoscale.baselines import FNO2d, RefinementNet
from twoscale.errors import TwoscaleError
from twoscale.grid import Grid
from twoscale.linalg.pca import RankRule
from twoscale.predictors import FieldEncoder
from twoscale.predictors.kernel import KERNELS, LENGTH_SCALES
from twoscale.representation import (
    Chain,
    Conforming,
    GlobalPCA,
    PatchPCA,
    Representation,
    ThreeScale,
    TwoScale,
    WholeField,
    stage_rule,
)
from twoscale.surrogate.closed_form import AffineMLPPredictor, AffinePredictor, KernelPredictor
from twoscale.surrogate.encoder import EncoderPredictor
from twoscale.surrogate.operators import (
    FieldOperator,
    FullFieldOperator,
    LatentOperator,
    RefinedOperator,
)
from twoscale.surrogate.prediction import CodePredictor, MLPPredictor
from twoscale.surrogate.settings import OPTIMISERS, resolve_settings
from twoscale.training import Plan

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class Method:
    """A way to make a surrogate: the paper's name for it, defaults, and how it is built."""

    title: str
    defaults: dict[str, Any]
    build: Callable[[Grid, Settings], FieldOperator]
    whole_fields: bool = False  # a network is trained on fields, which must be in memory


def get_method(name: str) -> Method:
    """Return the method of that name."""
    if name not in METHODS:
        hint = "; fit_auto searches for one" if name == "auto" else ""
        raise TwoscaleError(f"no method is called '{name}': known are {', '.join(METHODS)}{hint}")
    return METHODS[name]


def resolve(name: str, given: Settings) -> dict[str, Any]:
    """Return the full settings of a method with `given` ones in place, checked."""
    method = get_method(name)
    defaults = method.defaults
    if "base" in defaults and "base" in given:
        choice = resolve_settings(f"method {name}", defaults, {"base": given["base"]})
        defaults = _refinement_defaults(choice["base"])
    if "predictor" in defaults and given.get("predictor") == "encoder":
        defaults = _encoder_defaults(defaults, str(given.get("optimiser", "muon")))
    return resolve_settings(f"method {name}", defaults, given)


def trains_on_fields(name: str, settings: Settings) -> bool:
    """Say whether a method with these settings trains a network on fields, to be held in memory."""
    return get_method(name).whole_fields or settings.get("predictor") == "encoder"


def _plan(
    settings: Settings,
    prefix: str = "",
    *,
    evaluation_batch: int = 64,
    small: bool = False,
    tuned: bool = False,
) -> Plan:
    return Plan(
        epochs=settings[f"{prefix}epochs"],
        batch_size=settings[f"{prefix}batch_size"],
        learning_rate=settings[f"{prefix}learning_rate"],
        weight_decay=settings[f"{prefix}weight_decay"],
        patience=settings.get(f"{prefix}patience", 1),
        early_stop=settings.get(f"{prefix}early_stop"),
        evaluation_batch=settings.get("evaluation_batch", evaluation_batch),
        small=small,
        on_fields=not small,
        tuned=tuned,
        one_cycle=f"{prefix}patience" not in settings,  # what has no plateaus to wait for
        clip=settings.get(f"{prefix}clip"),
        optimiser=settings.get(f"{prefix}optimiser", "adam"),
    )


def _latent(
    grid: Grid,
    settings: Settings,
    make_inputs: Callable[[], Representation],
    outputs: Representation,
) -> LatentOperator:
    reads_fields = settings["predictor"] == "encoder"
    return LatentOperator(
        WholeField(grid.shape) if reads_fields else make_inputs(),
        _encoder(grid, settings) if reads_fields else _predictor(settings),
        outputs,
        symmetries=settings["symmetries"],
        average=settings["average_symmetries"],
    )


def _encoder(grid: Grid, settings: Settings) -> EncoderPredictor:
    return EncoderPredictor(
        grid.shape,
        **{name: settings[name] for name in ("width", "blocks", "cut", "objective")},
        plan=_plan(settings),
    )


def _predictor(settings: Settings) -> CodePredictor:
    name, ridge = settings["predictor"], settings["ridge"]
    nearest = settings["objective"] == "field"
    if name == "kernel":
        kernel, length = settings["kernel"], settings["length_scale"]
        return KernelPredictor(
            kinds=tuple(KERNELS) if kernel is None else (kernel,),
            length_scales=LENGTH_SCALES if length is None else (length,),
            ridge=ridge,
            most=settings["kernel_samples"],
            nearest=nearest,
        )
    affine = AffinePredictor(ridge=ridge, nearest=nearest)
    if name == "affine":
        return affine
    network = MLPPredictor(
        hidden=(settings["hidden_width"],) * settings["hidden_layers"],
        objective=settings["objective"],
        plan=_plan(settings, evaluation_batch=8192, small=True),
    )
    return AffineMLPPredictor(affine, network) if name == "affine-mlp" else network


def _single_solver(settings: Settings) -> str:
    """Return the solver of a representation without a coarse stage; hybrid is full there."""
    return "full" if settings["solver"] == "hybrid" else settings["solver"]


def _patch_pca(settings: Settings, variance: str, *, overlap: bool = False) -> PatchPCA:
    return PatchPCA(
        RankRule(variance=settings[variance]),
        patches=settings["patches"],
        overlap=overlap,
        solver=_single_solver(settings),
    )


def _build_global(grid: Grid, settings: Settings) -> FieldOperator:
    def pca(name: str, code_size: int | None = None) -> GlobalPCA:
        return GlobalPCA(stage_rule(settings[name], code_size), solver=_single_solver(settings))

    outputs = pca("output_variance", settings["code_size"])
    return _latent(grid, settings, lambda: pca("input_variance"), outputs)


def _build_local(grid: Grid, settings: Settings, *, overlap: bool = False) -> FieldOperator:
    pca = partial(_patch_pca, settings, overlap=overlap)
    return _latent(grid, settings, lambda: pca("input_variance"), pca("output_variance"))


def _build_overlap(grid: Grid, settings: Settings) -> FieldOperator:
    return _build_local(grid, settings, overlap=True)


def _build_chain(
    grid: Grid, settings: Settings, *, chain: Callable[..., Chain], names: Collection[str]
) -> FieldOperator:
    outputs = chain(**{name: settings[name] for name in names})
    return _latent(grid, settings, lambda: _patch_pca(settings, "input_variance"), outputs)


def _build_refinement(grid: Grid, settings: Settings) -> FieldOperator:
    base = METHODS[settings["base"]].build(grid, settings)
    channels = settings["channels"]
    correction = FullFieldOperator(
        lambda seed: RefinementNet(channels=channels, seed=seed),
        _plan(settings, "refinement_", tuned=True),
    )
    return RefinedOperator(base, correction)


def _build_fno(grid: Grid, settings: Settings) -> FieldOperator:
    most = min((side + settings["padding"]) // 2 for side in grid.shape)
    if settings["modes"] > most:
        raise TwoscaleError(
            f"a {grid} grid has at most {most} Fourier modes per direction, "
            f"got modes={settings['modes']}"
        )
    names = ("layers", "width", "modes", "padding")
    sizes = {name: settings[name] for name in names}
    return FullFieldOperator(lambda seed: FNO2d(**sizes, seed=seed), _plan(settings, tuned=True))


def _defaults(maker: Callable[..., Any], *names: str) -> dict[str, Any]:
    """Return the default arguments of what a method builds, so that each stands in one place."""
    arguments = inspect.signature(maker).parameters
    return {name: arguments[name].default for name in names or arguments}


_LATENT: dict[str, Any] = {
    **_defaults(PatchPCA, "patches"),
    "input_variance": 0.99,
    "output_variance": 0.99,
    **_defaults(PatchPCA, "solver"),
    "symmetries": "none",
    "average_symmetries": False,
    "predictor": "mlp",
    "ridge": None,
    "kernel": None,
    "length_scale": None,
    "kernel_samples": None,
    "objective": "vector",
    "hidden_layers": 3,
    "hidden_width": 128,
    "epochs": 500,
    "batch_size": 32,
    "learning_rate": 1e-3,
    "weight_decay": 1e-4,
    "patience": 30,
}


ENCODER: dict[str, Any] = {
    **_defaults(FieldEncoder, "width", "blocks", "cut"),
    "predictor": "encoder",
    "objective": "field",
    "epochs": 30,
    "batch_size": 32,
    "evaluation_batch": 64,
    "optimiser": "muon",
    **OPTIMISERS["muon"],
    "weight_decay": 0.0,
}

_ON_CODES = {
    *("input_variance", "ridge", "kernel", "length_scale", "kernel_samples"),
    *("hidden_layers", "hidden_width", "patience"),
}


def _encoder_defaults(defaults: Settings, optimiser: str) -> dict[str, Any]:
    """Return a latent method's defaults with an encoder in place of a predictor on codes."""
    others = {name: value for name, value in defaults.items() if name not in _ON_CODES}
    return others | ENCODER | OPTIMISERS.get(optimiser, {})


def _chain_method(title: str, chain: Callable[..., Chain]) -> Method:
    """Return the method of a chain, whose arguments are settings."""
    chosen = _defaults(chain)
    latent = {name: value for name, value in _LATENT.items() if name != "output_variance"}
    defaults = {**latent, **chosen, "objective": "block-balanced"}
    return Method(title, defaults, partial(_build_chain, chain=chain, names=chosen.keys()))


_REFINEMENT: dict[str, Any] = {
    "refinement_epochs": 25,
    "refinement_batch_size": 32,
    "refinement_learning_rate": 1e-3,
    "refinement_weight_decay": 1e-4,
    "refinement_patience": 10,
    **_defaults(RefinementNet, "channels"),
}

_FNO: dict[str, Any] = {
    **_defaults(PatchPCA, "patches"),
    **_defaults(FNO2d, "layers", "width", "modes", "padding"),
    "epochs": 100,
    "batch_size": 16,
    "evaluation_batch": 64,
    "learning_rate": 1e-3,
    "weight_decay": 0.0,
    "patience": 5,
    "early_stop": 15,
}


def _refinement_defaults(base: str) -> dict[str, Any]:
    return {"base": base, **METHODS[base].defaults, **_REFINEMENT}


METHODS: dict[str, Method] = {
    "global": Method("Global PCA-Net", {**_LATENT, "code_size": None}, _build_global),
    "local": Method("Plain L2L", _LATENT, _build_local),
    "overlap": Method("L2L + overlap", _LATENT, _build_overlap),
    "refinement": Method(
        "L2L + RefinementNet",
        {"base": "local", **_LATENT, **_REFINEMENT},
        _build_refinement,
        whole_fields=True,
    ),
    "fno": Method("FNO", _FNO, _build_fno, whole_fields=True),
    "two-scale": _chain_method("Two-scale", TwoScale),
    "three-scale": _chain_method("Three-scale", ThreeScale),
    "conforming": _chain_method("Conforming", Conforming),
}
