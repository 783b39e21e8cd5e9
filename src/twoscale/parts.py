"""Parts: what a surrogate is composed of, known by name and by the arguments they are made with."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, ItemsView, Iterator, Mapping, MutableMapping
from copy import deepcopy
from functools import wraps
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from threading import RLock
from typing import Any, ClassVar, Self, TypeVar

from twoscale.errors import TwoscaleError, TwoscaleWarning, unknown_name
from twoscale.settings import settings_of

K = TypeVar("K")
P = TypeVar("P", bound="Part")


class Registry(MutableMapping[str, K]):
    """What is known by name: twoscale's own, the user's, and that of installed packages.

    Classes enter themselves when they are defined. So all modules of the `rooms` of twoscale, and
    those that packages name as entry points `twoscale.<room>`, are imported before a name is
    unknown and before all names are listed. A name can be taken anew, but never one of twoscale's.
    """

    def __init__(self, *rooms: str) -> None:
        self.rooms = rooms
        self._known: dict[str, K] = {}
        self._complete = False
        self._loading = RLock()  # an import may look up names itself, but no other thread meanwhile

    def __setitem__(self, name: str, value: K) -> None:
        known = self._known.get(name)
        if known is not None and is_ours(known) and _place(known) != _place(value):
            raise TwoscaleError(f"'{name}' is one of twoscale's own: take another name")
        self._known[name] = value

    def __getitem__(self, name: str) -> K:
        if name not in self._known:
            self._load()
        return self._known[name]

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._known)

    def __len__(self) -> int:
        self._load()
        return len(self._known)

    def items(self) -> ItemsView[str, K]:
        self._load()
        return self._known.items()

    def _load(self) -> None:
        """Import all modules that may have more names, once."""
        with self._loading:
            if self._complete:
                return
            self._complete = True
            try:
                for room in self.rooms:
                    self._load_room(f"twoscale.{room}")
            except BaseException:
                self._complete = False  # such as an interruption: the next look-up goes on
                raise

    def _load_room(self, package: str) -> None:
        for module in iter_modules(import_module(package).__path__):
            import_module(f"{package}.{module.name}")
        for entry in entry_points(group=package):
            self._import(entry)

    def _import(self, entry: EntryPoint) -> None:
        """Import what an entry point names; warn and leave it out if that fails."""
        try:
            known = self._known.get(entry.name)
            if known is not None and _place(known)[0] != entry.module:
                raise TwoscaleError(f"the name is that of {'.'.join(_place(known))} already")
            entry.load()
            if entry.name not in self._known:
                raise TwoscaleError(f"it defines nothing with the name '{entry.name}'")
        except Exception as error:  # a foreign package may fail in any way
            reason = str(error) if isinstance(error, TwoscaleError) else f"{error!r}"
            place = f"the entry point '{entry.name} = {entry.value}'"
            warnings.warn(f"{place} is left out: {reason}", TwoscaleWarning, stacklevel=3)


def _place(value: object) -> tuple[str, str]:
    """Return where a class, or that of an object, is defined; defined again it is the same."""
    kind = value if isinstance(value, type) else type(value)
    return kind.__module__, kind.__qualname__


def is_ours(value: object) -> bool:
    """Say whether a class, or that of an object, is one of twoscale's own."""
    return _place(value)[0].partition(".")[0] == "twoscale"


PARTS: Registry[type[Part]] = Registry("representation", "predictors")
"""All parts by name."""


class Part:
    """Something that is made with plain arguments and can be described by them.

    A subclass with a `name` of its own is known by it: in settings, saved surrogates and searches.
    The arguments of the constructor are checked (see `Setting`) and remembered. From them follow
    the `repr` and the description in a saved surrogate; `build` makes an equal part from that
    description.
    """

    name: ClassVar[str]  # in saved surrogates and on the command line
    title: ClassVar[str] = ""  # for people, in tables and pictures

    _arguments: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = _remembering(cls.__init__)  # type: ignore[method-assign]
        if "name" in vars(cls):
            PARTS[cls.name] = cls

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


def _remembering(init: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor that also checks and remembers its arguments.

    That of the object's own class does so; those that it calls in turn do not.
    """
    signature = inspect.signature(init)

    @wraps(init)
    def remembering(self: Part, *args: Any, **kwargs: Any) -> None:
        if type(self).__init__ is remembering:
            bound = signature.bind(self, *args, **kwargs)
            bound.apply_defaults()
            settings = settings_of(init)
            for name in settings.keys() & bound.arguments.keys():
                if settings[name].meaning:
                    value = settings[name].checked(name, bound.arguments[name])
                    bound.arguments[name] = value
            args, kwargs = bound.args[1:], bound.kwargs
            self._arguments = {name: bound.arguments[name] for name in settings}
        init(self, *args, **kwargs)

    return remembering


def check_registered(part: Any) -> None:
    """Raise unless a part, and all parts inside it, are known by their names."""
    if isinstance(part, Mapping):
        for one in part.values():
            check_registered(one)
    if not isinstance(part, Part):
        return
    if PARTS.get(getattr(part, "name", "")) is not type(part):
        raise TwoscaleError(
            f"{type(part).__name__} cannot be saved without a name: give the class a `name` of its "
            "own"
        )
    for value in part.arguments.values():
        if isinstance(value, Part | Mapping):
            check_registered(value)


def describe(part: Part) -> dict[str, Any]:
    """Return a part as plain values: its name and its arguments, parts inside included."""
    return {"part": part.name, **{key: _plain(value) for key, value in part.arguments.items()}}


def unfitted(part: P) -> P:
    """Return a new part with the same arguments, parts inside included, that is not fitted."""
    if not getattr(part, "state_dict", dict)():
        return deepcopy(part)  # which calls no constructor
    return type(part)(**{name: _unfitted(value) for name, value in part.arguments.items()})


def _unfitted(value: Any) -> Any:
    if isinstance(value, Part):
        return unfitted(value)
    if isinstance(value, Mapping):
        return {key: _unfitted(one) for key, one in value.items()}
    return tuple(map(_unfitted, value)) if isinstance(value, list | tuple) else value


def build(description: Mapping[str, Any], kind: type[P]) -> P:
    """Return the part that a description stands for, which must be of a kind."""
    if not isinstance(description, Mapping) or not isinstance(description.get("part"), str):
        raise TwoscaleError(f"a part is described by its name and arguments, got {description!r}")
    name = description["part"]
    part = PARTS.get(name)
    if part is None or not issubclass(part, kind):
        known = sorted(key for key, one in PARTS.items() if issubclass(one, kind))
        also = "; the module that defines one of your own has to be imported first"
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
