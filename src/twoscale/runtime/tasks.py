"""What a task knows of the command that asked for it, which may run elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


class Abandoned(BaseException):
    """Nobody waits for the result of this task any more."""


@dataclass(frozen=True)
class Caller:
    """The command that asked for a task: `waits` says if it still does, `tell` sends it a message.

    A message consists of lists and texts.
    """

    waits: Callable[[], bool]
    tell: Callable[[Any], None]

    def check(self) -> None:
        """Raise Abandoned if the command no longer waits: long tasks call this now and then."""
        if not self.waits():
            raise Abandoned("nobody waits for the result")


_HERE = Caller(waits=lambda: True, tell=lambda message: None)
_CALLER = ContextVar("caller", default=_HERE)


def caller() -> Caller:
    """Return who asked for the task that this thread does."""
    return _CALLER.get()


@contextmanager
def called_by(one: Caller) -> Iterator[None]:
    """Let `caller` return this one inside the block."""
    token = _CALLER.set(one)
    try:
        yield
    finally:
        _CALLER.reset(token)
