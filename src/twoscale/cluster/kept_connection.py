"""A connection to a scheduler that is opened again whenever it is lost."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any
from uuid import uuid4

from twoscale.cluster import waiting
from twoscale.cluster.checks import versions
from twoscale.cluster.scheduler import UnreachableSchedulerError, asking, close_client, workers_now
from twoscale.cluster.worker_task import TOPIC, do_task
from twoscale.errors import TwoscaleWarning, WorkersError

_RESTARTS = 5  # broken connections in a row that are mended
_CLOSE_SECONDS = 10.0


class KeptConnection:
    """Submits tasks of one command, and receives the messages that they send.

    `connect` returns a client, or raises UnreachableSchedulerError. `tell` is called with a line of
    text on each connection, and on the loss of a worker.

    `client` is the present client, `places` the addresses of its workers when it connected.
    """

    def __init__(
        self, connect: Callable[[], Any], *, tell: Callable[[str], None] | None = None
    ) -> None:
        self._connect = connect
        self._tell = tell
        self._name = uuid4().hex  # of this command, among all that use the scheduler
        self._on_message: Callable[[Any], None] | None = None
        self._open()

    def _open(self) -> None:
        """Connect, and count the workers."""
        self.client = self._connect()
        try:
            self.places: list[str] = sorted(workers_now(self.client))
        except BaseException:
            self.close()
            raise
        self.client.subscribe_topic(TOPIC, self._receive)
        self.client.subscribe_topic("all", self._cluster_event)
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

    def send(self, function: Callable[..., Any]) -> Any:
        """Return a function as a task's result, which each worker holds once.

        Data that are scattered would be gone with their last worker; a task is done again.
        """
        return self.submit(pickle.loads, _pickled(function))

    def submit(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        priority: int = 0,
        place: str | None = None,
    ) -> Any:
        """Return the future of function(*arguments), done at a place if it is free."""
        key = f"{function.__name__.strip('_')}-{uuid4().hex}"  # its name on the dashboard
        options: dict[str, Any] = {"key": key, "pure": False, "priority": priority}
        if place is not None:  # where the data of the pass before may still be
            options |= {"workers": [place], "allow_other_workers": True}
        with warnings.catch_warnings(), asking(self.client):
            warnings.filterwarnings("ignore", message=".*large graph.*")
            return self.client.submit(
                do_task, versions(), self._name, function, *arguments, **options
            )

    def reopen(self, error: BaseException, failures: int) -> None:
        """Connect again after an error, the last of so many in a row; raise if it cannot be done.

        Tasks that were submitted before are lost.
        """
        if failures > _RESTARTS:
            raise WorkersError(
                f"the connection to the workers was lost {failures} times in a row: {error}"
            ) from error
        warnings.warn(
            f"the connection to the scheduler was lost: waiting {waiting.minutes()} for it, or "
            "for another one at its address",
            TwoscaleWarning,
            stacklevel=2,
        )
        close_client(self.client, seconds=1)
        end = monotonic() + waiting.PATIENCE
        while True:
            try:
                self._open()
                return
            except UnreachableSchedulerError:
                if monotonic() > end:
                    raise

    @contextmanager
    def listening(self, on_message: Callable[[Any], None]) -> Iterator[None]:
        """Call a function with the messages of tasks during the block, from another thread."""
        self._on_message = on_message
        try:
            yield
        finally:
            self._on_message = None

    def _receive(self, event: tuple[float, Any]) -> None:
        """Pass on a message, if a task of this command sent it."""
        command, message = event[1]
        if command == self._name and (on_message := self._on_message):
            on_message(message)

    def _cluster_event(self, event: tuple[float, Any]) -> None:
        """Tell of a worker that was lost."""
        match event[1]:
            case {"action": "remove-worker", "worker": name, "expected": False} if self._tell:
                self._tell(f"the worker {name} was lost: others do its work again")

    def close(self) -> None:
        """End the connection."""
        close_client(self.client, seconds=_CLOSE_SECONDS)


def _pickled(function: Callable[..., Any]) -> bytes:
    from distributed.protocol.pickle import dumps

    return bytes(dumps(function))
