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

    def __init__(self, *, examples: tuple[str, ...], **options: Any) -> None:
        super().__init__(
            no_args_is_help=False,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            epilog=_epilog(examples),
            **options,
        )

    def add(self, *examples: str, name: str | None = None) -> Callable[[Command], Command]:
        """Return a decorator that adds a command, with examples for its help."""

        def add(function: Command) -> Command:
            summary = (function.__doc__ or "").split("\n\n")[0]
            settings: dict[str, Any] = {"epilog": _epilog(examples), "short_help": summary}
            self.command(name, **settings)(_with_options(function))
            return function

        return add


def _epilog(examples: tuple[str, ...]) -> str:
    return "\n".join(["\b\nExamples:", *(f"  {example}" for example in examples)])


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
