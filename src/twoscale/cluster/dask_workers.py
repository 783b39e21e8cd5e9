"""Work on ranges of samples, done by the workers of a Dask cluster."""

from __future__ import annotations

import math
import pickle
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from time import monotonic
from typing import Any, Generic, TypeVar
from uuid import uuid4

from twoscale.cluster import awaiting
from twoscale.cluster.checks import check_workers, versions
from twoscale.cluster.worker_task import TOPIC, do_task
from twoscale.errors import TwoscaleError, TwoscaleWarning, WorkersError
from twoscale.fields.source import FieldSource
from twoscale.fields.workers import Job, Tensors, Work, tree_sum
from twoscale.runtime.progress import Progress

Item = TypeVar("Item")
_GROUPS = 6  # of ranges for each worker: a worker that dies loses one of them
_ARITY = 8  # sums that are added up by one task; a power of two, as `tree_sum` asks for
_AHEAD = 3  # tasks for each worker that are asked for before their results are taken
_TICK = 1.0  # seconds between two calls while results are waited for
_MANY = 64  # groups of one sum: more of them are added up in several steps
_RESTARTS = 5  # broken connections in a row that are mended


class _LostError(Exception):
    """The scheduler did not take a task."""


@dataclass
class _Task(Generic[Item]):
    """An item that a worker works on; the place is where it was sent, unless any would do."""

    item: Item
    future: Any = None
    place: str | None = None


class UnreachableError(WorkersError):
    """There is no scheduler, or it has no workers; both may come."""


class DaskWorkers:
    """The workers of a Dask cluster; one thread of each works on a range of samples.

    A worker that dies is replaced by the others: its work is done again. If the scheduler goes away
    and another one comes to its address, the pass that was interrupted is done again. Results are
    the same bytes. `tell` is called with a line of text on each connection.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        *,
        progress: Progress | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._connect = connect
        self._name = uuid4().hex  # of this command, among all that use the scheduler
        self._hear: Callable[[Any], None] | None = None
        self._tell = tell
        self.progress = progress
        self._open()

    def _open(self) -> None:
        """Connect, and count the workers."""
        self.client = self._connect()
        self.places: list[str] = sorted(self.client.nthreads())
        self.client.subscribe_topic(TOPIC, self._heard)
        self.client.subscribe_topic("all", self._noticed)  # what happens to the cluster
        if self._tell:
            self._tell(f"{self.description}, dashboard: {self.client.dashboard_link}")

    @property
    def count(self) -> int:
        """Return how many workers there were when the connection was opened."""
        return max(1, len(self.places))

    @property
    def description(self) -> str:
        """Return in words how many workers there are."""
        return f"{self.count} worker{'' if self.count == 1 else 's'}"

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
            return self._mended(lambda: self._total_of_many(job, groups))
        return tree_sum(self._counted(self.each(partial(_sum_of_ranges, job), groups), groups))

    def _counted(self, results: Iterator[Item], all_of_them: Sequence[Any]) -> Iterator[Item]:
        """Yield results, and report how many there are."""
        for done, result in enumerate(results, 1):
            self._report(done, len(all_of_them))
            yield result

    def each(self, function: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[Any]:
        """Yield function(item) in order; items are taken when a worker is about to be free."""
        waiting: deque[Item] = deque()  # whose results are asked for
        futures: deque[Any] = deque()
        iterator = iter(items)
        failures = 0
        loaded: Any = None
        places: Iterator[str] = iter(())
        while True:
            try:
                if loaded is None:
                    loaded, places = self._sent(function), cycle(self.places)
                    futures = deque(self._submit(_apply, loaded, one) for one in waiting)
                for item in islice(iterator, max(0, _AHEAD * self.count - len(waiting))):
                    waiting.append(item)
                    futures.append(self._submit(_apply, loaded, item, place=next(places, None)))
                if not waiting:
                    return
                result = _result(futures[0])
            except _lost_connections() as error:
                failures += 1
                self._reconnect(error, failures)
                loaded = None
                continue
            failures = 0
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
        failures = 0
        loaded: Any = None
        while True:
            try:
                if loaded is None:
                    loaded = self._sent(function)
                    running = [_Task(task.item) for task in running]
                places = self._places_now()
                while len(running) < max(1, len(places)) and (item := following()) is not None:
                    running.append(_Task(item))
                if not running:
                    return
                for task in running:
                    if task.future is None:
                        task.place = min(places - {one.place for one in running}, default=None)
                        task.future = self._submit(_apply, loaded, task.item, place=task.place)
                first = self._first_done([task.future for task in running], waiting)
                result = _result(running[first].future)
            except _lost_connections() as error:
                failures += 1
                self._reconnect(error, failures)
                loaded = None
                continue
            failures = 0
            yield running.pop(first).item, result

    def _first_done(self, futures: Sequence[Any], waiting: Callable[[], None] | None) -> int:
        """Return the place of a future that is done; call `waiting` once a second until then."""
        from distributed import wait

        lookout = awaiting.Lookout(self.client)
        while True:
            for place, future in enumerate(futures):
                if future.done():
                    return place
            try:
                with self.client.as_current():
                    wait(futures, timeout=_TICK, return_when="FIRST_COMPLETED")
            except TimeoutError:
                lookout.look()
                if waiting:
                    waiting()

    def _places_now(self) -> set[str]:
        """Return the workers that there are now; there may be more later."""
        try:
            return set(self.client.nthreads())
        except OSError as error:  # no reply of the scheduler
            raise _LostError(str(error)) from error

    @property
    def most_per_machine(self) -> int:
        """Return the largest number of workers on one machine."""
        hosts = Counter(place.rsplit(":", 1)[0] for place in self.places)
        return max(hosts.values(), default=1)

    @contextmanager
    def listening(self, hear: Callable[[Any], None]) -> Iterator[None]:
        """Call `hear` with the messages of tasks during the block, from another thread."""
        self._hear = hear
        try:
            yield
        finally:
            self._hear = None

    def _heard(self, event: tuple[float, Any]) -> None:
        command, message = event[1]
        if command == self._name and (hear := self._hear):
            hear(message)

    def _noticed(self, event: tuple[float, Any]) -> None:
        match event[1]:
            case {"action": "remove-worker", "worker": name, "expected": False} if self._tell:
                self._tell(f"the worker {name} was lost: others do its work again")

    def close(self) -> None:
        """End the connection."""
        self.client.close()

    def _total_of_many(self, job: Job, groups: Sequence[list[slice]]) -> Tensors:
        """Return the sum over many groups, whose sums are added up by workers as well."""
        loaded = self._sent(job)
        level = [self._submit(_sum_of_ranges, loaded, group) for group in groups]
        while len(level) > _ARITY:
            level = [
                self._submit(_sum_of_sums, level[start : start + _ARITY], priority=1)
                for start in range(0, len(level), _ARITY)
            ]
        return tree_sum(self._counted(map(_result, level), level))

    def _sent(self, function: Callable[..., Any]) -> Any:
        """Return a function as a task's result, which each worker holds once.

        Data that are scattered would be gone with their last worker; a task is done again.
        """
        return self._submit(pickle.loads, _pickled(function))

    def _submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        priority: int = 0,
        place: str | None = None,
    ) -> Any:
        key = f"{function.__name__.strip('_')}-{uuid4().hex}"  # its name on the dashboard
        options: dict[str, Any] = {"key": key, "pure": False, "priority": priority}
        if place is not None:  # where the data of the pass before may still be
            options |= {"workers": [place], "allow_other_workers": True}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*large graph.*")
            try:
                return self.client.submit(
                    do_task, versions(), self._name, function, *arguments, **options
                )
            except Exception as error:
                # No reply of the scheduler, or it went away for long while nothing was asked of it.
                if isinstance(error, OSError) or self.client.status in ("closing", "closed"):
                    raise _LostError(str(error)) from error
                raise

    def _mended(self, action: Callable[[], Tensors]) -> Tensors:
        """Return action(), done again after a lost connection."""
        failures = 0
        while True:
            try:
                return action()
            except _lost_connections() as error:
                failures += 1
                self._reconnect(error, failures)

    def _reconnect(self, error: BaseException, failures: int) -> None:
        """Connect again, or say that it cannot be done."""
        if failures > _RESTARTS:
            raise TwoscaleError(
                f"the connection to the workers was lost {failures} times in a row: {error}"
            ) from error
        warnings.warn(
            f"the connection to the scheduler was lost: waiting {awaiting.minutes()} for it, or "
            "for another one at its address",
            TwoscaleWarning,
            stacklevel=2,
        )
        self.client.close(timeout=1)
        end = monotonic() + awaiting.PATIENCE
        while True:
            try:
                self._open()
                return
            except UnreachableError:
                if monotonic() > end:
                    raise

    def _report(self, done: int, total: int) -> None:
        if self.progress:
            self.progress("on workers", done, total, self.description)


def _group_size(ranges: int, groups: int) -> int:
    """Return how many ranges make a group: a power of two that leaves about so many groups.

    >>> _group_size(100, 12), _group_size(3, 12)
    (8, 1)
    """
    return 2 ** max(0, math.floor(math.log2(max(1, ranges / groups))))


def _pickled(function: Callable[..., Any]) -> bytes:
    from distributed.protocol.pickle import dumps

    return bytes(dumps(function))


def _lost_connections() -> tuple[type[BaseException], ...]:
    from distributed.comm import CommClosedError

    return (_LostError, CommClosedError, CancelledError, TimeoutError)


def _result(future: Any) -> Any:
    """Return a task's result, or raise its error in words."""
    from distributed.scheduler import KilledWorker

    try:
        return awaiting.awaited(future)
    except KilledWorker as error:
        raise TwoscaleError(
            "several workers died one after the other while they did the same work: most often "
            "they were out of memory; give them more, or use fewer per machine"
        ) from error
    except MemoryError as error:
        raise TwoscaleError("a worker is out of memory: give it more, or use fewer") from error
    except Exception as error:
        if not isinstance(error, (TwoscaleError, *_lost_connections())):
            check_workers(future.client)  # another version may lack what was asked for
        raise


def _apply(function: Callable[[Item], Any], item: Item) -> Any:
    return function(item)


def _sum_of_ranges(job: Job, ranges: Sequence[slice]) -> Tensors:
    return tree_sum(map(job, ranges))


def _sum_of_sums(parts: Sequence[Tensors]) -> Tensors:
    return tree_sum(parts)
