"""The group of all commands, which lets some exceptions through as they are."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class PassedOn(BaseException):
    """Carries an exception past Typer, which would make an exit status of its own of it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


class Commands(TyperGroup):
    """Passes on interruptions and broken pipes, with everything they carry."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, BrokenPipeError) as error:
            raise PassedOn(error) from None
