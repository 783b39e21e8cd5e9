"""The options that every command has."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_type_hints

import typer

from twoscale.cli.group import Command, Commands
from twoscale.cli.quiet import muted

QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="Print only errors and the result's path, or its JSON with --json."
    ),
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show where an error came from.")]


class Application(typer.Typer):
    """A group of commands that all have `--quiet` and `--debug`, and help in our layout."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            cls=Commands,
            no_args_is_help=True,
            rich_markup_mode=None,
            pretty_exceptions_enable=False,
            **options,
        )

    def command(self, *arguments: Any, **options: Any) -> Any:
        register = super().command(*arguments, cls=Command, **options)

        def add(function: Callable) -> Callable:
            register(with_common_options(function))
            return function

        return add


def with_common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options of every command added to its own."""

    @wraps(function)
    def command(ctx: typer.Context, quiet: bool, debug: bool, **options: Any) -> None:
        before_the_name = bool(ctx.obj and ctx.obj.get("quiet"))
        with muted() if quiet or before_the_name else nullcontext():
            function(**options)

    hints = get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(function).parameters.items()
    ]
    common = [
        Parameter("quiet", Parameter.KEYWORD_ONLY, annotation=QuietOption, default=False),
        # The door has taken --debug out of the arguments; it stands here for the help.
        Parameter("debug", Parameter.KEYWORD_ONLY, annotation=DebugOption, default=False),
    ]
    context = Parameter("ctx", Parameter.KEYWORD_ONLY, annotation=typer.Context)
    parameters = [context, *own, *common]
    command.__signature__ = signature(function).replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    del command.__wrapped__
    return command
