"""Trainings that end in time: a deadline, and the share of the time before it that is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from twoscale.runtime.timing import now


@dataclass(frozen=True)
class Deadline:
    """The time at which a training has to end; `clock` returns the present time in seconds."""

    end: float
    clock: Callable[[], float] = now


class TimeLimit:
    """How much of the time before a deadline a training has used.

    Time for one more validation is kept. Without a deadline there is no limit.
    """

    def __init__(self, deadline: Deadline | None = None) -> None:
        self.deadline = deadline
        self.begun = deadline.clock() if deadline else 0.0
        self.validation = 0.0  # seconds of the latest one

    @property
    def share(self) -> float:
        """Return the share of the time for steps that is used, from 0 to 1."""
        if self.deadline is None:
            return 0.0
        whole = self.deadline.end - self.validation - self.begun
        used = self.deadline.clock() - self.begun
        return min(1.0, used / whole) if whole > 0 else 1.0

    @property
    def over(self) -> bool:
        """Say whether all of that time is used."""
        return self.deadline is not None and self.share >= 1.0

    @contextmanager
    def validating(self) -> Iterator[None]:
        """Measure the time of a validation."""
        if self.deadline is None:
            yield
            return
        start = self.deadline.clock()
        yield
        self.validation = self.deadline.clock() - start

    def state(self) -> dict[str, Any]:
        """Return what a later process needs, for `restore`."""
        return {"begun": self.begun, "validation": self.validation}

    def restore(self, state: dict[str, Any]) -> None:
        """Count the time that another process used; its clock must go on in this one."""
        self.begun, self.validation = state["begun"], state["validation"]
