"""The server: its socket, its connections, and how it runs until it is stopped."""

from __future__ import annotations

import asyncio
import errno
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from threading import Thread
from time import monotonic, sleep
from typing import Any, Self

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from twoscale.errors import TwoscaleError
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.threads import SharedSetting
from twoscale.serve.http import HttpService, own_hosts
from twoscale.serve.limits import HOST, PORT, Limits
from twoscale.serve.model import ServedModel
from twoscale.serve.service import ModelService

_CONNECTIONS = 1024
_START_SECONDS = 30
_SHUTDOWN_SECONDS = 10
_SWITCH_SECONDS = 1e-4
_CUTS = {
    "head": "the head of a request was not complete",
    "reader": "the client did not read its answer",
}


def timed_protocol(seconds: float) -> type[H11Protocol]:
    """Return a protocol of connections that cuts slow heads and slow readers, and logs it.

    uvicorn waits without end for the head of a request, and for a client that does not read its
    answer. It also drops the answer to a client that has closed its own side of the connection.
    """

    class TimedProtocol(H11Protocol):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            self._timers: dict[str, asyncio.TimerHandle] = {}

        def _abort_later(self, reason: str) -> None:
            if reason not in self._timers:
                self._timers[reason] = self.loop.call_later(seconds, self._cut, reason)

        def _cut(self, reason: str) -> None:
            del self._timers[reason]
            self._log(f"connection cut: {_CUTS[reason]} within {seconds:g} s")
            self.transport.abort()

        def _log(self, sentence: str) -> None:
            LOGGER.warning("%s: %s", ":".join(map(str, self.client or ("client",))), sentence)

        def _go_on(self, reason: str) -> None:
            if reason in self._timers:
                self._timers.pop(reason).cancel()

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._abort_later("head")

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            waits = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
            if waits:
                self._abort_later("head")
            else:
                self._go_on("head")

        def eof_received(self) -> bool | None:  # type: ignore[override]
            cycle = self.cycle
            answered = cycle is None or cycle.response_complete
            if answered and self.conn.trailing_data[0]:
                self._log("connection closed before the head of a request was complete")
            if answered or cycle.more_body:  # whose reader logs that the client has left
                return None  # nothing is to be answered: the connection is closed
            cycle.keep_alive = False
            return True

        def pause_writing(self) -> None:
            super().pause_writing()
            self._abort_later("reader")

        def resume_writing(self) -> None:
            super().resume_writing()
            self._go_on("reader")

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            for reason in list(self._timers):
                self._go_on(reason)

    return TimedProtocol


_quick_switches = SharedSetting(sys.getswitchinterval, sys.setswitchinterval, _SWITCH_SECONDS)
"""Lets Python's threads change places after 0.1 ms while servers run, not after 5 ms.

Each operation of torch gives up Python's lock and waits for it again. While the other thread reads
and writes requests, a prediction of 100 operations would otherwise take half a second.
"""


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket at an address, or say in one sentence why there is none."""
    if not 0 <= port <= 65535:
        raise TwoscaleError(f"a port is a number from 0 to 65535, got {port}")
    try:
        known = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise TwoscaleError(f"the host '{host}' is not known here") from error
    family, _, _, _, address = known[0]
    try:
        return socket.create_server(address, family=family, backlog=_CONNECTIONS)
    except OSError as error:
        reasons = {
            errno.EADDRINUSE: f"port {port} of {host} is in use: choose another port",
            errno.EACCES: f"port {port} needs more rights: choose one above 1023",
            errno.EADDRNOTAVAIL: f"{host} is no address of this machine",
        }
        reason = reasons.get(error.errno or 0, f"the system refused {host}:{port}: {error}")
        raise TwoscaleError(reason) from error


class HttpServer:
    """A server in the foreground by `run`, or in a thread inside of a `with` block.

    Parameters
    ----------
    service
        Its endpoints.
    host, port
        Where it listens; on loopback at 4242 by default. Port 0 stands for any free one. On
        loopback, requests must name localhost, 127.0.0.1 or [::1] with the port as their Host;
        elsewhere any Host is accepted. Pages of other origins are refused.

    Attributes
    ----------
    url
        The address for clients.
    is_open
        Whether other machines may reach it.
    """

    def __init__(self, service: HttpService, *, host: str = HOST, port: int = PORT) -> None:
        self.service = service
        self._socket = bound_socket(host, port)
        shown, number = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{shown}]' if ':' in shown else shown}:{number}"
        hosts = own_hosts(shown, number)
        self.is_open = hosts is None
        self._server = uvicorn.Server(
            uvicorn.Config(
                service.application(hosts),
                http=timed_protocol(service.limits.body_seconds),
                ws="none",
                loop="asyncio",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=_CONNECTIONS,
                timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            )
        )
        self._thread = Thread(target=self._serve, name="twoscale-server", daemon=True)
        self._state = "new"

    def _serve(self) -> None:
        with _quick_switches.changed():
            self._server.run(sockets=[self._socket])

    def _begin(self) -> None:
        if self._state != "new":
            raise TwoscaleError(f"this server is {self._state} already: make a new Server")
        self._state = "running"

    def run(self) -> None:
        """Serve until a signal to stop; requests that have begun are answered first."""
        self._begin()
        with suppress(KeyboardInterrupt):  # which uvicorn raises at its end
            self._serve()
        self.stop()

    def start(self) -> Self:
        """Serve in a thread, and return once requests are answered."""
        self._begin()
        self._thread.start()
        last = monotonic() + _START_SECONDS
        while not self._server.started and self._thread.is_alive() and monotonic() < last:
            sleep(0.005)
        if not self._server.started:
            raise TwoscaleError("the server did not start: the log says why")
        return self

    def stop(self) -> None:
        """Answer the requests that have begun, and end the thread; a server stops once."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join()
        self._state = "stopped"
        self._socket.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.stop()


class Server(HttpServer):
    """A server of models.

    Parameters
    ----------
    models
        The models, of different names.
    host, port
        Where it listens, as in `HttpServer`; on loopback at 4242 by default.
    limits
        What is accepted at most, `Limits()` by default.

    Examples
    --------
    >>> import numpy as np
    >>> from twoscale import Surrogate
    >>> x = np.random.default_rng(0).standard_normal((60, 8, 8))
    >>> surrogate = Surrogate(predictor="affine").fit(x, x.cumsum(axis=2))
    >>> with Server([ServedModel(surrogate)], port=0) as server:
    ...     print(server.url.startswith("http://127.0.0.1:"))
    True
    """

    service: ModelService

    def __init__(
        self,
        models: Sequence[ServedModel],
        *,
        host: str = HOST,
        port: int = PORT,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(ModelService(models, limits or Limits()), host=host, port=port)
