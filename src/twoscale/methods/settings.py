"""The settings of a fit: what each one means, what it may be, how it is read from text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twoscale.domain.symmetries import SYMMETRIES
from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.math.pca import SOLVERS
from twoscale.parts import Part
from twoscale.predictors import KERNELS
from twoscale.predictors.encoder import Encoder
from twoscale.predictors.registry import PREDICTORS
from twoscale.representation import TRANSFORMS, read_transform
from twoscale.training.losses import OBJECTIVES

_LARGEST = 10**9  # of a count: what is more is a slip, and would run for years


@dataclass(frozen=True)
class Setting:
    """One setting: its meaning and the check that turns a given value into the right type."""

    meaning: str
    read: Callable[[Any], Any]
    schedule: bool = False
    """Whether it is of the training schedule: another value makes no other design."""
    passes: bool = False
    """Whether it counts passes over the training set."""


def whole(low: int, high: int | None = None) -> Callable[[Any], int]:
    """Return the check for a whole number of at least `low`, and at most `high`."""
    wanted = f"a whole number of at least {low}" + (f" and at most {high}" if high else "")

    def read(value: Any) -> int:
        number = float(value)
        most = _LARGEST if high is None else high
        if isinstance(value, bool) or number != int(number) or not low <= number <= most:
            raise ValueError(wanted)
        return int(number)

    return _explain(read, wanted)


def real(low: float, high: float, wanted: str) -> Callable[[Any], float]:
    """Return the check for a number from `low` to `high`, described by `wanted`."""

    def read(value: Any) -> float:
        number = float(value)
        if isinstance(value, bool) or not low <= number <= high:
            raise ValueError(wanted)
        return number

    return _explain(read, wanted)


def _explain(read: Callable[[Any], Any], wanted: str) -> Callable[[Any], Any]:
    def wrapped(value: Any) -> Any:
        try:
            return read(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(wanted) from error

    return wrapped


def _optional(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None or value == "none" else read(value)


def _pair(value: Any) -> tuple[int, int]:
    wanted = "a count such as 4, or rows x columns such as 4x2"
    parts = value if isinstance(value, list | tuple) else str(value).lower().split("x")
    count = _explain(whole(1), wanted)
    if len(parts) not in (1, 2):
        raise ValueError(wanted)
    numbers = [count(part) for part in parts]
    return (numbers[0], numbers[-1])


def _transform(value: Any) -> str | tuple[str, ...]:
    try:
        return read_transform(value)
    except (TypeError, TwoscaleError) as error:
        raise ValueError(
            f"one of {', '.join(TRANSFORMS)}, or one for each channel such as log,none"
        ) from error


def choice(options: Collection[str]) -> Callable[[Any], str]:
    """Return the check for one of some names."""

    def read(value: Any) -> str:
        name = _SPELLINGS.get(str(value), str(value))
        if name not in options:
            raise ValueError(f"one of {', '.join(options)}{did_you_mean(name, options)}")
        return name

    return read


def _switch(value: Any) -> bool:
    known = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    name = str(value).lower()
    if name not in known:
        raise ValueError("true or false")
    return known[name]


_SPELLINGS = {"randomised": "randomized", "score-normalized": "score-normalised"}
_VARIANCE = real(1e-6, 1.0, "a fraction in (0, 1]")
_RATE = real(1e-12, 10.0, "a positive number of at most 10")
_DECAY = real(0.0, 10.0, "a number from 0 to 10")
_WIDTH = real(0.0, 1.0, "a part of the domain's side, 0 to 1")
_COUNT = whole(1)
_FACTOR = real(1e-6, 1e6, "a positive number of at most a million")
_STRENGTH = real(0.0, 1.0, "a fraction from 0 to 1")

SETTINGS: dict[str, Setting] = {
    "patches": Setting("patches per axis, 4 or 4x2; their borders are the common seams", _pair),
    "input_transform": Setting(
        "function of positive input channels: log, reciprocal or none; or one each: log,none",
        _transform,
    ),
    "input_variance": Setting("share of variance kept by the input PCA", _VARIANCE),
    "output_variance": Setting("share of variance kept by the output PCA", _VARIANCE),
    "coarse_factor": Setting("nodes per side of a cell of the coarse grid", _COUNT),
    "coarse_components": Setting("coarse modes kept; with coarse_variance, at most", _COUNT),
    "coarse_variance": Setting(
        "share of variance kept by the coarse modes, or none", _optional(_VARIANCE)
    ),
    "middle_patches": Setting("larger patches of the stage in between, 2 or 2x2", _pair),
    "middle_variance": Setting("share of variance kept by each larger patch", _VARIANCE),
    "residual_variance": Setting("share of variance kept by each residual patch", _VARIANCE),
    "variance": Setting("share of variance kept by each block; unused with code_size", _VARIANCE),
    "code_size": Setting(
        "output modes kept in all, those of largest energy; none: shares of variance decide",
        _optional(_COUNT),
    ),
    "seam_width": Setting(
        "width next to patch borders in which slopes count, as a share of the side; 0: plain L2",
        _WIDTH,
    ),
    "few_features": Setting("require fewer coarse nodes than training fields", _switch),
    "solver": Setting("PCA solver", choice((*SOLVERS, "hybrid"))),
    "symmetries": Setting(
        "symmetries that multiply the training fields; problem: those of the equation",
        choice((*SYMMETRIES, "problem")),
    ),
    "average_symmetries": Setting("average predictions over the symmetries", _switch),
    "predictor": Setting("map from input code to output code", choice(PREDICTORS)),
    "ridge": Setting(
        "ridge strength, relative to the largest eigenvalue; none: chosen on validation fields",
        _optional(_STRENGTH),
    ),
    "kernel": Setting("kernel; none: chosen on validation fields", _optional(choice(KERNELS))),
    "length_scale": Setting(
        "length scale of the kernel, in median distances; none: chosen on validation fields",
        _optional(_FACTOR),
    ),
    "kernel_samples": Setting("most training fields the kernel uses; none: all", _optional(_COUNT)),
    "objective": Setting("how errors of the code are weighted", choice(OBJECTIVES)),
    "hidden_layers": Setting("hidden layers of the network", whole(0, 1000)),
    "hidden_width": Setting("width of the hidden layers", _COUNT),
    "epochs": Setting("passes over the training set", _COUNT, schedule=True, passes=True),
    "batch_size": Setting("samples per optimiser step", _COUNT, schedule=True),
    "learning_rate": Setting(
        "the optimiser's first rate, an encoder's highest; none: the optimiser's default",
        _RATE,
    ),
    "weight_decay": Setting("L2 weight decay", _DECAY),
    "patience": Setting(
        "epochs without a better validation loss before the rate is halved",
        _COUNT,
        schedule=True,
        passes=True,
    ),
    "early_stop": Setting(
        "epochs without a better validation loss before training ends, or none",
        _optional(_COUNT),
        schedule=True,
        passes=True,
    ),
    "base": Setting("method that is refined", str),
    "refinement_epochs": Setting("passes of the RefinementNet", _COUNT, schedule=True, passes=True),
    "refinement_batch_size": Setting("fields per step of the RefinementNet", _COUNT, schedule=True),
    "refinement_learning_rate": Setting("Adam's first rate for the RefinementNet", _RATE),
    "refinement_weight_decay": Setting("L2 weight decay of the RefinementNet", _DECAY),
    "refinement_patience": Setting(
        "epochs without a better loss before the RefinementNet's rate is halved",
        _COUNT,
        schedule=True,
        passes=True,
    ),
    "channels": Setting("channels of the RefinementNet", _COUNT),
    "layers": Setting("Fourier layers", whole(1, 1000)),
    "width": Setting("channels of the Fourier layers, or of an encoder's finest level", _COUNT),
    "blocks": Setting("residual blocks of an encoder on each level, down and up", whole(1, 1000)),
    "cycles": Setting("how often an encoder goes from fine to coarse and back", whole(1, 100)),
    "members": Setting("networks whose predictions an encoder averages", whole(1, 100)),
    "cut": Setting(
        "nodes per side of an encoder's finest cells; none: about 32 cells per direction",
        _optional(_COUNT),
    ),
    "optimiser": Setting(
        "optimiser of an encoder; rate and clip follow from it", choice(tuple(Encoder.optimisers))
    ),
    "clip": Setting(
        "limit of the gradients' norm in one step; none: the optimiser's default",
        _optional(_FACTOR),
    ),
    "modes": Setting("Fourier modes kept per direction", _COUNT),
    "padding": Setting("nodes of padding at the far edges", whole(0)),
    "evaluation_batch": Setting(
        "fields per step of validation and prediction", _COUNT, schedule=True
    ),
}


def resolve_settings(
    owner: str,
    defaults: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    table: Mapping[str, Setting] = SETTINGS,
    owners: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return `defaults` with the checked `given` values; unknown names and bad values raise.

    `owner` is what has the settings, in the words of the error; `table` says what they may be.
    Settings of users' own parts are not in it: their text is read as the type of their default.
    `owners` tells what else has the settings that this one lacks.
    """
    resolved = dict(defaults)
    for name, value in given.items():
        if name not in defaults:
            raise TwoscaleError(_unknown(owner, name, defaults, (owners or {}).get(name, ())))
        try:
            resolved[name] = _read(value, defaults[name], table.get(name))
        except ValueError as error:
            raise TwoscaleError(f"{name} must be {error}, got '{value}'") from error
    return resolved


def _read(value: Any, default: Any, setting: Setting | None) -> Any:
    """Return a checked value; what has no value by default may be set back to none."""
    if default is None and value in (None, "none"):
        return None
    return _like(value, default) if setting is None else setting.read(value)


def _like(value: Any, default: Any) -> Any:
    """Return the value of a setting that is somebody's own: text is read as its default is."""
    if not isinstance(value, str) or isinstance(default, str):
        return value
    if isinstance(default, bool):
        return _switch(value)
    if isinstance(default, int):
        return whole(-_LARGEST)(value)
    kinds: tuple[Callable[[str], Any], ...] = (float,) if default is not None else (int, float)
    for kind in kinds:
        try:
            return kind(value)
        except ValueError:
            continue
    if default is None:
        return value
    raise ValueError("a number")


def check_arguments(part: Part) -> None:
    """Raise if an argument of one of twoscale's parts, or of parts inside, is out of range."""
    if type(part).__module__.startswith("twoscale."):
        for name, value in part.arguments.items():
            if name not in SETTINGS or value is None or isinstance(value, Part):
                continue
            try:
                SETTINGS[name].read(value)
            except ValueError as error:
                raise TwoscaleError(f"{name} must be {error}, got {value!r} in {part!r}") from error
    for value in part.arguments.values():
        inside = value.values() if isinstance(value, Mapping) else [value]
        for one in inside:
            if isinstance(one, Part):
                check_arguments(one)


def _unknown(owner: str, name: str, defaults: Mapping[str, Any], owners: Sequence[str]) -> str:
    hint = "" if name in SETTINGS else did_you_mean(name, defaults)
    if owners:
        hint = f" (it belongs to {', '.join(owners)})"
    return f"{owner} has no setting '{name}'{hint}: it has {', '.join(sorted(defaults))}"


_ARGUMENTS = {
    **{name: f"give it as {name}=..." for name in ("seed", "device", "method")},
    "problem": "it comes from the dataset",
}


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """Return the settings of `key=value` texts."""
    pairs = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise TwoscaleError(f"a setting is written key=value, got '{text}'")
        key = name.strip().replace("-", "_")
        if key in _ARGUMENTS or not key.isidentifier() or key == "self":
            place = f": {_ARGUMENTS[key]}" if key in _ARGUMENTS else ""
            raise TwoscaleError(f"'{key}' is not a setting{place}")
        pairs[key] = value.strip()
    return pairs


def parse_seeds(text: str) -> list[int]:
    """Return the seeds that a text such as `0-4` or `0,3,7` names, each once."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last) if dash else (first, first)
        if not all(end.isdecimal() and len(end) < 19 for end in ends) or int(ends[0]) > int(
            ends[1]
        ):
            raise TwoscaleError(f"seeds are given like 0-4 or 0,3,7, got '{text}'")
        if int(ends[1]) - int(ends[0]) >= 1000:
            raise TwoscaleError(f"'{text}' names more than a thousand seeds")
        seeds += range(int(ends[0]), int(ends[1]) + 1)
    return list(dict.fromkeys(seeds))


def setting_text(value: Any) -> str:
    """Return a setting's value as it is written in a case's name.

    >>> setting_text((4, 2)), setting_text(None)
    ('4x2', 'none')
    """
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    return "none" if value is None else str(value)
