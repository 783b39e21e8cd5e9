"""Other processes and machines, as workers on the parts of a task. Needs `twoscale[cluster]`."""

from twoscale.cluster.dask_workers import DaskWorkers, connected

__all__ = ["DaskWorkers", "connected"]
