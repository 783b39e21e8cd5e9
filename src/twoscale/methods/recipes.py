"""The methods by name: settings with the paper's protocol as defaults, and what they build."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.linalg.pca import RankRule
from twoscale.methods.settings import SETTINGS, resolve_settings
from twoscale.networks import FNO2d, RefinementNet
from twoscale.operators.operators import (
    FieldOperator,
    FullFieldOperator,
    LatentOperator,
    RefinedOperator,
)
from twoscale.predictors.plans import Settings, plan_of
from twoscale.predictors.registry import (
    PREDICTORS,
    SETTINGS_TOGETHER,
    defaults_of,
    own_settings,
    with_predictor,
)
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
    owner, defaults = f"method {name}", get_method(name).defaults
    if "base" in defaults and "base" in given:
        choice = resolve_settings(owner, defaults, {"base": given["base"]})
        defaults = _refinement_defaults(choice["base"])
    usual = defaults
    if "predictor" in defaults and "predictor" in given:
        defaults = with_predictor(defaults, given)
    if choices := [f"{key}={given[key]}" for key in ("base", "predictor") if key in given]:
        owner += f" with {', '.join(choices)}"
    if "variance" in given and "code_size" not in given and "variance" in defaults:
        defaults = {**defaults, "code_size": None}  # one of the two decides
    # Settings of a predictor of somebody's own that mean something else than ours of their name.
    other = {key for key in own_settings(given) & SETTINGS.keys() if not _fits(key, defaults[key])}
    table = {key: setting for key, setting in SETTINGS.items() if key not in other}
    owners = {key: _owners(key, usual) for key in given.keys() - defaults.keys() - usual.keys()}
    return resolve_settings(owner, defaults, given, table=table, owners=owners)


def _owners(setting: str, defaults: Settings) -> list[str]:
    """Return the methods, bases or predictors with a setting that these defaults lack."""
    having = [name for name, method in METHODS.items() if setting in method.defaults]
    if "base" in defaults:
        having = [f"base={name}" for name in having if _fits("base", name)]
    if "predictor" in defaults:
        found = PREDICTORS.items()
        having += [f"predictor={name}" for name, kind in found if setting in kind.settings]
    return having


def _fits(name: str, value: Any) -> bool:
    """Say whether a value could be one of our setting of that name."""
    try:
        SETTINGS[name].read(value)
    except ValueError:
        return False
    return True


def trains_on_fields(name: str, settings: Settings) -> bool:
    """Say whether a method with these settings trains a network on fields, to be held in memory."""
    kind = PREDICTORS.get(settings.get("predictor", ""))
    return get_method(name).whole_fields or (kind is not None and kind.predictor.reads_fields)


def _latent(
    grid: Grid,
    settings: Settings,
    make_inputs: Callable[[], Representation],
    outputs: Representation,
) -> LatentOperator:
    predictor = PREDICTORS[settings["predictor"]].build(grid, settings)
    return LatentOperator(
        WholeField(grid.shape) if predictor.reads_fields else make_inputs(),
        predictor,
        outputs,
        symmetries=settings["symmetries"],
        average=settings["average_symmetries"],
    )


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
        plan_of(settings, "refinement_", tuned=True),
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
    return FullFieldOperator(lambda seed: FNO2d(**sizes, seed=seed), plan_of(settings, tuned=True))


_LATENT: dict[str, Any] = {
    **defaults_of(PatchPCA, "patches"),
    "input_variance": 0.99,
    "output_variance": 0.99,
    **defaults_of(PatchPCA, "solver"),
    "symmetries": "none",
    "average_symmetries": False,
    "predictor": "mlp",
    "objective": "vector",
    **SETTINGS_TOGETHER,
}


def _chain_method(title: str, chain: Callable[..., Chain]) -> Method:
    """Return the method of a chain, whose arguments are settings."""
    chosen = defaults_of(chain)
    latent = {name: value for name, value in _LATENT.items() if name != "output_variance"}
    defaults = {**latent, **chosen, "objective": "block-balanced"}
    return Method(title, defaults, partial(_build_chain, chain=chain, names=chosen.keys()))


_REFINEMENT: dict[str, Any] = {
    "refinement_epochs": 25,
    "refinement_batch_size": 32,
    "refinement_learning_rate": 1e-3,
    "refinement_weight_decay": 1e-4,
    "refinement_patience": 10,
    **defaults_of(RefinementNet, "channels"),
}

_FNO: dict[str, Any] = {
    **defaults_of(PatchPCA, "patches"),
    **defaults_of(FNO2d, "layers", "width", "modes", "padding"),
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
