"""A connection that cannot be kept is told, and leaves nothing behind."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from tests.free_port import free_port
from twoscale.cluster.address import Address
from twoscale.cluster.connection import _Connect, _event_loop
from twoscale.cluster.kept_connection import KeptConnection
from twoscale.cluster.scheduler import UnreachableSchedulerError
from twoscale.errors import TwoscaleWarning, WorkersError


@pytest.fixture
def client():
    return Mock(status="running", nthreads=Mock(return_value={"tcp://one:1": 1}))


def test_a_connection_that_is_always_lost_is_given_up(client):
    connection = KeptConnection(lambda: client)
    with pytest.warns(TwoscaleWarning, match="was lost"):
        connection.reopen(OSError("away"), 5)
    with pytest.raises(WorkersError, match="was lost 6 times in a row: away"):
        connection.reopen(OSError("away"), 6)


def test_a_scheduler_that_is_lost_again_while_it_is_asked_is_waited_for(client):
    connection = KeptConnection(lambda: client)
    client.nthreads.side_effect = [OSError("away"), {"tcp://two:1": 1}]
    with pytest.warns(TwoscaleWarning, match="was lost"):
        connection.reopen(OSError("away"), 1)
    assert connection.places == ["tcp://two:1"]


@pytest.mark.parametrize("status", ["closing", "closed"])
def test_whatever_a_closed_client_raises_is_a_lost_connection(client, status):
    connection = KeptConnection(lambda: client)
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
        KeptConnection(lambda: client)


def test_refused_connections_leave_no_threads(monkeypatch):
    pytest.importorskip("distributed", reason="Dask is not installed")
    monkeypatch.setattr("twoscale.cluster.connection._CONNECT_SECONDS", 0.2)
    address = Address(remote=f"tcp://127.0.0.1:{free_port()}")
    with _event_loop() as loop:
        connect = _Connect(address, None, loop)
        counts = []
        for _ in range(6):
            with pytest.raises(UnreachableSchedulerError, match="no Dask scheduler answers"):
                connect()
            counts.append(threading.active_count())
    assert counts[-1] <= counts[0] + 1
    assert threading.active_count() <= counts[0]
