"""Local servers of storage services that fail now and then, as networks and servers do.

This is what all kinds of services share, and the one of S3.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from socketserver import BaseServer
from threading import Lock, Thread
from time import sleep
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_ACCOUNT = "123456789012"  # of whoever has no other
REFUSED = "connection refused"
FAULTS = ("error 500", "error 503", "cut short", "silence")
_ERROR = (
    b"<?xml version='1.0'?><Error><Code>%s</Code><Message>injected</Message>"
    b"<RequestId>0</RequestId></Error>"
)
_CODES = {
    "error 500": ("500 Internal Server Error", b"InternalError"),
    "error 503": ("503 Slow Down", b"SlowDown"),
}


class Listener:
    """A server that may be away for a while: connections to its port are then refused."""

    def __init__(self, make: Callable[[int], BaseServer]) -> None:
        self._make = make  # for a port
        self._server, self._thread = self._started(0)
        self.port: int = self._server.server_address[1]

    def _started(self, port: int) -> tuple[BaseServer, Thread]:
        server = self._make(port)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        return server, thread

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def resume(self) -> None:
        self._server, self._thread = self._started(self.port)


class Storage:
    """A server on loopback; `plan` names the faults of the next requests.

    With a `rate`, requests also fail at random, by the seed. From the first request on whose path
    has `fails_after` in it, all fail. From the first one with `leaves_after` on, connections are
    refused for `away` seconds, or until `come_back`. `injected` counts faults by kind and
    `requests` all requests. A silent server answers after `pause` seconds.
    """

    listener: Listener

    def __init__(self, *, seed: int = 0, pause: float = 0.0) -> None:
        self.plan: list[str] = []
        self.rate = 0.0
        self.kinds: tuple[str, ...] = FAULTS
        self.pause = pause
        self.fails_after = ""
        self.leaves_after = ""
        self.away: float | None = None
        self.requests: list[tuple[str, str]] = []
        self.injected: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._lock = Lock()
        self._broken = False
        self._absence: Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.port}"

    def fault(self, method: str, path: str) -> str:
        """Count a request; return the fault it meets, empty for none."""
        with self._lock:
            self.requests.append((method, path))
            found = ""
            if self.fails_after and self.fails_after in path:
                self._broken = True
            self._broken = self._broken and bool(self.fails_after)
            if self.leaves_after and self.leaves_after in path and not self._absence:
                self._absence = Thread(target=self._leave)
                self._absence.start()
            if self._absence:
                found = REFUSED
            elif self._broken:
                found = FAULTS[0]
            elif self.plan:
                found = self.plan.pop(0)
            elif self._random.random() < self.rate:
                found = self._random.choice(self.kinds)
            if found:
                self.injected[found] += 1
            return found

    def _leave(self) -> None:
        self.listener.stop()
        if self.away is not None:
            sleep(self.away)
            self._return()

    def _return(self) -> None:
        self.leaves_after = ""
        self._absence = None
        self.listener.resume()

    def heal(self) -> None:
        """Let the next requests meet no fault."""
        self.plan.clear()
        self.fails_after, self.rate, self.pause = "", 0.0, 0.0

    def come_back(self) -> None:
        """Accept connections again, if the server is away until it is told."""
        absence = self._absence
        if absence is not None:
            absence.join()
        if self._absence is not None:
            self._return()
        self.leaves_after = ""

    def objects(self, prefix: str = "", *, bucket: str = "bucket") -> dict[str, bytes]:
        """Return the objects whose names begin with a prefix, by the rest of their names."""
        raise NotImplementedError

    def empty(self, *, bucket: str = "bucket") -> None:
        """Remove everything but the bucket, and forget which requests came."""
        raise NotImplementedError

    def account(self) -> dict[str, str]:
        """Return the variables of the environment that lead clients to the server."""
        raise NotImplementedError


class S3(Storage):
    """A server of S3."""

    def objects(self, prefix: str = "", *, bucket: str = "bucket") -> dict[str, bytes]:
        from moto.backends import get_backend

        keys = get_backend("s3")[_ACCOUNT]["aws"].buckets[bucket].keys.items()
        return {
            name.removeprefix(prefix): key.value for name, key in keys if name.startswith(prefix)
        }

    def empty(self, *, bucket: str = "bucket") -> None:
        _make_bucket(self.url, bucket)
        self.requests.clear()
        self.injected.clear()

    def account(self) -> dict[str, str]:
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def wrap(self, application: Application) -> Application:
        """Return an application that fails as planned and else does as the given one."""

        def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            fault = self.fault(environ["REQUEST_METHOD"], environ["PATH_INFO"])
            if fault in _CODES:
                status, code = _CODES[fault]
                body = b"" if environ["REQUEST_METHOD"] == "HEAD" else _ERROR % code
                _drain(environ)
                start(status, [("Content-Type", "application/xml"), *_length(body)])
                return [body]
            if fault == REFUSED:
                _drain(environ)
                raise ConnectionAbortedError("injected")
            if fault == "silence":
                sleep(self.pause)
            whole = application(environ, start)
            return _half(whole) if fault == "cut short" else whole

        return answer


def _drain(environ: dict[str, Any]) -> None:
    """Read what the client sends, as servers do before they refuse it."""
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))


def _length(body: bytes) -> list[tuple[str, str]]:
    return [("Content-Length", str(len(body)))]


def _half(whole: Iterable[bytes]) -> Iterator[bytes]:
    """Yield half of a body and end the connection."""
    body = b"".join(whole)
    yield body[: len(body) // 2]
    raise ConnectionAbortedError("injected")


@contextmanager
def s3_storage(*, bucket: str = "bucket", seed: int = 0, pause: float = 0.0) -> Iterator[S3]:
    """Give a server with an empty bucket that ends with the block; it needs `moto[server]`."""
    import logging

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *call: Any) -> None:
            """Write nothing."""

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    held = S3(seed=seed, pause=pause)
    application = held.wrap(DomainDispatcherApplication(create_backend_app))
    options = {"threaded": True, "request_handler": Quiet}
    held.listener = Listener(lambda port: make_server("127.0.0.1", port, application, **options))
    try:
        held.empty(bucket=bucket)
        yield held
    finally:
        held.come_back()
        held.listener.stop()


def _make_bucket(url: str, name: str) -> None:
    from urllib.request import Request, urlopen

    for path, method in (("/moto-api/reset", "POST"), (f"/{name}", "PUT")):
        with urlopen(Request(url + path, method=method)):
            pass
