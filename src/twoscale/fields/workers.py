"""Who works on the parts of fields: threads of this process, the GPU, or other processes.

A source is cut into ranges of samples that depend on its shape only. Work on a range is done by one
thread, and sums are taken over a tree of ranges that depends on their number only. So a result has
the same bytes, however many workers there are and wherever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from twoscale.runtime.threads import one_thread, prefetch

if TYPE_CHECKING:
    from twoscale.fields.source import FieldSource

ARITY = 8  # sums that are added one after the other in `tree_sum`

Tensors = tuple[Tensor, ...]
Work = Callable[[Iterator[Tensor]], Any]
"""What is done with the fields of a range, which come in chunks (batch, channels, *shape).

Its result is any value; of work that is summed up, tensors of the same shapes for each range.
"""


class Workers(Protocol):
    """Does work on all ranges of a source."""

    def map(self, work: Work, source: FieldSource) -> Iterator[Any]:
        """Yield the results of the ranges, in their order."""
        ...

    def total(self, work: Work, source: FieldSource) -> Tensors:
        """Return the sum of the results over all ranges."""
        ...


class Tasks(Protocol):
    """Does what a function says with each of some items, such as groups of cells."""

    def each(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield function(item) in order; raise the error of an item, or WorkersError."""
        ...

    def as_finished(
        self,
        function: Callable[[Any], Any],
        following: Callable[[], Any],
        waiting: Callable[[], None] | None = None,
    ) -> Iterator[tuple[Any, Any]]:
        """Yield (item, function(item)), the first that is finished first.

        Whenever a worker is free, `following` gives the next item, or None if there is none now.
        The end is when no item is being worked on, and None follows. `waiting` is called about once
        a second meanwhile.

        The result of an item that several workers died of, or that a worker lacks the memory for,
        is a WorkersError; the others go on. What ends everything is raised: an error of `function`
        itself, and a WorkersError if no workers are left, if the connection to them is lost for
        good, or if one of them has other versions or several threads.
        """
        ...

    def listening(self, hear: Callable[[Any], None]) -> AbstractContextManager[None]:
        """Call `hear` with the messages of tasks during the block, from another thread."""
        ...

    @property
    def count(self) -> int:
        """Return how many workers there are."""
        ...

    @property
    def most_per_machine(self) -> int:
        """Return the largest number of workers on one machine."""
        ...


class Cluster(Workers, Tasks, Protocol):
    """Other processes, which take work on ranges as well as tasks of any kind."""


class Threads:
    """The threads of this process: as many ranges at a time as torch has threads."""

    def map(self, work: Work, source: FieldSource) -> Iterator[Any]:
        ranges = source.ranges()
        workers = min(torch.get_num_threads(), len(ranges))
        with one_thread():
            if workers > 1:
                yield from prefetch(Job(work, source), ranges, workers=workers)
            else:
                yield from map(Job(work, source), ranges)

    def total(self, work: Work, source: FieldSource) -> Tensors:
        ranges = source.ranges()
        if len(ranges) > 1:
            return tree_sum(self.map(work, source))
        with one_thread():
            found: Tensors = Job(work, source)(ranges[0])
        return found


class InTurn:
    """One chunk after the other, in the order of the source: for a GPU, which is fast alone."""

    def map(self, work: Work, source: FieldSource) -> Iterator[Any]:
        for chunk in source.chunks():
            yield work(iter([chunk]))

    def total(self, work: Work, source: FieldSource) -> Tensors:
        found: Tensors = work(source.chunks())
        return found


THREADS, IN_TURN = Threads(), InTurn()
HERE = (THREADS, IN_TURN)
"""Workers of this process."""


def on_device(cuda: bool) -> Workers:
    """Return who works on fields in the memory of a device."""
    return IN_TURN if cuda else THREADS


def tree_sum(parts: Iterable[Tensors]) -> Tensors:
    """Return the sums of tensors over all parts, taken as a tree over their order.

    Eight parts are added one after the other, then eight of these sums, and so on. One sum for each
    level of the tree is held: a binary tree would have three times as many. Sums of aligned groups
    of 8^k parts, put in the place of these, give the same bytes.

    >>> tree_sum([(torch.tensor(1),), (torch.tensor(2),), (torch.tensor(3),)])
    (tensor(6),)
    """
    levels: list[_Level] = []
    for part in parts:
        one: Tensors | None = part
        for level in levels:
            if one is None:
                break
            one = level.add(one)
        if one is not None:
            levels.append(_Level(one))
    found: Tensors | None = None
    for level in levels:
        found = level.total if found is None else level.with_last(found)
    assert found is not None
    return found


class _Level:
    """A sum of fewer than eight sums of the level below."""

    def __init__(self, first: Tensors) -> None:
        self.total: Tensors | None = first
        self.count = 1

    def add(self, one: Tensors) -> Tensors | None:
        """Add a sum of the level below; return a sum of eight, after which the level is empty."""
        self.total, self.count = self.with_last(one), self.count + 1
        if self.count < ARITY:
            return None
        whole, self.total, self.count = self.total, None, 0
        return whole

    def with_last(self, one: Tensors) -> Tensors:
        """Return the sum with another one; the tensors of this level are no longer needed."""
        if self.total is None:
            return one
        if self.count == 1:  # the tensors may be somebody else's
            return tuple(a + b for a, b in zip(self.total, one, strict=True))
        return tuple(a.add_(b) for a, b in zip(self.total, one, strict=True))


@dataclass(frozen=True)
class Job:
    """Work on a source, as one object that can be sent to another process."""

    work: Work
    source: FieldSource

    def __call__(self, samples: slice) -> Any:
        """Return the result of a range, without gradients."""
        with torch.no_grad():
            return self.work(self.source.read(samples))
