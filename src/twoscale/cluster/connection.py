"""A connection to Dask: opened, checked and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from threading import Thread
from time import monotonic, sleep
from typing import Any

from twoscale.cluster.address import Address
from twoscale.cluster.checks import check_workers
from twoscale.cluster.dask_workers import DaskWorkers
from twoscale.cluster.kept_connection import KeptConnection
from twoscale.cluster.scheduler import (
    UnreachableSchedulerError,
    close_client,
    first_line,
    workers_now,
)
from twoscale.cluster.worker_setup import silence_dask
from twoscale.errors import missing_extra
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.progress import Progress

_CONNECT_SECONDS = 10
_WAIT_SECONDS = 30  # for the first worker
_PAUSE = 0.1  # seconds between two questions for it
_SETTINGS = {
    "distributed.comm.timeouts.connect": f"{_CONNECT_SECONDS}s",
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
    address, dask = Address.parse(where), dask_packages()
    silence_dask()
    with dask.config.set(_SETTINGS), ExitStack() as stack:
        cluster = stack.enter_context(_local_cluster(address)) if address.processes else None
        loop = stack.enter_context(_event_loop()) if cluster is None else None
        connection = KeptConnection(_Connect(address, cluster, loop), tell=tell)
        stack.callback(connection.close)
        yield DaskWorkers(connection, progress=progress)


def dask_packages() -> Any:
    """Return the package dask, with its distributed part imported."""
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError as error:
        raise missing_extra("distributed", "cluster") from error
    return dask


@contextmanager
def _local_cluster(address: Address) -> Iterator[Any]:
    """Give a cluster of processes of this machine, which end with the block."""
    from distributed import LocalCluster

    cluster = LocalCluster(
        n_workers=address.processes,
        threads_per_worker=1,
        processes=True,
        memory_limit=0,  # a fit limits its memory by itself
        dashboard_address="127.0.0.1:0",
        preload=["twoscale.cluster.worker_setup"],
    )
    try:
        yield cluster
    finally:
        cluster.close(timeout=_CONNECT_SECONDS)


@contextmanager
def _event_loop() -> Iterator[Any]:
    """Give an event loop for all clients of a command; its thread ends with the block.

    A client without a loop starts a thread, which stays for good if it cannot connect.
    """
    from tornado.ioloop import IOLoop

    started: Future[tuple[Any, asyncio.Event]] = Future()

    async def run_until_stopped() -> None:
        stop = asyncio.Event()
        started.set_result((IOLoop.current(), stop))
        await stop.wait()

    thread = Thread(target=lambda: asyncio.run(run_until_stopped()), name="Dask", daemon=True)
    thread.start()
    loop, stop = started.result()
    try:
        yield loop
    finally:
        loop.add_callback(stop.set)
        thread.join(_CONNECT_SECONDS)


class _Connect:
    """Opens a connection to a scheduler, again after a broken one."""

    def __init__(self, address: Address, cluster: Any, loop: Any) -> None:
        self.address = address
        self.cluster = cluster
        self.loop = loop  # None with a cluster of this machine, which has its own

    def __call__(self) -> Any:
        """Return a client whose workers have our versions, or raise a WorkersError."""
        client = self._client()
        try:
            self._wait_for_a_worker(client)
            check_workers(client)
        except BaseException:
            close_client(client, seconds=_CONNECT_SECONDS)
            raise
        LOGGER.info("connected to %s", self.address)
        return client

    def _client(self) -> Any:
        """Return a client, or raise UnreachableSchedulerError if no scheduler answers."""
        from distributed import Client

        target = self.cluster or self.address.remote
        options = {"timeout": _CONNECT_SECONDS, "set_as_default": False, "loop": self.loop}
        try:
            return Client(target, **options)
        except OSError as error:
            raise UnreachableSchedulerError(
                f"no Dask scheduler answers at {self.address}: start one with 'dask scheduler', "
                f"or use local:4 ({first_line(error)})"
            ) from error

    def _wait_for_a_worker(self, client: Any) -> None:
        """Return once there is a worker; raise UnreachableSchedulerError if none comes."""
        end = monotonic() + _WAIT_SECONDS
        while not workers_now(client):
            if monotonic() > end:
                raise UnreachableSchedulerError(
                    f"the scheduler at {self.address} has no workers: start some with 'dask "
                    f"worker {self.address}'"
                )
            sleep(_PAUSE)
