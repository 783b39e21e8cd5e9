"""Waiting while there are no workers is told, and ends."""

from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from twoscale.cluster import scheduler
from twoscale.errors import TwoscaleWarning, WorkersError


@pytest.fixture(autouse=True)
def checks_at_once(monkeypatch):
    monkeypatch.setattr(scheduler, "_CHECK", 0)


class Future:
    """A task that is done once it was asked for so often; meanwhile some workers are there."""

    def __init__(self, workers, error=None):
        self.workers, self.error = list(workers), error
        self.client = SimpleNamespace(nthreads=lambda **options: self.workers.pop(0))

    def done(self):
        return not self.workers

    def result(self, timeout=None):
        if self.error and self.done():
            raise self.error
        if not self.done():
            raise TimeoutError
        return "result"


def test_workers_that_are_there_are_waited_for():
    assert scheduler.task_result(Future([{"one": 1}, {"one": 1}])) == "result"


def test_the_loss_of_all_workers_is_told_once_until_others_come():
    with pytest.warns(TwoscaleWarning, match="no workers are left: waiting up to 5 min") as told:
        assert scheduler.task_result(Future([{}, {}, {"one": 1}])) == "result"
    assert len(told) == 1


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(scheduler, "PATIENCE", -1)
    with (
        pytest.warns(TwoscaleWarning),
        pytest.raises(WorkersError, match="no others came: start some with 'dask worker'"),
    ):
        scheduler.task_result(Future([{}, {}, {}]))


def test_an_error_of_the_task_is_its_own():
    with pytest.raises(TimeoutError, match="of the task"):
        scheduler.task_result(Future([], TimeoutError("of the task")))


def test_deaths_of_workers_are_told_in_words():
    from distributed.scheduler import KilledWorker

    for error, message in (
        (KilledWorker("task", None, 3), "several workers died one after the other"),
        (MemoryError(), "a worker is out of memory"),
    ):
        task = Mock(result=Mock(side_effect=error))
        with pytest.raises(WorkersError, match=message):
            scheduler.task_result(task)
