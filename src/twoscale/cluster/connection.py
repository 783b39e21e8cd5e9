"""A connection to Dask: opened, checked and closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from twoscale.cluster.address import Address
from twoscale.cluster.checks import check_workers, first_line
from twoscale.cluster.dask_workers import DaskWorkers, UnreachableError
from twoscale.cluster.worker_setup import silence_dask
from twoscale.errors import missing_extra
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.progress import Progress

_CONNECT_SECONDS = 10
_WAIT_SECONDS = 30  # for the first worker
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
    with dask.config.set(_SETTINGS):
        cluster = _local_cluster(address) if address.processes else None
        try:
            workers = DaskWorkers(_Connect(address, cluster), progress=progress, tell=tell)
            try:
                yield workers
            finally:
                workers.close()
        finally:
            if cluster is not None:
                cluster.close(timeout=_CONNECT_SECONDS)


def dask_packages() -> Any:
    """Return the package dask, with its distributed part imported."""
    try:
        import dask
        import distributed  # noqa: F401
    except ImportError as error:
        raise missing_extra("distributed", "cluster") from error
    return dask


def _local_cluster(address: Address) -> Any:
    from distributed import LocalCluster

    return LocalCluster(
        n_workers=address.processes,
        threads_per_worker=1,
        processes=True,
        memory_limit=0,  # a fit limits its memory by itself
        dashboard_address="127.0.0.1:0",
        preload=["twoscale.cluster.worker_setup"],
    )


class _Connect:
    """Opens a connection to a scheduler, again after a broken one."""

    def __init__(self, address: Address, cluster: Any) -> None:
        self.address = address
        self.cluster = cluster

    def __call__(self) -> Any:
        """Return a client whose workers have our versions, or raise a TwoscaleError."""
        from distributed import Client

        target = self.cluster or self.address.remote
        try:
            client = Client(target, timeout=_CONNECT_SECONDS, set_as_default=False)
        except (OSError, TimeoutError) as error:
            raise UnreachableError(
                f"no Dask scheduler answers at {self.address}: start one with 'dask scheduler', "
                f"or use local:4 ({first_line(error)})"
            ) from error
        try:
            client.wait_for_workers(1, timeout=_WAIT_SECONDS)
            check_workers(client)
        except TimeoutError as error:
            client.close()
            raise UnreachableError(
                f"the scheduler at {self.address} has no workers: start some with 'dask worker "
                f"{self.address}'"
            ) from error
        except BaseException:
            client.close()
            raise
        LOGGER.info("connected to %s", self.address)
        return client
