from __future__ import annotations

import io
import socket
from threading import Event
from urllib.parse import urlsplit

import numpy as np
import pytest

from tests.surrogate.tiny import make
from twoscale import Darcy, Grid, Surrogate
from twoscale.serve import Limits, ServedModel, Server

SHORT = Limits(request_bytes=200_000, fields=40, queue=100)
HASTY = Limits(request_bytes=200_000, body_seconds=1.0)
WAIT = 30.0  # seconds until a test gives up; nothing takes that long


@pytest.fixture(scope="session")
def surrogate(arrays) -> Surrogate:
    """A Poisson surrogate with derivatives that vary, and radii at level 0.8."""
    x, u, _, _ = arrays
    settings = {"hidden_layers": 1, "hidden_width": 8, "epochs": 4}
    fitted = make("two-scale", predictor="affine-mlp", problem="poisson", **settings)
    return fitted.fit(x[:120], u[:120], calibration=(x[120:], u[120:]))


@pytest.fixture(scope="session")
def darcy() -> Surrogate:
    problem = Darcy()
    inputs, outputs = problem.pairs(Grid((12, 12)), range(60), seed=0)
    return make("global", predictor="affine", problem=problem).fit(inputs, outputs)


@pytest.fixture(scope="session")
def server(surrogate):
    """A server of one model; tests must leave it alive."""
    with Server([ServedModel(surrogate)], port=0, limits=SHORT) as running:
        yield running


@pytest.fixture(scope="session")
def hasty(surrogate):
    """A server that waits for slow clients for a second only."""
    with Server([ServedModel(surrogate)], port=0, limits=HASTY) as running:
        yield running


@pytest.fixture(scope="session")
def several(surrogate, darcy):
    """A server of three models: coefficients to points, and media with and without a jump."""
    models = [
        ServedModel(surrogate, "poisson", inputs="kl:12", points="3x4"),
        ServedModel(darcy, "jump", inputs="kl:10"),
        ServedModel(darcy, "smooth", inputs="kl:10,width=0.3", points=[[0.5, 0.5], [0.25, 1.0]]),
    ]
    with Server(models, port=0) as running:
        yield running


class Gate:
    """Predictions that wait for `go`; `sizes` are those of the batches so far."""

    def __init__(self, surrogate: Surrogate, monkeypatch: pytest.MonkeyPatch) -> None:
        usual, self.sizes = surrogate.predict_batch, []
        self.started, self.go = Event(), Event()

        def predict_batch(fields):
            self.sizes.append(len(fields))
            self.started.set()
            assert self.go.wait(WAIT)
            return usual(fields)

        monkeypatch.setattr(surrogate, "predict_batch", predict_batch)


@pytest.fixture
def gate(surrogate, monkeypatch) -> Gate:
    return Gate(surrogate, monkeypatch)


def connect(server: Server) -> socket.socket:
    """Return an open connection, for bytes that no client would send."""
    address = urlsplit(server.url)
    return socket.create_connection((address.hostname, address.port), timeout=WAIT)


def read_all(connection: socket.socket) -> bytes:
    """Return all that comes until the server closes; a reset is an end too."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def read_answer(connection: socket.socket) -> bytes:
    """Return one answer whose length is announced, without waiting for the end."""
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536)
    head, _, body = received.partition(b"\r\n\r\n")
    (length,) = [
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"content-length:" in line
    ]
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()
