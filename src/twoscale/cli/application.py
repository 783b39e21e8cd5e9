"""The application that commands join, and options that several commands share as one argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, signature
from typing import Any, get_type_hints

import typer

Command = Callable[..., None]


class Application(typer.Typer):
    """A group of commands.

    An argument of a command may be a dataclass: each of its fields is then an option.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(rich_markup_mode=None, pretty_exceptions_enable=False, **options)

    def add(self, function: Command) -> Command:
        """Add a command that is called as the function; its help is the docstring."""
        summary = (function.__doc__ or "").split("\n\n")[0]
        name = function.__name__.rstrip("_")
        self.command(name, short_help=summary)(_with_options(function))
        return function


def _with_options(function: Command) -> Command:
    """Return a command that has an option for each field of arguments that are dataclasses."""
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(function)
    def command(**options: Any) -> None:
        made = {
            name: group(**{field.name: options.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        function(**options, **made)

    parameters = []
    for name, parameter in signature(function).parameters.items():
        if name in groups:
            inside = get_type_hints(groups[name], include_extras=True)
            parameters += [
                _option(field.name, field.default, inside[field.name])
                for field in fields(groups[name])
            ]
        else:
            parameters.append(_option(name, parameter.default, hints[name]))
    command.__signature__ = signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    del command.__wrapped__
    return command


def _option(name: str, default: Any, annotation: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
