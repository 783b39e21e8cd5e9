"""Parts: what a surrogate is composed of, known by name and by the arguments they are made with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar

from twoscale.errors import TwoscaleError, unknown_name

Kind = TypeVar("Kind", bound="Part")

PARTS: dict[str, type[Part]] = {}
"""All parts by name: twoscale's own, and those that users register."""


class Part:
    """Something that is made with plain arguments and can be described by them.

    The arguments of the constructor are remembered as they were given. From them follow the `repr`
    and the description in a saved surrogate; `build` makes an equal part from that description.
    """

    name: ClassVar[str]  # in saved surrogates and on the command line
    title: ClassVar[str] = ""  # for people, in tables and pictures

    _arguments: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        self = super().__new__(cls)
        try:
            bound = inspect.signature(cls.__init__).bind(self, *args, **kwargs)
        except TypeError:
            return self  # a copy, whose state follows; or a call that the constructor refuses
        bound.apply_defaults()
        given = {key: value for key, value in bound.arguments.items() if key != "self"}
        object.__setattr__(self, "_arguments", given)
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """Return what the part was made with, defaults included."""
        return dict(self._arguments)

    def with_arguments(self, **changes: Any) -> Self:
        """Return an unfitted part like this one, made with some other arguments.

        >>> from twoscale.representation import GlobalPCA
        >>> GlobalPCA(0.99).with_arguments(solver="full")
        GlobalPCA(0.99, solver='full')
        """
        if unknown := sorted(changes.keys() - self._arguments.keys()):
            raise TwoscaleError(
                f"{type(self).__name__} has no argument {', '.join(unknown)}: it has "
                f"{', '.join(self._arguments)}"
            )
        return type(self)(**{**self._arguments, **changes})

    def _restate(self, **arguments: Any) -> None:
        """Remember arguments in an equal form; those of a subclass's constructor only."""
        self._arguments |= {
            key: arguments[key] for key in arguments.keys() & self._arguments.keys()
        }

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters
        shown = [
            repr(value)
            if parameters[key].kind is not parameters[key].KEYWORD_ONLY and not place
            else f"{key}={value!r}"
            for place, (key, value) in enumerate(self._arguments.items())
            if value != parameters[key].default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def register(part: type[Kind]) -> type[Kind]:
    """Make a class of parts known by its `name`, so that saved surrogates can name it."""
    known = PARTS.get(part.name)
    if known is not None and _place(known) != _place(part):
        raise TwoscaleError(f"another part is called '{part.name}' already: take another name")
    PARTS[part.name] = part
    return part


def _place(part: type[Part]) -> tuple[str, str]:
    """Return where a class is defined; a class that is defined again has the same place."""
    return part.__module__, part.__qualname__


def check_registered(part: Any) -> None:
    """Raise unless a part, and all parts inside it, are known by their names."""
    if isinstance(part, Mapping):
        for one in part.values():
            check_registered(one)
    if not isinstance(part, Part):
        return
    if PARTS.get(getattr(part, "name", "")) is not type(part):
        raise TwoscaleError(
            f"{type(part).__name__} is not registered: give it a `name` of its own and register it "
            "(register_predictor, register_representation)"
        )
    for value in part.arguments.values():
        check_registered(value)


def describe(part: Part) -> dict[str, Any]:
    """Return a part as plain values: its name and its arguments, parts inside included."""
    return {"part": part.name, **{key: _plain(value) for key, value in part.arguments.items()}}


def build(description: Mapping[str, Any], kind: type[Kind]) -> Kind:
    """Return the part that a description stands for, which must be of a kind."""
    if not isinstance(description, Mapping) or not isinstance(description.get("part"), str):
        raise TwoscaleError(f"a part is described by its name and arguments, got {description!r}")
    name = description["part"]
    part = PARTS.get(name)
    if part is None or not issubclass(part, kind):
        known = sorted(key for key, one in PARTS.items() if issubclass(one, kind))
        also = "; one of your own has to be registered first"
        raise unknown_name(kind.__name__, name, known, also=also)
    arguments = {key: _value(value) for key, value in description.items() if key != "part"}
    try:
        return part(**arguments)
    except TypeError as error:
        raise TwoscaleError(f"'{name}' cannot be made with {arguments}: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Part):
        return describe(value)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "plain"):
        return _plain(value.plain())
    return value


def _value(plain: Any) -> Any:
    if isinstance(plain, Mapping):
        if isinstance(plain.get("part"), str):  # a stage of a chain may be called "part"
            return build(plain, Part)
        return {key: _value(one) for key, one in plain.items()}
    return tuple(_value(one) for one in plain) if isinstance(plain, list) else plain
