"""A local server of S3 that fails now and then, in the ways that networks and servers do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from time import sleep
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]

_ACCOUNT = "123456789012"  # of whoever has no other
FAULTS = ("error 500", "error 503", "cut short", "silence")
_ERROR = (
    b"<?xml version='1.0'?><Error><Code>%s</Code><Message>injected</Message>"
    b"<RequestId>0</RequestId></Error>"
)
_CODES = {
    "error 500": ("500 Internal Server Error", b"InternalError"),
    "error 503": ("503 Slow Down", b"SlowDown"),
}


class Storage:
    """A server of S3 at `url` on loopback; `plan` names the faults of the next requests.

    With a `rate`, requests also fail at random, by the seed. From the first request on whose path
    has `fails_after` in it, all fail. `injected` counts faults by kind and `requests` all requests.
    A silent server answers after `pause` seconds.
    """

    def __init__(self, url: str = "", *, seed: int = 0, pause: float = 0.0) -> None:
        self.url = url
        self.plan: list[str] = []
        self.rate = 0.0
        self.kinds: tuple[str, ...] = FAULTS
        self.pause = pause
        self.fails_after = ""
        self.requests: list[tuple[str, str]] = []
        self.injected: Counter[str] = Counter()
        self._random = random.Random(seed)
        self._lock = Lock()
        self._broken = False

    def fault(self, method: str, path: str) -> str:
        """Count a request; return the fault it meets, empty for none."""
        with self._lock:
            self.requests.append((method, path))
            found = ""
            if self.fails_after and self.fails_after in path:
                self._broken = True
            self._broken = self._broken and bool(self.fails_after)
            if self._broken:
                found = FAULTS[0]
            elif self.plan:
                found = self.plan.pop(0)
            elif self._random.random() < self.rate:
                found = self._random.choice(self.kinds)
            if found:
                self.injected[found] += 1
            return found

    def objects(self, prefix: str = "", *, bucket: str = "bucket") -> dict[str, bytes]:
        """Return the objects whose names begin with a prefix, by the rest of their names."""
        from moto.backends import get_backend

        keys = get_backend("s3")[_ACCOUNT]["aws"].buckets[bucket].keys.items()
        return {
            name.removeprefix(prefix): key.value for name, key in keys if name.startswith(prefix)
        }

    def empty(self, *, bucket: str = "bucket") -> None:
        """Remove everything but the bucket, and forget which requests came."""
        _make_bucket(self.url, bucket)
        self.requests.clear()
        self.injected.clear()

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
def storage(*, bucket: str = "bucket", seed: int = 0, pause: float = 0.0) -> Iterator[Storage]:
    """Give a server with an empty bucket that ends with the block; it needs `moto[server]`."""
    import logging

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *call: Any) -> None:
            """Write nothing."""

    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    held = Storage(seed=seed, pause=pause)
    application = held.wrap(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=Quiet)
    held.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        held.empty(bucket=bucket)
        yield held
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _make_bucket(url: str, name: str) -> None:
    from urllib.request import Request, urlopen

    for path, method in (("/moto-api/reset", "POST"), (f"/{name}", "PUT")):
        with urlopen(Request(url + path, method=method)):
            pass


def account(url: str) -> dict[str, str]:
    """Return the variables of the environment that lead clients of S3 to a server."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
