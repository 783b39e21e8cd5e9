"""Which groups of cells run at the moment, as their workers tell it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock

from twoscale.runtime.progress import Progress
from twoscale.study.planning import Group

_NAMED = 2  # groups that are named; the others are counted


class Running:
    """Reports as the stage `running` how many cells of those left run, and which."""

    def __init__(self, groups: Sequence[Group], progress: Progress) -> None:
        self.left = {group.name: group for group in groups}
        self.stages: dict[str, str] = {}  # of the groups that run
        self.progress = progress
        self.lock = Lock()  # messages come from another thread

    def hear(self, message: tuple[str, str]) -> None:
        """Take in what a group tells: its stage, or nothing at its end."""
        name, stage = message
        with self.lock:
            if name not in self.left:
                return
            if stage:
                self.stages[name] = stage
            else:
                self.stages.pop(name, None)
            self.progress("running", self._count(self.stages), self._count(self.left), self.text())

    def end(self, group: Group) -> None:
        """Count a group as done."""
        with self.lock:
            self.stages.pop(group.name, None)
            del self.left[group.name]

    def text(self) -> str:
        """Return what runs in words, such as `poisson-16 fno seed 0 (training 3/8) and 2 more`."""
        named = list(self.stages.items())[:_NAMED]
        words = ", ".join(f"{_words(self.left[name])} ({stage})" for name, stage in named)
        others = self._count(self.stages) - self._count(name for name, _ in named)
        return f"{words} and {others} more" if others else words

    def _count(self, names: Iterable[str]) -> int:
        return sum(len(self.left[name].cells) for name in names)


def _words(group: Group) -> str:
    more = len(group.cells) - 1
    return group.cells[0].name + (f" with {more} more" if more else "")
