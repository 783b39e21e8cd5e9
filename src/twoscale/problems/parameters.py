"""Parameters of a problem as plain values: what is stored, read back, or set by hand."""

from __future__ import annotations

import json
import math
import types
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from twoscale.errors import TwoscaleError, did_you_mean

T = TypeVar("T")


def positive(name: str, value: Any) -> float:
    """Return `value` as a float, or refuse what is not a positive finite number.

    >>> positive("tau", 3)
    3.0
    """
    number = _as_float(value)
    if number is None or not 0 < number < math.inf:
        raise TwoscaleError(f"{name} must be a positive finite number, got {value!r}")
    return number


def count(name: str, value: Any) -> int:
    """Return `value`, or refuse what is not a whole number from 1.

    >>> count("steps", 3)
    3
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise TwoscaleError(f"{name} must be a whole number from 1, got {value!r}")
    return value


def check_positive(problem: Any) -> None:
    """Make the numbers among a dataclass's fields floats, or refuse those that are not positive.

    Fields whose default is a whole number count something, from 1; the others are finite.
    """
    for field in fields(problem):
        value = getattr(problem, field.name)
        if isinstance(field.default, float):
            object.__setattr__(problem, field.name, positive(field.name, value))
        elif isinstance(field.default, int):
            count(field.name, value)


def plain(value: Any, name: str) -> Any:
    """Return `value` made of what JSON knows; a dataclass becomes a dictionary of its fields.

    `name` is what the value is called in the error about values that JSON does not know.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        kept = (field.name for field in fields(value) if field.init)
        return {key: plain(getattr(value, key), f"{name}.{key}") for key in kept}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: plain(one, f"{name}.{key}") for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one, f"{name}[{place}]") for place, one in enumerate(value)]
    raise TwoscaleError(
        f"{name} must be a number, text, list or dataclass to be stored, got {value!r}: "
        "use such values, or write parameters() and from_parameters() of your own"
    )


def build(kind: type[T], values: Any, name: str) -> T:
    """Return the dataclass `kind` with the plain `values` of its fields.

    Fields that are not named keep their defaults. `name` is what it is called in errors.
    """
    if not isinstance(values, Mapping):
        raise TwoscaleError(f"{name} needs a dictionary of parameters, got {values!r}")
    known = {field.name: field for field in fields(kind) if field.init}  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            raise TwoscaleError(_unknown(name, key, known))
    for key, field in known.items():
        if key not in values and field.default is field.default_factory is MISSING:
            raise TwoscaleError(f"{name} needs the parameter '{key}'")
    try:
        hints = get_type_hints(kind)
    except NameError as error:
        raise TwoscaleError(
            f"the types of {name}'s parameters are unknown ({error}): import them in its module"
        ) from error
    read = {key: _read(value, hints[key], f"{name}.{key}") for key, value in values.items()}
    try:
        return kind(**read)
    except TwoscaleError:
        raise
    except (TypeError, ValueError) as error:
        raise TwoscaleError(f"{name} refuses its parameters {dict(values)}: {error}") from error


def with_settings(
    current: Mapping[str, Any], settings: Mapping[str, Any], name: str
) -> dict[str, Any]:
    """Return the plain parameters `current` with some of them set anew.

    A nested parameter is called by its path (`medium.alpha`) or, where only one has it, by its
    last name (`alpha`). Text is read as the kind of value that it replaces.

    >>> with_settings({"low": 4.0, "medium": {"alpha": 2.0}}, {"alpha": "3", "low": 1}, "darcy")
    {'low': 1, 'medium': {'alpha': 3}}
    """
    changed = deepcopy(dict(current))
    places = dict(_leaves(changed))
    for key, value in _leaves(plain(settings, name)):
        path = _find(key, places, name)
        inner = changed
        *outer, last = path.split(".")
        for step in outer:
            inner = inner[step]
        inner[last] = _from_text(value, places[path]) if isinstance(value, str) else value
    return changed


def _leaves(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _find(key: str, places: Mapping[str, Any], name: str) -> str:
    if key in places:
        return key
    found = [path for path in places if path.rpartition(".")[2] == key]
    if len(found) > 1:
        raise TwoscaleError(f"{name} has several parameters '{key}': say {' or '.join(found)}")
    if not found:
        raise TwoscaleError(_unknown(name, key, places))
    return found[0]


def _unknown(name: str, key: str, known: Mapping[str, Any]) -> str:
    hint = did_you_mean(key, known)
    return f"{name} has no parameter '{key}'{hint}: it has {', '.join(known) or 'none'}"


def _from_text(text: str, current: Any) -> Any:
    """Return what a text from the command line stands for, in place of `current`."""
    if isinstance(current, str):
        return text
    switches = {"true": True, "yes": True, "false": False, "no": False, "none": None}
    if text.lower() in switches:
        return switches[text.lower()]
    for reader in (int, float, json.loads):
        try:
            return reader(text)
        except ValueError:
            continue
    return text


def _read(value: Any, hint: Any, name: str) -> Any:
    """Return a plain value as the annotation `hint` wants it."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _read_one_of(value, inner, name)
    if origin is Literal:
        return _expect(value in inner, value, value, name, f"one of {inner}")
    if is_dataclass(hint) and isinstance(hint, type):
        return build(hint, value, name)
    if hint is float:
        number = _as_float(value)
        finite = number is not None and math.isfinite(number)
        return _expect(finite, number, value, name, "a finite number")
    if hint is int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return _expect(whole, value, value, name, "a whole number")
    if hint in (bool, str):
        wanted = "true or false" if hint is bool else "text"
        return _expect(isinstance(value, hint), value, value, name, wanted)
    if hint in (None, type(None)):
        return _expect(value is None, value, value, name, "none")
    if tuple in (hint, origin):
        return _read_tuple(value, inner, name)
    return value


def _read_one_of(value: Any, hints: tuple[Any, ...], name: str) -> Any:
    errors = []
    for hint in hints:
        try:
            return _read(value, hint, name)
        except TwoscaleError as error:
            errors.append(error)
    raise errors[0]


def _read_tuple(value: Any, hints: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    _expect(isinstance(value, list | tuple), value, value, name, "a list")
    if not hints or hints[-1] is Ellipsis:
        hints = (hints[0] if hints else Any,) * len(value)
    _expect(len(value) == len(hints), value, value, name, f"a list of {len(hints)}")
    return tuple(_read(one, hint, name) for one, hint in zip(value, hints, strict=True))


def _expect(fits: bool, read: Any, value: Any, name: str, wanted: str) -> Any:
    if not fits:
        raise TwoscaleError(f"{name} must be {wanted}, got {value!r}")
    return read


def _as_float(value: Any) -> float | None:
    """Return a real number as a float; None for anything else, text and truth values included."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.generic):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
