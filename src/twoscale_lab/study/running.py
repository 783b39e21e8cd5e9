"""Which groups of cells run at the moment, as their workers tell it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from twoscale.runtime.progress import Progress
from twoscale_lab.study.planning import Group

_NAMED = 2  # groups that are named; the others are counted


class Running:
    """Reports as the stage `running` how many cells of those left run, and which."""

    def __init__(self, groups: Sequence[Group], progress: Progress) -> None:
        self.left = {group.name: group for group in groups}
        self.stages: dict[str, str] = {}  # of the groups that run; another thread hears of them
        self.progress = progress

    def hear(self, message: tuple[str, str]) -> None:
        """Take in what a group tells: its stage, or nothing at its end."""
        name, stage = message
        if stage:
            self.stages[name] = stage
        else:
            self.stages.pop(name, None)

    def end(self, group: Group) -> None:
        """Count a group as done."""
        del self.left[group.name]

    def report(self) -> None:
        """Tell which groups run, such as `poisson-16 fno seed 0 (training 3/8) and 2 more`."""
        stages = {name: stage for name, stage in self.stages.copy().items() if name in self.left}
        if not stages:
            return
        named = list(stages)[:_NAMED]
        words = ", ".join(f"{_words(self.left[name])} ({stages[name]})" for name in named)
        count = self._count(stages)
        if others := count - self._count(named):
            words += f" and {others} more"
        self.progress("running", count, self._count(self.left), words)

    def _count(self, names: Iterable[str]) -> int:
        return sum(len(self.left[name].cells) for name in names)


def _words(group: Group) -> str:
    more = len(group.cells) - 1
    return group.cells[0].name + (f" with {more} more" if more else "")
