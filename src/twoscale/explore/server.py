"""A small server on this machine, for runs that a page cannot compute itself."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import BoundedSemaphore, Lock
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.explore.answers import answer, checked_question
from twoscale.explore.page import served_text
from twoscale.files import parse_json
from twoscale.run import Run

HOST = "127.0.0.1"
_MOST_BYTES = 2**25  # of a request: the largest input of a page has 22 MB as text
_MOST_CONNECTIONS = 32  # each has a thread
_SECONDS = 30.0  # that a client may stay silent
_LINGER = 0.5  # seconds that the rest of a refused request is read for
_BUSY = b"HTTP/1.0 503 Service Unavailable\r\nConnection: close\r\n\r\ntoo many connections\n"


class PageServer(ThreadingHTTPServer):
    """Serves a page and the predictions of its runs, to this machine only.

    Parameters
    ----------
    page
        The page's text.
    runs
        The runs of the page by name.
    port
        The port to listen on; 0, the default, takes a free one.
    """

    daemon_threads = True

    def __init__(self, page: str, runs: Mapping[str, Run], *, port: int = 0) -> None:
        self.page = served_text(page).encode()
        self.surrogates = [run.surrogate for run in runs.values()]
        self.lock = Lock()  # predictions are computed one after the other
        self.room = BoundedSemaphore(_MOST_CONNECTIONS)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise TwoscaleError(f"port {port} cannot be used: {error}; choose another") from error

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def allowed_host(self, host: str) -> bool:
        """Say whether a request is meant for this server, not for a name that leads here."""
        names = [f"{name}:{self.server_port}" for name in (HOST, "localhost")]
        return host in names or (self.server_port == 80 and host in (HOST, "localhost"))

    def allowed_origin(self, origin: str | None) -> bool:
        """Say whether a request comes from this server's own page, or from no page."""
        if origin is None:
            return True
        return origin.startswith("http://") and self.allowed_host(origin.removeprefix("http://"))

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.room.acquire(blocking=False):
            with suppress(OSError):
                request.settimeout(_LINGER)
                request.sendall(_BUSY)
                request.recv(2**16)  # closed with unread bytes, the client might miss the answer
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except BaseException:
            self.room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print errors of this program, but not clients that leave."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _SECONDS

    def do_GET(self) -> None:
        if not self._is_own():
            return
        if self.path != "/":
            self._answer(404, b"not here", "text/plain")
        else:
            self._answer(200, self.server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        if not self._is_own():
            return
        if self.path != "/predict":
            self._answer(404, b"not here", "text/plain")
            self._drop_rest()
            return
        length = self._length()
        if length is None:
            self._explain(400, f"a request has 1 to {_MOST_BYTES} bytes and a Content-Length")
            self._drop_rest()
            return
        body = self.rfile.read(length)
        try:
            found = json.dumps(self._predicted(body), allow_nan=False).encode()
        except (TwoscaleError, ValueError) as error:
            self._explain(400, str(error))
        except Exception as error:  # of any library, on any input
            self._explain(500, f"the prediction failed: {type(error).__name__}: {error}")
        else:
            self._answer(200, found, "application/json")

    def _is_own(self) -> bool:
        """Say whether a request comes from this machine's page; refuse it otherwise."""
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        if self.server.allowed_host(host) and self.server.allowed_origin(origin):
            return True
        self._answer(403, b"this server answers its own address only", "text/plain")
        self._drop_rest()
        return False

    def _length(self) -> int | None:
        """Return how many bytes the body has; None if that is not said, or not allowed."""
        given = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,12}", given) or not 0 < int(given) <= _MOST_BYTES:
            return None
        return int(given)

    def _predicted(self, body: bytes) -> dict[str, Any]:
        try:
            content = parse_json(body.decode())
        except ValueError as error:
            raise TwoscaleError(f"the request is not JSON: {error}") from error
        asked = checked_question(content, len(self.server.surrogates))
        with self.server.lock:
            return answer(self.server.surrogates[asked["run"]], asked)

    def _explain(self, status: int, sentence: str) -> None:
        body = json.dumps({"error": " ".join(sentence.split())}).encode()
        self._answer(status, body, "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def _drop_rest(self) -> None:
        """Read a refused body for a moment: closed at once, the client might miss the answer."""
        with suppress(OSError):
            self.connection.settimeout(_LINGER)
            for _ in range(16):
                if not self.rfile.read1(2**16):
                    break

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing of requests."""
