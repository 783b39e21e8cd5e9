"""A connection that cannot be kept is told, and leaves nothing behind."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tests.free_port import free_port
from twoscale.cluster.connection import Connection, client_opener, local_processes
from twoscale.cluster.scheduler import UnreachableSchedulerError
from twoscale.errors import TwoscaleError, TwoscaleWarning, WorkersError


@pytest.fixture
def client():
    return Mock(status="running", nthreads=Mock(return_value={"tcp://one:1": 1}))


def test_a_connection_that_is_always_lost_is_given_up(client):
    connection = Connection(lambda: client)
    for _ in range(5):
        with pytest.warns(TwoscaleWarning, match="was lost"):
            connection.reopen(OSError("away"))
    with pytest.raises(WorkersError, match="6 times in a row: away"):
        connection.reopen(OSError("away"))


def test_a_scheduler_that_is_lost_again_while_it_is_asked_is_waited_for(client):
    connection = Connection(lambda: client)
    client.nthreads.side_effect = [OSError("away"), {"tcp://two:1": 1}]
    with pytest.warns(TwoscaleWarning, match="was lost"):
        connection.reopen(OSError("away"))
    assert connection.places == ["tcp://two:1"]


@pytest.mark.parametrize("status", ["closing", "closed"])
def test_whatever_a_closed_client_raises_is_a_lost_connection(client, status):
    connection = Connection(lambda: client)
    client.submit.side_effect = AttributeError("'NoneType' object has no attribute 'ncores'")
    with pytest.raises(AttributeError):
        connection.submit(print)
    client.status = status
    with pytest.raises(UnreachableSchedulerError, match="does not answer"):
        connection.submit(print)


def test_a_client_that_cannot_be_closed_hides_no_other_error():
    client = SimpleNamespace(
        close=Mock(side_effect=TimeoutError), nthreads=Mock(side_effect=OSError)
    )
    with pytest.raises(UnreachableSchedulerError):
        Connection(lambda: client)


def test_refused_connections_leave_no_threads(monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr("twoscale.cluster.connection.CONNECT_SECONDS", 0.2)
    with client_opener(f"tcp://127.0.0.1:{free_port()}") as connect:
        counts = []
        for _ in range(6):
            with pytest.raises(UnreachableSchedulerError, match="no Dask scheduler answers"):
                connect()
            counts.append(threading.active_count())
    assert counts[-1] <= counts[0] + 1
    assert threading.active_count() <= counts[0]


@pytest.mark.parametrize("where", ["tcp://10.0.0.1:8786", "tls://host:1"])
def test_an_address_of_a_scheduler_has_no_processes_of_this_machine(where):
    assert local_processes(where) is None


@pytest.mark.parametrize(
    "text", ["", "local", "local:0", "local:-1", "local:two", "host:8786", "tcp://host", "4"]
)
def test_other_texts_are_refused_with_an_example(text):
    with pytest.raises(TwoscaleError, match="local:4"):
        local_processes(text)
