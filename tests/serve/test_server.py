"""Connections that are too large, slow or broken are ended; the server goes on."""

import json
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from time import sleep

import httpx
import numpy as np
import pytest

from tests.serve.conftest import SHORT, WAIT, connect, npy, read_all, read_answer
from twoscale import TwoscaleError
from twoscale.serve import Limits, ServedModel, Server

HEAD = b"POST /predict HTTP/1.1\r\nHost: HERE\r\nContent-Type: application/x-npy\r\n"
BODY = npy(np.zeros((1, 16, 16), np.float32))


def posted(server, body=BODY):
    headers = {"Content-Type": "application/x-npy"}
    return httpx.post(server.url + "/predict", content=body, headers=headers, timeout=WAIT)


def alive(server):
    return posted(server).status_code == 200


def send(server, connection, sent):
    """Send bytes, with the server's own name in place of HERE."""
    connection.sendall(sent.replace(b"HERE", server.url.removeprefix("http://").encode()))


def wait_until(condition):
    """Wait until something is true, as long as a busy machine may need."""
    for _ in range(int(WAIT / 0.01)):
        if condition():
            return
        sleep(0.01)
    assert condition()


def told(received):
    """Return status and sentence of an answer as bytes."""
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)["error"]["message"]


@pytest.fixture(autouse=True)
def still_alive(server):
    yield
    assert alive(server)
    wait_until(lambda: server.service.pending.total == 0)  # counted until the answer is sent


def test_a_length_that_is_too_large_is_refused_before_the_body(server, caplog):
    with connect(server) as connection:
        send(server, connection, HEAD + b"Content-Length: 999999999999\r\n\r\n")
        status, message = told(read_answer(connection))
    assert (status, message) == (413, "a request has 200 kB at most: send fewer fields at a time")
    assert "POST /predict: 413, a request has 200 kB" in caplog.text


def test_a_client_that_sends_too_much_sees_the_answer(server):
    assert posted(server, bytes(2 * 10**6)).status_code == 413


def test_chunks_without_end_are_refused(server):
    chunk = b"4000\r\n" + bytes(0x4000) + b"\r\n"
    with connect(server) as connection:
        send(server, connection, HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(2000):  # 32 MB, of which 200 kB are kept
                send(server, connection, chunk)
        except ConnectionError:
            return  # the server has closed
        assert told(read_answer(connection))[0] == 413


def test_a_body_that_trickles_is_cut(hasty, caplog):
    with connect(hasty) as connection:
        send(hasty, connection, HEAD + b"Content-Length: 100\r\n\r\n12")
        status, message = told(read_answer(connection))
    assert status == 408
    assert "within 1 s: 2 bytes came" in message
    assert "POST /predict: 408" in caplog.text


@pytest.mark.parametrize("start", [b"", b"POST /pre", HEAD])
def test_a_head_that_does_not_end_is_cut(hasty, start, caplog):
    with connect(hasty) as connection:
        send(hasty, connection, start)
        assert read_all(connection) == b""
    assert "connection cut: the head of a request was not complete within 1 s" in caplog.text


def test_a_second_head_that_does_not_end_is_cut(hasty, caplog):
    with connect(hasty) as connection:
        send(hasty, connection, b"GET /Info HTTP/1.1\r\nHost: HERE\r\n\r\n")
        assert b"protocolVersion" in read_answer(connection)
        send(hasty, connection, b"GET /Inf")
        assert read_all(connection) == b""
    assert "connection cut: the head of a request" in caplog.text


def test_a_half_closed_connection_gets_its_answer(server):
    with connect(server) as connection:
        send(server, connection, HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY)
        connection.shutdown(socket.SHUT_WR)
        assert read_all(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (HEAD + b"Content-Length: 100\r\n\r\n12", "400, the client left before"),
        (b"POST /pre", "closed before the head of a request was complete"),
    ],
)
def test_a_half_closed_connection_without_all_of_its_request_is_closed(server, caplog, sent, words):
    with connect(server) as connection:
        send(server, connection, sent)
        connection.shutdown(socket.SHUT_WR)
        read_all(connection)
    wait_until(lambda: words in caplog.text)


def test_clients_that_leave(server):
    whole = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
    for sent in (b"", b"GET", HEAD, HEAD + b"Content-Length: 100\r\n\r\n12", whole):
        with connect(server) as connection:
            send(server, connection, sent)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\r\n\r\n",
        HEAD + b"Content-Length: -5\r\n\r\n",
        HEAD + b"Content-Length: five\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_http(server, sent, caplog):
    with connect(server) as connection:
        try:
            send(server, connection, sent)
        except ConnectionError:
            return
        assert read_all(connection)[:12] in (b"HTTP/1.1 400", b"")
    wait_until(lambda: "Invalid HTTP request" in caplog.text)


def test_a_reader_that_stops_is_cut(surrogate, caplog):
    """The answer of 15 MB fits no buffer of the system; the client reads none of it."""
    limits = Limits(body_seconds=2.0)
    body = npy(np.zeros((1000, 16, 16), np.float32))
    with Server([ServedModel(surrogate)], port=0, limits=limits) as server:
        with connect(server) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            head = HEAD + b"Accept: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
            send(server, connection, head + body)
            wait_until(lambda: server.service.pending.total > 10**6)  # counted until it is read
            wait_until(lambda: not server._server.server_state.connections)
            wait_until(lambda: server.service.pending.total == 0)
        assert "connection cut: the client did not read its answer within 2 s" in caplog.text
        assert alive(server)


def test_the_memory_of_waiting_requests_is_bounded(surrogate):
    limits = Limits(request_bytes=10_000, pending_bytes=12_000)
    with Server([ServedModel(surrogate)], port=0, limits=limits) as server, connect(server) as slow:
        send(server, slow, HEAD + b"Content-Length: 10000\r\n\r\n" + bytes(9_999))
        wait_until(lambda: server.service.pending.total == 9_999)
        answer = posted(server, npy(np.zeros((4, 16, 16), np.float32)))
        assert answer.status_code == 503
        assert "retry-after" in answer.headers
        send(server, slow, b"1")
        assert read_answer(slow).startswith(b"HTTP/1.1 400")
        assert alive(server)


# Starting and stopping


def test_a_port_in_use_is_told(server, surrogate):
    port = int(server.url.rsplit(":", 1)[1])
    with pytest.raises(TwoscaleError, match=f"port {port} of 127.0.0.1 is in use"):
        Server([ServedModel(surrogate)], port=port)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"port": 70000}, "from 0 to 65535"),
        ({"host": "no.such.host.invalid"}, "is not known here"),
        ({"host": "192.0.2.1", "port": 0}, "no address of this machine"),
    ],
)
def test_wrong_addresses(surrogate, where, words):
    with pytest.raises(TwoscaleError, match=words):
        Server([ServedModel(surrogate)], **where)


def test_models_need_names_of_their_own(surrogate):
    for models in ([], [ServedModel(surrogate), ServedModel(surrogate)]):
        with pytest.raises(TwoscaleError, match="models of different names"):
            Server(models, port=0)


def test_a_server_starts_and_stops_once(surrogate):
    usual = sys.getswitchinterval()
    server = Server([ServedModel(surrogate)], port=0)
    server.stop()
    for begin in (server.start, server.run):
        with pytest.raises(TwoscaleError, match="stopped already: make a new Server"):
            begin()
    server = Server([ServedModel(surrogate)], port=0).start()
    assert sys.getswitchinterval() < 1e-3
    with pytest.raises(TwoscaleError, match="running already"):
        server.start()
    server.stop()
    server.stop()
    assert sys.getswitchinterval() == usual


def test_stopping_answers_what_has_begun(surrogate, gate):
    server = Server([ServedModel(surrogate)], port=0, limits=SHORT).start()
    with ThreadPoolExecutor(2) as pool:
        answer = pool.submit(alive, server)
        assert gate.started.wait(WAIT)
        stopped = pool.submit(server.stop)
        gate.go.set()
        assert answer.result(WAIT)
        stopped.result(WAIT)
    with pytest.raises(httpx.ConnectError):
        alive(server)
