"""Work on ranges of samples, done by the workers of a Dask cluster."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from itertools import cycle, islice
from typing import Any, Generic, TypeVar

from twoscale.cluster.connection import CONNECT_SECONDS, Connection, client_opener
from twoscale.cluster.scheduler import (
    LostItemError,
    first_done,
    lost_connection_errors,
    task_result,
    workers_now,
)
from twoscale.cluster.worker import silence_dask
from twoscale.errors import missing_extra
from twoscale.fields.source import FieldSource
from twoscale.fields.workers import ARITY, Job, Tensors, Work, tree_sum
from twoscale.runtime.progress import Progress

Item = TypeVar("Item")
_GROUPS = 3  # of ranges for each worker, at least: a worker that dies loses one of them
_AHEAD = 3  # tasks for each worker that are asked for before their results are taken
_MANY = 256  # groups of one sum: more of them are added up by workers
_SETTINGS = {
    "distributed.comm.timeouts.connect": f"{CONNECT_SECONDS}s",
    "distributed.comm.retry.count": 3,
    "distributed.scheduler.allowed-failures": 5,  # workers that may die of the same task
}


@contextmanager
def connected(
    where: str | None,
    *,
    progress: Progress | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[DaskWorkers | None]:
    """Give the workers at an address such as local:4 or tcp://host:8786; None without an address.

    Processes of this machine end with the block; a scheduler elsewhere goes on. `tell` is called
    with a line of text that says where the dashboard is.
    """
    if where is None:
        yield None
        return
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError as error:
        raise missing_extra("distributed", "cluster") from error
    silence_dask()
    with dask.config.set(_SETTINGS), client_opener(where) as connect:
        connection = Connection(connect, tell=tell)
        try:
            yield DaskWorkers(connection, progress=progress)
        finally:
            connection.close()


@dataclass
class _Task(Generic[Item]):
    """An item that a worker works on; the place is where it was sent, unless any would do."""

    item: Item
    future: Any = None
    place: str | None = None


class DaskWorkers:
    """The workers of a Dask cluster; one thread of each works on a range of samples.

    A worker that dies is replaced by the others: its work is done again. If the scheduler goes away
    and another one comes to its address, the pass that was interrupted is done again. Results are
    the same bytes.
    """

    def __init__(self, connection: Connection, *, progress: Progress | None = None) -> None:
        self.connection = connection
        self.progress = progress

    @property
    def count(self) -> int:
        """Return how many workers there were when the connection was opened."""
        return self.connection.count

    @property
    def most_per_machine(self) -> int:
        """Return the largest number of workers on one machine."""
        hosts = Counter(place.rsplit(":", 1)[0] for place in self.connection.places)
        return max(hosts.values(), default=1)

    def map(self, work: Work, source: FieldSource) -> Iterator[Any]:
        """Yield the results of the ranges, in their order."""
        ranges = source.ranges()
        yield from self._counted(self.each(Job(work, source), ranges), ranges)

    def total(self, work: Work, source: FieldSource) -> Tensors:
        """Return the sum of the results over all ranges; only sums travel."""
        ranges = source.ranges()
        size = _group_size(len(ranges), _GROUPS * self.count)
        groups = [ranges[start : start + size] for start in range(0, len(ranges), size)]
        job = Job(work, source)
        if len(groups) > _MANY:
            return self._total_of_many(job, groups)
        return tree_sum(self._counted(self.each(partial(_sum_of_ranges, job), groups), groups))

    def each(self, function: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[Any]:
        """Yield function(item) in order; items are taken when a worker is about to be free."""
        waiting: deque[Item] = deque()  # whose results are asked for
        futures: deque[Any] = deque()
        iterator = iter(items)
        connection = self.connection
        loaded: Any = None
        places: Iterator[str] = iter(())
        while True:
            try:
                if loaded is None:
                    loaded, places = connection.send(function), cycle(connection.places)
                    futures = deque(connection.submit(_apply, loaded, one) for one in waiting)
                for item in islice(iterator, max(0, _AHEAD * self.count - len(waiting))):
                    waiting.append(item)
                    place = next(places, None)
                    futures.append(connection.submit(_apply, loaded, item, place=place))
                if not waiting:
                    return
                result = task_result(futures[0])
            except lost_connection_errors() as error:
                connection.reopen(error)
                loaded = None
                continue
            connection.failures = 0
            waiting.popleft()
            futures.popleft()
            yield result

    def as_finished(
        self,
        function: Callable[[Item], Any],
        following: Callable[[], Item | None],
        waiting: Callable[[], None] | None = None,
    ) -> Iterator[tuple[Item, Any]]:
        """Yield (item, function(item)), the first that is finished first; see `Tasks`."""
        running: list[_Task[Item]] = []
        connection = self.connection
        loaded: Any = None
        while True:
            try:
                if loaded is None:
                    loaded = connection.send(function)
                    running = [_Task(task.item) for task in running]
                places = set(workers_now(connection.client))
                while len(running) < max(1, len(places)) and (item := following()) is not None:
                    running.append(_Task(item))
                if not running:
                    return
                self._submit_new(running, loaded, places)
                futures = [task.future for task in running]
                first = first_done(connection.client, futures, waiting)
                result = _result_or_loss(futures[first], loaded)
            except lost_connection_errors() as error:
                connection.reopen(error)
                loaded = None
                continue
            connection.failures = 0
            yield running.pop(first).item, result

    def _submit_new(self, tasks: Sequence[_Task[Item]], loaded: Any, places: set[str]) -> None:
        """Submit the tasks that are not submitted, each to a place where none of the others is."""
        for task in tasks:
            if task.future is None:
                task.place = min(places - {one.place for one in tasks}, default=None)
                task.future = self.connection.submit(_apply, loaded, task.item, place=task.place)

    def _total_of_many(self, job: Job, groups: Sequence[list[slice]]) -> Tensors:
        """Return the sum over many groups, whose sums are added up by workers as well."""
        submit = self.connection.submit
        add = partial(submit, _sum_of_two, priority=1)  # soon, so that few sums wait for others
        while True:
            try:
                loaded = self.connection.send(job)
                level = [submit(_sum_of_ranges, loaded, group) for group in groups]
                while len(level) > ARITY:
                    parts = [level[start : start + ARITY] for start in range(0, len(level), ARITY)]
                    level = [reduce(add, part) for part in parts]
                result = tree_sum(self._counted(map(task_result, level), level))
            except lost_connection_errors() as error:
                self.connection.reopen(error)
                continue
            self.connection.failures = 0
            return result

    def _counted(self, results: Iterator[Item], all_of_them: Sequence[Any]) -> Iterator[Item]:
        """Yield results, and report how many there are."""
        for done, result in enumerate(results, 1):
            if self.progress:
                total = len(all_of_them)
                self.progress("on workers", done, total, self.connection.description)
            yield result

    def listening(self, hear: Callable[[Any], None]) -> AbstractContextManager[None]:
        """Call `hear` with the messages of tasks during the block, from another thread."""
        return self.connection.listening(hear)


def _group_size(ranges: int, groups: int) -> int:
    """Return how many ranges make a group: a power of `ARITY` that leaves so many groups or more.

    >>> _group_size(100, 6), _group_size(3, 6)
    (8, 1)
    """
    size = 1
    while size * ARITY * groups <= ranges:
        size *= ARITY
    return size


def _result_or_loss(future: Any, loaded: Any) -> Any:
    """Return the result of an item, or the LostItemError that it ended with.

    Raise if `loaded`, which all items need, is what the workers died of.
    """
    try:
        return task_result(future)
    except LostItemError as error:
        if loaded.status == "error":
            raise
        return error


def _apply(function: Callable[[Item], Any], item: Item) -> Any:
    return function(item)


def _sum_of_ranges(job: Job, ranges: Sequence[slice]) -> Tensors:
    return tree_sum(map(job, ranges))


def _sum_of_two(one: Tensors, other: Tensors) -> Tensors:
    return tree_sum([one, other])
