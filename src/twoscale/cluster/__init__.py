"""Other processes and machines, as workers on the parts of a task. Needs `twoscale[cluster]`."""

from twoscale.cluster.address import Address
from twoscale.cluster.connection import connected
from twoscale.cluster.dask_workers import DaskWorkers

__all__ = ["Address", "DaskWorkers", "connected"]
