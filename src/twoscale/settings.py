"""Settings: what an argument of a part means, what it may be, and how it is read from text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from twoscale.errors import TwoscaleError, did_you_mean

REQUIRED = inspect.Parameter.empty
"""The default of an argument that has none."""

POSITIVE = (1e-6, 1e6, "a positive number of at most a million")
"""What a factor may be, for `real`."""

RATE = (1e-12, 10.0, "a positive number of at most 10")
"""What the learning rate of an optimiser may be, for `real`."""

_LARGEST = 10**9  # of a count: what is more is a slip, and would run for years
_SPELLINGS = {"randomised": "randomized", "score-normalized": "score-normalised"}


@dataclass(frozen=True)
class Setting:
    """One setting: its meaning, and the check that turns a given value into the right type.

    It is written beside the argument of a constructor that it is about. The default is that of the
    argument; where the type allows None, so does the setting, and the text `none` stands for it.

    Attributes
    ----------
    meaning
        What it is; "" of an argument that only its default says something about.
    read
        Returns the value, or raises a ValueError that says what is right.
    schedule
        Whether it is of the training schedule: another value makes no other design.
    passes
        Whether it counts passes over the training set.
    default, optional
        The argument's default, and whether the setting may be None, the text `none`.

    Examples
    --------
    >>> def fit(*, epochs: Annotated[int, whole("passes over the training set")] = 500): ...
    >>> settings_of(fit)["epochs"].default
    500
    """

    meaning: str
    read: Callable[[Any], Any]
    schedule: bool = False
    passes: bool = False
    default: Any = REQUIRED
    optional: bool = False

    def checked(self, name: str, value: Any) -> Any:
        """Return a given value as it should be, or raise."""
        if self.optional and (value is None or (isinstance(value, str) and value == "none")):
            return None
        try:
            return self.read(value)
        except TwoscaleError:
            raise
        except ValueError as error:
            raise TwoscaleError(f"{name} must be {error}, got '{value}'") from error


def whole(meaning: str, low: int = 1, high: int | None = None, **traits: bool) -> Setting:
    """Return the setting that is a whole number of at least `low`, and at most `high`."""
    wanted = f"a whole number of at least {low}" + (f" and at most {high}" if high else "")

    def read(value: Any) -> int:
        number = float(value)
        most = _LARGEST if high is None else high
        if isinstance(value, bool) or number != int(number) or not low <= number <= most:
            raise ValueError(wanted)
        return int(number)

    return Setting(meaning, explained(read, wanted), **traits)


def real(meaning: str, low: float, high: float, wanted: str) -> Setting:
    """Return the setting that is a number from `low` to `high`, described by `wanted`."""

    def read(value: Any) -> float:
        number = float(value)
        if isinstance(value, bool) or not low <= number <= high:
            raise ValueError(wanted)
        return number

    return Setting(meaning, explained(read, wanted))


def share(meaning: str) -> Setting:
    """Return the setting that is a share of a variance."""
    return real(meaning, 1e-6, 1.0, "a fraction in (0, 1]")


def pair(meaning: str) -> Setting:
    """Return the setting that is a count per axis, or one for both."""
    wanted = "a count such as 4, or rows x columns such as 4x2"

    def read(value: Any) -> tuple[int, int]:
        parts = value if isinstance(value, list | tuple) else str(value).lower().split("x")
        if len(parts) not in (1, 2):
            raise ValueError(wanted)
        numbers = [count(part) for part in parts]
        return numbers[0], numbers[-1]

    count = explained(whole("").read, wanted)
    return Setting(meaning, read)


def choice(meaning: str, options: Collection[str] | Callable[[], Collection[str]]) -> Setting:
    """Return the setting that is one of some names, which may be asked for when they are needed."""

    def read(value: Any) -> str:
        known = options() if callable(options) else options
        name = _SPELLINGS.get(str(value), str(value))
        if name not in known:
            raise ValueError(f"one of {', '.join(known)}{did_you_mean(name, known)}")
        return name

    return Setting(meaning, read)


def switch(meaning: str) -> Setting:
    """Return the setting that is true or false."""
    return Setting(meaning, _switch)


def _switch(value: Any) -> bool:
    known = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
    name = str(value).lower()
    if name not in known:
        raise ValueError("true or false")
    return known[name]


def explained(read: Callable[[Any], Any], wanted: str) -> Callable[[Any], Any]:
    """Return a check whose failures all say what is wanted."""

    def wrapped(value: Any) -> Any:
        try:
            return read(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(wanted) from error

    return wrapped


@cache
def settings_of(maker: Callable[..., Any]) -> Mapping[str, Setting]:
    """Return the settings of a class or a function by name: those of its arguments."""
    function = inspect.unwrap(maker.__init__ if isinstance(maker, type) else maker)  # type: ignore[misc]
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError:  # of types that only a type checker imports
        hints = {}
    arguments = inspect.signature(function).parameters.values()
    named = [one for one in arguments if one.name != "self" and one.kind not in _SEVERAL]
    return {one.name: _setting(hints.get(one.name), one.default) for one in named}


_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _setting(hint: Any, default: Any) -> Setting:
    """Return the setting of an argument's annotation, or what its default says."""
    for part in (hint, *get_args(hint)):
        if get_origin(part) is Annotated:
            for declared in part.__metadata__:
                if isinstance(declared, Setting):
                    optional = default is None or type(None) in get_args(part.__origin__)
                    return replace(declared, default=default, optional=optional)
    return Setting("", _like(default), default=default, optional=default is None)


def _like(default: Any) -> Callable[[Any], Any]:
    """Return the reading of an argument without a setting: text is read as its default is."""
    if default is REQUIRED or isinstance(default, str):
        return lambda value: value
    if isinstance(default, bool):
        read: Callable[[str], Any] = _switch
    elif isinstance(default, int):
        read = whole("", -_LARGEST).read
    elif default is None:
        read = _number_or_text
    else:
        read = explained(float, "a number")
    return lambda value: read(value) if isinstance(value, str) else value


def _number_or_text(text: str) -> Any:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def defaults_of(maker: Callable[..., Any]) -> dict[str, Any]:
    """Return the default arguments of a class or a function by name."""
    return {name: setting.default for name, setting in settings_of(maker).items()}


def correction_settings(arguments: Iterable[str]) -> dict[str, str]:
    """Return the settings of a method that are arguments of its correction, with the arguments.

    The correction's objective is fixed.
    """
    own = (name for name in arguments if name != "objective")
    return {name if name == "channels" else f"refinement_{name}": name for name in own}


def resolve_settings(
    owner: str,
    known: Mapping[str, Setting],
    given: Mapping[str, Any],
    owners: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Return the defaults with the checked `given` values; unknown names and bad values raise.

    `owner` is what has the `known` settings, in the words of the error; `owners` tells what else
    has those that this one lacks.
    """
    resolved = {name: setting.default for name, setting in known.items()}
    for name, value in given.items():
        if name not in known:
            others = (owners or {}).get(name)
            hint = f" (it belongs to {', '.join(others)})" if others else did_you_mean(name, known)
            has = ", ".join(sorted(known))
            raise TwoscaleError(f"{owner} has no setting '{name}'{hint}: it has {has}")
        resolved[name] = known[name].checked(name, value)
    return resolved
