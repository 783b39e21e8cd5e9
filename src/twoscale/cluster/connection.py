"""A connection to Dask: opened, checked, opened again whenever it is lost, and closed."""

from __future__ import annotations

import pickle
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic, sleep
from typing import Any
from uuid import uuid4

from twoscale.cluster import scheduler
from twoscale.cluster.scheduler import (
    UnreachableSchedulerError,
    asking,
    check_workers,
    close_client,
    first_line,
    workers_now,
)
from twoscale.cluster.worker import TOPIC, do_task, versions
from twoscale.errors import TwoscaleError, TwoscaleWarning, WorkersError
from twoscale.runtime.logs import LOGGER

CONNECT_SECONDS = 10
_WAIT_SECONDS = 30  # for the first worker
_PAUSE = 0.1  # seconds between two questions for it
_RESTARTS = 5  # broken connections in a row that are mended


def local_processes(where: str) -> int | None:
    """Return how many processes of this machine an address names; None if that of a scheduler.

    >>> local_processes("local:4"), local_processes("tcp://host:8786")
    (4, None)
    """
    if local := re.fullmatch(r"local:([1-9]\d{0,3})", where):
        return int(local[1])
    if re.fullmatch(r"(?:tcp|tls|ws|wss|ucx)://[^\s/]+:\d+", where):
        return None
    raise TwoscaleError(
        "a scheduler is local:4 (that many worker processes of this machine) or the address "
        f"of a Dask scheduler, such as tcp://host:8786, got '{where}'"
    )


@contextmanager
def client_opener(where: str) -> Iterator[Callable[[], Any]]:
    """Give what opens a client of the scheduler at an address, again after a broken connection.

    Processes of this machine end with the block.
    """
    from distributed import LocalCluster
    from distributed.utils import LoopRunner

    processes = local_processes(where)
    if processes is None:
        # A client without a loop starts a thread, which stays for good if it cannot connect.
        runner = LoopRunner(asynchronous=False)
        runner.start()
        try:
            yield partial(open_client, where, where, runner.loop)
        finally:
            runner.stop(timeout=CONNECT_SECONDS)
        return
    cluster = LocalCluster(
        n_workers=processes,
        threads_per_worker=1,
        processes=True,
        memory_limit=0,  # a fit limits its memory by itself
        dashboard_address="127.0.0.1:0",
        preload=["twoscale.cluster.worker"],
    )
    try:
        yield partial(open_client, where, cluster, None)
    finally:
        cluster.close(timeout=CONNECT_SECONDS)


def open_client(where: str, target: Any, loop: Any) -> Any:
    """Return a client of a cluster or an address, whose workers have our versions.

    Raise UnreachableSchedulerError if no scheduler answers, or it has no workers.
    """
    from distributed import Client

    try:
        client = Client(target, timeout=CONNECT_SECONDS, set_as_default=False, loop=loop)
    except OSError as error:
        raise UnreachableSchedulerError(
            f"no Dask scheduler answers at {where}: start one with 'dask scheduler', or use "
            f"local:4 ({first_line(error)})"
        ) from error
    try:
        end = monotonic() + _WAIT_SECONDS
        while not workers_now(client):
            if monotonic() > end:
                raise UnreachableSchedulerError(
                    f"the scheduler at {where} has no workers: start some with 'dask worker "
                    f"{where}'"
                )
            sleep(_PAUSE)
        check_workers(client)
    except BaseException:
        close_client(client, seconds=CONNECT_SECONDS)
        raise
    LOGGER.info("connected to %s", where)
    return client


class Connection:
    """Submits tasks of one command, and receives the messages that they send.

    `connect` returns a client, or raises UnreachableSchedulerError. `tell` is called with a line of
    text on each connection, and on the loss of a worker.

    `client` is the present client, `places` the addresses of its workers when it connected, and
    `failures` counts the connections that were lost in a row; whoever gets a result sets it to 0.
    """

    def __init__(
        self, connect: Callable[[], Any], *, tell: Callable[[str], None] | None = None
    ) -> None:
        self._connect = connect
        self._tell = tell
        self._name = uuid4().hex  # of this command, among all that use the scheduler
        self._on_message: Callable[[Any], None] | None = None
        self.failures = 0
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
        from distributed.protocol.pickle import dumps

        return self.submit(pickle.loads, bytes(dumps(function)))

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

    def reopen(self, error: BaseException) -> None:
        """Connect again after an error; raise if it cannot be done, or was done too often.

        Tasks that were submitted before are lost.
        """
        self.failures += 1
        if self.failures > _RESTARTS:
            raise WorkersError(
                f"the connection to the workers was lost {self.failures} times in a row: {error}"
            ) from error
        warnings.warn(
            f"the connection to the scheduler was lost: waiting {scheduler.patience()} for it, or "
            "for another one at its address",
            TwoscaleWarning,
            stacklevel=2,
        )
        close_client(self.client, seconds=1)
        end = monotonic() + scheduler.PATIENCE
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
        close_client(self.client, seconds=CONNECT_SECONDS)
