"""The methods by name: recipes that turn settings into the parts of a surrogate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from twoscale.errors import TwoscaleError, unknown_name
from twoscale.math.pca import RankRule
from twoscale.methods.settings import SETTINGS, resolve_settings
from twoscale.operators.assembly import Assembly
from twoscale.predictors import PREDICTORS, CodePredictor, Refinement, get_predictor
from twoscale.predictors.registry import defaults_of, is_own
from twoscale.representation import (
    Conforming,
    GlobalPCA,
    PatchPCA,
    Representation,
    ThreeScale,
    Transformed,
    TwoScale,
    WholeField,
    single_solver,
    stage_rule,
)

Settings = Mapping[str, Any]
MakeRepresentation = Callable[[Settings], Representation]


@dataclass(frozen=True)
class Method:
    """A recipe that turns settings into the parts of a surrogate, and how the method is shown.

    Methods are listed and drawn in the order of the table `METHODS`.
    """

    title: str
    """The paper's name for it, in tables and legends."""
    inputs: MakeRepresentation
    """Makes the input representation of resolved settings."""
    outputs: MakeRepresentation
    """Makes the output representation of resolved settings."""
    defaults: dict[str, Any]
    """Settings of the representations, and the name of the predictor. Its own come beside them."""
    corrected: bool = False
    """Whether a RefinementNet follows, made of the settings `refinement_*` and `channels`."""
    colour: str = "#555555"
    """Of its lines and bars in charts, `#rrggbb`."""
    marker: str = "h"
    """Of its points in charts, in matplotlib's notation."""


def _whole(settings: Settings) -> Representation:
    return WholeField()


def _global(settings: Settings, name: str, code_size: int | None = None) -> GlobalPCA:
    rule = stage_rule(settings[name], code_size)
    return GlobalPCA(rule, solver=single_solver(settings["solver"]))


def _patches(settings: Settings, name: str, *, overlap: bool = False) -> PatchPCA:
    return PatchPCA(
        RankRule(variance=settings[name]),
        patches=settings["patches"],
        overlap=overlap,
        solver=single_solver(settings["solver"]),
    )


def _chain(chain: Callable[..., Representation]) -> MakeRepresentation:
    """Return what makes a chain, whose arguments are settings."""
    return lambda settings: chain(**{name: settings[name] for name in defaults_of(chain)})


_INPUT = {"input_transform": "none"}
_LATENT: dict[str, Any] = {
    **defaults_of(PatchPCA, "patches"),
    **_INPUT,
    "input_variance": 0.99,
    "output_variance": 0.99,
    **defaults_of(PatchPCA, "solver"),
    "symmetries": "none",
    "average_symmetries": False,
    "predictor": "mlp",
    "objective": "vector",
}
_CHAIN = {name: value for name, value in _LATENT.items() if name != "output_variance"}
_CHAIN["objective"] = "block-balanced"

METHODS: dict[str, Method] = {
    "global": Method(
        "Global PCA-Net",
        lambda settings: _global(settings, "input_variance"),
        lambda settings: _global(settings, "output_variance", settings["code_size"]),
        {**_LATENT, "code_size": None},
        colour="#CC79A7",
        marker="D",
    ),
    "local": Method(
        "Plain L2L",
        lambda settings: _patches(settings, "input_variance"),
        lambda settings: _patches(settings, "output_variance"),
        _LATENT,
        colour="#D55E00",
        marker="s",
    ),
    "overlap": Method(
        "L2L + overlap",
        lambda settings: _patches(settings, "input_variance", overlap=True),
        lambda settings: _patches(settings, "output_variance", overlap=True),
        _LATENT,
        colour="#0072B2",
        marker="^",
    ),
    "refinement": Method(
        "L2L + RefinementNet",
        lambda settings: METHODS[settings["base"]].inputs(settings),
        lambda settings: METHODS[settings["base"]].outputs(settings),
        {"base": "local"},  # and that method's own
        corrected=True,
        colour="#E69F00",
        marker="P",
    ),
    "fno": Method(
        "FNO",
        _whole,
        _whole,
        {**defaults_of(PatchPCA, "patches"), **_INPUT, "predictor": "fno"},
        colour="#56B4E9",
        marker="X",
    ),
    "two-scale": Method(
        "Two-scale",
        lambda settings: _patches(settings, "input_variance"),
        _chain(TwoScale),
        {**_CHAIN, **defaults_of(TwoScale)},
        colour="#009E73",
        marker="o",
    ),
    "three-scale": Method(
        "Three-scale",
        lambda settings: _patches(settings, "input_variance"),
        _chain(ThreeScale),
        {**_CHAIN, **defaults_of(ThreeScale)},
        colour="#882255",
        marker="<",
    ),
    "conforming": Method(
        "Conforming",
        lambda settings: _patches(settings, "input_variance"),
        _chain(Conforming),
        {**_CHAIN, **defaults_of(Conforming)},
        colour="#999999",
        marker="v",
    ),
    "whole-field": Method(
        "Whole field",
        _whole,
        _whole,
        {
            **defaults_of(PatchPCA, "patches"),
            **_INPUT,
            "symmetries": "none",
            "average_symmetries": False,
            "predictor": "encoder",
        },
        colour="#332288",
        marker=">",
    ),
}
"""Inputs, outputs and settings of each method; the predictor is the setting of that name.

Colours are Okabe and Ito's palette, but for the last three: their yellow does not show on white.
"""

CHOICES = ("base", "predictor")
"""Settings that bring settings of their own: the method that is refined, and the predictor."""

_PREFIX = "refinement_"


def get_method(name: str) -> Method:
    """Return the method of that name."""
    if name not in METHODS:
        also = "; fit_auto searches for one" if name == "auto" else ""
        raise unknown_name("method", name, METHODS, also=also)
    return METHODS[name]


def assemble(name: str, settings: Settings) -> Assembly:
    """Return the parts that a method makes of its resolved settings."""
    method = get_method(name)
    predictor = _predictor(settings)
    inputs = WholeField() if predictor.reads_fields else method.inputs(settings)
    return Assembly(
        transformed(inputs, settings),
        predictor,
        method.outputs(settings),
        _correction(settings) if method.corrected else None,
        settings.get("symmetries", "none"),
        settings.get("average_symmetries", False),
    )


def transformed(inputs: Representation, settings: Settings) -> Representation:
    """Return inputs after the setting `input_transform`."""
    transform = settings["input_transform"]
    return inputs if transform == "none" else Transformed(transform, inputs)


def settings_of(name: str, settings: Settings, *, but: Collection[str]) -> set[str]:
    """Return the names of the settings that a method's parts read, but for some of the parts."""
    method, read = get_method(name), _ReadSettings(settings)
    makers: dict[str, Callable[[Settings], Any]] = {
        "inputs": lambda one: transformed(method.inputs(one), one),
        "predictor": _predictor,
        "outputs": method.outputs,
    }
    if method.corrected:
        makers["correction"] = _correction
    for part, make in makers.items():
        if part not in but:
            make(read)
    return read.names


class _ReadSettings(dict[str, Any]):
    """Settings that remember which of them were read."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.names.add(name)
        return super().__getitem__(name)


def _predictor(settings: Settings) -> CodePredictor:
    kind = get_predictor(settings["predictor"])
    return kind(**{name: settings[name] for name in defaults_of(kind) if name in settings})


def _correction(settings: Settings) -> Refinement:
    names = [name for name in defaults_of(Refinement) if name != "objective"]
    return Refinement(**{name: settings[_setting(name)] for name in names})


def _setting(name: str) -> str:
    """Return the setting of a RefinementNet's argument."""
    return name if name == "channels" else f"{_PREFIX}{name}"


def defaults(name: str, given: Settings | None = None) -> dict[str, Any]:
    """Return all settings of a method, with the base and predictor that are given."""
    method, given = get_method(name), given or {}
    own = dict(method.defaults)
    if method.corrected:
        base = str(given.get("base", own["base"]))
        bases = [key for key, one in METHODS.items() if "input_variance" in one.defaults]
        if base not in bases:
            raise TwoscaleError(f"base must be one of {', '.join(bases)}, got '{base}'")
        own = {"base": base, **METHODS[base].defaults}
        own |= {_setting(key): value for key, value in defaults_of(Refinement).items()}
        own.pop(_setting("objective"))
    return _with_predictor(own, str(given.get("predictor", own["predictor"])))


def _with_predictor(own: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a method's settings with those of a predictor beside them.

    The method's default of `objective` goes before the predictor's, if that has the usual one. A
    method without the setting keeps it fixed for its own predictor.
    """
    kind = get_predictor(name)
    arguments = defaults_of(kind)
    without = {"input_variance"} if kind.reads_fields else set()
    if "objective" not in arguments:
        without.add("objective")
    else:
        usual = arguments["objective"] == defaults_of(CodePredictor)["objective"]
        if usual if "objective" in own else name == own["predictor"]:
            del arguments["objective"]
    kept = {key: value for key, value in own.items() if key not in without}
    return {**kept, **arguments, "predictor": name}


def resolve(name: str, given: Settings) -> dict[str, Any]:
    """Return the full settings of a method with `given` ones in place, checked."""
    owner, known = f"method {name}", defaults(name, given)
    if choices := [f"{key}={given[key]}" for key in CHOICES if key in given]:
        owner += f" with {', '.join(choices)}"
    if "variance" in given and "code_size" not in given and "variance" in known:
        known = {**known, "code_size": None}  # one of the two decides
    # A registered predictor may give one of our names another meaning.
    own = defaults_of(get_predictor(known["predictor"])) if is_own(known["predictor"]) else {}
    other = {key for key in own.keys() & SETTINGS.keys() if not _fits(key, own[key])}
    table = {key: setting for key, setting in SETTINGS.items() if key not in other}
    owners = {key: _owners(name, key, given) for key in given.keys() - known.keys()}
    return resolve_settings(owner, known, given, table=table, owners=owners)


def changed_settings(name: str, given: Settings) -> dict[str, Any]:
    """Return the given settings that differ from what the method would use without them."""
    resolved = resolve(name, given)
    # Choices bring defaults of their own. They are themselves compared with the method's defaults.
    usual = resolve(name, {key: given[key] for key in CHOICES if key in given})
    usual |= {key: value for key, value in resolve(name, {}).items() if key in CHOICES}
    return {key: resolved[key] for key in sorted(given) if resolved[key] != usual[key]}


def _owners(name: str, setting: str, given: Settings) -> list[str]:
    """Return the predictors that bring a method the setting it lacks, or else the methods."""
    base = {key: given[key] for key in given if key == "base"}
    predictors = [
        f"predictor={one}"
        for one in PREDICTORS
        if setting in defaults(name, {**base, "predictor": one})
    ]
    if predictors:
        return predictors
    corrected = get_method(name).corrected
    methods = [
        f"base={one}" if corrected else one
        for one, method in METHODS.items()
        if setting in method.defaults
    ]
    if not corrected and (setting.startswith(_PREFIX) or setting == "channels"):
        methods += [one for one, method in METHODS.items() if method.corrected]
    return methods


def _fits(name: str, value: Any) -> bool:
    """Say whether our setting of that name could have this value."""
    try:
        SETTINGS[name].read(value)
    except ValueError:
        return False
    return True


def trains_on_fields(name: str, settings: Settings) -> bool:
    """Say whether a method with these settings trains a network on fields."""
    method = get_method(name)
    return method.corrected or get_predictor(defaults(name, settings)["predictor"]).reads_fields
