"""Commands and groups of commands: their help, and the exceptions that they let through."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperCommand, TyperGroup

from twoscale.cli.help import describe, help_text
from twoscale.errors import TwoscaleError, did_you_mean


class PassedOn(BaseException):
    """Carries an exception past Typer, which would make an exit status of its own of it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Command(TyperCommand):
    """Shows help in our layout."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(describe(self, ctx.command_path)))


class Commands(TyperGroup):
    """Passes on interruptions and broken pipes, with everything they carry."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(help_text(describe(self, ctx.command_path)))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = str(args[0])
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            path = ctx.command_path
            hint = did_you_mean(name, self.list_commands(ctx))
            raise TwoscaleError(f"no command is called '{name}'{hint}. Try {path} --help.")
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _passing_on():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _passing_on():
            return super().invoke(ctx)


@contextmanager
def _passing_on() -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, BrokenPipeError) as error:
        raise PassedOn(error) from None
