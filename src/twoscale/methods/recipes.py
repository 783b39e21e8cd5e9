"""The methods by name: recipes that turn settings into the parts of a surrogate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, NamedTuple

from twoscale.domain.symmetries import SYMMETRIES
from twoscale.errors import TwoscaleError, unknown_name
from twoscale.math.pca import RankRule
from twoscale.operators.spec import SurrogateSpec
from twoscale.parts import PARTS
from twoscale.predictors import CodePredictor, Refinement, get_predictor, predictors
from twoscale.representation import (
    GlobalPCA,
    PatchPCA,
    Representation,
    Transformed,
    TwoScale,
    WholeField,
    single_solver,
    stage_rule,
)
from twoscale.representation.as_method import AsMethod, CodeGrowth
from twoscale.settings import (
    Setting,
    choice,
    correction_settings,
    resolve_settings,
    settings_of,
    share,
    switch,
)

Settings = Mapping[str, Any]


class Maker(NamedTuple):
    """What makes a part of resolved settings, and those that it reads."""

    make: Callable[[Settings], Representation]
    settings: Mapping[str, Setting]

    @classmethod
    def of(cls, part: type[Representation]) -> Maker:
        """Return what makes a part whose arguments are settings."""
        own = settings_of(part)
        return cls(lambda given: part(**{name: given[name] for name in own}), own)


@dataclass(frozen=True, kw_only=True)
class Method(AsMethod):
    """A recipe that turns settings into the parts of a surrogate, and how the method is shown.

    Attributes
    ----------
    inputs, outputs
        What makes the input and the output representation.
    predictor
        The default of the setting.
    objective
        Its default for predictors that have the usual one; None: that of the predictor.
    symmetric
        Whether it has the settings of symmetries.
    corrected
        Whether a RefinementNet follows the parts of another method, the setting `base`.
    """

    inputs: Maker
    outputs: Maker
    predictor: str = "mlp"
    objective: str | None = None
    symmetric: bool = True
    corrected: bool = False

    @cached_property
    def settings(self) -> dict[str, Setting]:
        """Return the settings besides the predictor's own."""
        if self.corrected:
            base = _SETTINGS["base"]
            return {"base": base, **METHODS[base.default].settings, **_correction_settings()}
        own = {**_of_surrogate("patches", "input_transform"), **self.inputs.settings}
        own |= self.outputs.settings
        if self.symmetric:
            own |= _of_surrogate("symmetries", "average_symmetries")
        return own | {"predictor": replace(_SETTINGS["predictor"], default=self.predictor)}

    @property
    def defaults(self) -> dict[str, Any]:
        """Return the defaults of its settings."""
        return {name: setting.default for name, setting in self.settings.items()}


_PATCH = settings_of(PatchPCA)
_SETTINGS: dict[str, Setting] = {
    "base": Setting("method that is refined", str, default="local"),
    "input_transform": replace(settings_of(Transformed)["transform"], default="none"),
    "input_variance": replace(share("share of variance kept by the input PCA"), default=0.99),
    "output_variance": replace(share("share of variance kept by the output PCA"), default=0.99),
    "symmetries": replace(
        choice(
            "symmetries that multiply the training fields; problem: those of the equation",
            (*SYMMETRIES, "problem"),
        ),
        default="none",
    ),
    "average_symmetries": replace(switch("average predictions over the symmetries"), default=False),
    "predictor": choice("map from input code to output code", predictors),
}
"""Settings that are no argument of a part."""


def _of_surrogate(*names: str) -> dict[str, Setting]:
    return {name: _SETTINGS.get(name) or _PATCH[name] for name in names}


def _whole(side: str) -> Maker:
    """Return what makes one PCA of whole fields."""

    def make(given: Settings) -> GlobalPCA:
        size = given["code_size"] if sized else None
        rule = stage_rule(given[f"{side}_variance"], size)
        return GlobalPCA(rule, solver=single_solver(given["solver"]))

    sized = {"code_size": settings_of(TwoScale)["code_size"]} if side == "output" else {}
    return Maker(make, {**_of_surrogate(f"{side}_variance", "solver"), **sized})


def _patches(side: str, *, overlap: bool = False) -> Maker:
    """Return what makes a PCA of patches."""

    def make(given: Settings) -> PatchPCA:
        return PatchPCA(
            RankRule(variance=given[f"{side}_variance"]),
            patches=given["patches"],
            overlap=overlap,
            solver=single_solver(given["solver"]),
        )

    return Maker(make, _of_surrogate("patches", f"{side}_variance", "solver"))


_FIELDS = Maker.of(WholeField)
_MOST_VALUES = 64 * 64  # of a field that is one block: the PCA of larger ones takes long

_RECIPES: dict[str, Method] = {
    "global": Method(
        title="Global PCA-Net",
        inputs=_whole("input"),
        outputs=_whole("output"),
        objective="vector",
        growth=CodeGrowth(one_block=True, most_values=_MOST_VALUES),
        colour="#CC79A7",
        marker="D",
        order=0,
    ),
    "local": Method(
        title="Plain L2L",
        inputs=_patches("input"),
        outputs=_patches("output"),
        objective="vector",
        colour="#D55E00",
        marker="s",
        order=0,
    ),
    "overlap": Method(
        title="L2L + overlap",
        inputs=_patches("input", overlap=True),
        outputs=_patches("output", overlap=True),
        objective="vector",
        colour="#0072B2",
        marker="^",
        order=0,
    ),
    "refinement": Method(
        title="L2L + RefinementNet",
        inputs=_FIELDS,  # those of its base
        outputs=_FIELDS,
        corrected=True,
        colour="#E69F00",
        marker="P",
        order=0,
    ),
    "fno": Method(
        title="FNO",
        inputs=_FIELDS,
        outputs=_FIELDS,
        predictor="fno",
        symmetric=False,
        colour="#56B4E9",
        marker="X",
        order=0,
    ),
    "whole-field": Method(
        title="Whole field",
        inputs=_FIELDS,
        outputs=_FIELDS,
        predictor="encoder",
        growth=CodeGrowth(sized=False, whole=True),
        colour="#332288",
        marker=">",
        order=4,
    ),
}
"""Methods that are no representation of outputs by themselves.

Colours are Okabe and Ito's palette, but for three: their yellow does not show on white.
"""


class _Methods(Mapping[str, Method]):
    """The recipes above, and one for each representation that is a method."""

    def __getitem__(self, name: str) -> Method:
        return _RECIPES[name] if name in _RECIPES else _method_of(PARTS[name])  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[str]:
        own = (name for name, part in PARTS.items() if getattr(part, "as_method", None))
        return iter(sorted((*_RECIPES, *own), key=lambda name: self[name].order))

    def __len__(self) -> int:
        return len(list(iter(self)))


@cache
def _method_of(part: type[Representation]) -> Method:
    """Return the method that a representation of outputs is; KeyError if it is none."""
    if getattr(part, "as_method", None) is None:
        raise KeyError(part.name)
    return Method(inputs=_patches("input"), outputs=Maker.of(part), **vars(part.as_method))


METHODS: Mapping[str, Method] = _Methods()
"""All methods by name, in the order in which they are listed and drawn."""

CHOICES = ("base", "predictor")
"""Settings that bring settings of their own: the method that is refined, and the predictor."""


def get_method(name: str) -> Method:
    """Return the method of that name."""
    if name not in METHODS:
        also = "; fit_auto searches for one" if name == "auto" else ""
        raise unknown_name("method", name, METHODS, also=also)
    return METHODS[name]


def assemble(name: str, given: Settings) -> SurrogateSpec:
    """Return the parts that a method makes of its resolved settings."""
    method, predictor = get_method(name), _predictor(given)
    recipe = METHODS[given["base"]] if method.corrected else method
    inputs = WholeField() if predictor.reads_fields else recipe.inputs.make(given)
    return SurrogateSpec(
        transformed(inputs, given),
        predictor,
        recipe.outputs.make(given),
        _correction(given) if method.corrected else None,
        given.get("symmetries", "none"),
        given.get("average_symmetries", False),
    )


def transformed(inputs: Representation, given: Settings) -> Representation:
    """Return inputs after the setting `input_transform`."""
    transform = given["input_transform"]
    return inputs if transform == "none" else Transformed(transform, inputs)


def names_of_parts(name: str, given: Settings, *, but: Collection[str]) -> set[str]:
    """Return the names of the settings that a method's parts read, but for some of the parts."""
    method = get_method(name)
    recipe = METHODS[given["base"]] if method.corrected else method
    read = {
        "inputs": {*recipe.inputs.settings, "input_transform"},
        "predictor": {*settings_of(get_predictor(given["predictor"])), "predictor"},
        "outputs": {*recipe.outputs.settings},
        "correction": {*_correction_settings()} if method.corrected else set(),
    }
    used = {name for part, names in read.items() if part not in but for name in names}
    return used & given.keys()


def _predictor(given: Settings) -> CodePredictor:
    kind = get_predictor(given["predictor"])
    return kind(**{name: given[name] for name in settings_of(kind) if name in given})


def _correction(given: Settings) -> Refinement:
    names = correction_settings(settings_of(Refinement))
    return Refinement(**{argument: given[name] for name, argument in names.items()})


def _correction_settings() -> dict[str, Setting]:
    own = settings_of(Refinement)
    return {
        name: replace(own[argument], meaning=f"{own[argument].meaning}; for the RefinementNet")
        for name, argument in correction_settings(own).items()
    }


def settings(name: str, given: Settings | None = None) -> dict[str, Setting]:
    """Return all settings of a method, with the base and predictor that are given."""
    method, given = get_method(name), given or {}
    own = dict(method.settings)
    if method.corrected:
        base = str(given.get("base", _SETTINGS["base"].default))
        if base not in (bases := [one for one in _bases() if METHODS[one].inputs is not _FIELDS]):
            raise TwoscaleError(f"base must be one of {', '.join(bases)}, got '{base}'")
        method = METHODS[base]
        own = {
            "base": replace(_SETTINGS["base"], default=base),
            **method.settings,
            **_correction_settings(),
        }
    return _with_predictor(own, method, str(given.get("predictor", method.predictor)))


def _bases() -> list[str]:
    """Return the methods that are no correction of another."""
    return [name for name, method in METHODS.items() if not method.corrected]


def _with_predictor(own: dict[str, Setting], method: Method, name: str) -> dict[str, Setting]:
    """Return a method's settings with those of a predictor beside them.

    The method's default of `objective` goes before the predictor's, if that has the usual one. A
    method of whole fields keeps the objective of its own predictor fixed.
    """
    kind = get_predictor(name)
    arguments = dict(settings_of(kind))
    if kind.reads_fields:
        own.pop("input_variance", None)
    if method.inputs is _FIELDS and name == method.predictor:
        arguments.pop("objective", None)
    elif "objective" in arguments and method.objective is not None:
        usual = settings_of(CodePredictor)["objective"].default
        if arguments["objective"].default == usual:
            arguments["objective"] = replace(arguments["objective"], default=method.objective)
    return {**own, **arguments, "predictor": replace(own["predictor"], default=name)}


def defaults(name: str, given: Settings | None = None) -> dict[str, Any]:
    """Return the default settings of a method, with the base and predictor that are given."""
    return {key: setting.default for key, setting in settings(name, given).items()}


@cache
def _every_setting(methods: tuple[str, ...], kinds: tuple[str, ...]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for own in (
        *(METHODS[one].settings for one in methods),
        *map(settings_of, map(get_predictor, kinds)),
    ):
        found = {**own, **found}
    return found


def every_setting() -> dict[str, Setting]:
    """Return the settings of all methods and predictors; of equal names the first."""
    return _every_setting(tuple(METHODS), tuple(predictors()))


def resolve(name: str, given: Settings) -> dict[str, Any]:
    """Return the full settings of a method with `given` ones in place, checked."""
    owner, known = f"method {name}", settings(name, given)
    if choices := [f"{key}={given[key]}" for key in CHOICES if key in given]:
        owner += f" with {', '.join(choices)}"
    if "variance" in given and "code_size" not in given and "variance" in known:
        # One of the two decides.
        known["code_size"] = replace(known["code_size"], default=None)
    owners = {key: _owners(name, key, given) for key in given.keys() - known.keys()}
    return resolve_settings(owner, known, given, owners)


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
    kinds = [one for one in predictors() if setting in settings(name, {**base, "predictor": one})]
    if kinds:
        return [f"predictor={one}" for one in kinds]
    bases = [one for one in _bases() if setting in METHODS[one].settings]
    if get_method(name).corrected:
        return [f"base={one}" for one in bases]
    corrects = setting == "base" or setting in _correction_settings()
    return bases + [one for one, method in METHODS.items() if method.corrected and corrects]
