"""A local server of Google Cloud Storage that fails now and then."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from time import sleep
from typing import Any
from urllib.parse import unquote

from faults.storage import REFUSED, Listener, Storage

_NAME = re.compile(rb'"name": "([^"]+)"')
_STATUS = {"error 401": 401, "error 403": 403, "error 500": 500, "error 503": 503}
_MESSAGES = {
    401: "Anonymous caller does not have storage.objects.get access to the object.",
    403: "somebody does not have storage.objects.get access to the object.",
}


class GoogleStorage(Storage):
    """A server of Google Cloud Storage."""

    content: Any  # what the emulator holds

    def objects(self, prefix: str = "", *, bucket: str = "bucket") -> dict[str, bytes]:
        found, _ = self.content.get_file_list(bucket, prefix=prefix or None)
        names = [str(one["name"]) for one in found]
        return {name.removeprefix(prefix): self.content.get_file(bucket, name) for name in names}

    def empty(self, *, bucket: str = "bucket") -> None:
        from gcp_storage_emulator.handlers.buckets import create_bucket

        self.content.wipe()
        create_bucket(bucket, self.content)
        self.requests.clear()
        self.injected.clear()

    def account(self) -> dict[str, str]:
        return {
            "STORAGE_EMULATOR_HOST": self.url,
            "NO_GCE_CHECK": "true",  # there is no network on which to look for an account
            "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # kinds of buckets emulators do not have
        }


@contextmanager
def google_storage(
    *, bucket: str = "bucket", seed: int = 0, pause: float = 0.0
) -> Iterator[GoogleStorage]:
    """Give a server with an empty bucket that ends with the block.

    It needs `gcp-storage-emulator`.
    """
    import logging
    from http.server import ThreadingHTTPServer

    from gcp_storage_emulator.server import RequestHandler
    from gcp_storage_emulator.storage import Storage as Content

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *call: Any) -> None:
            """Write nothing: clients hang up, and faults end connections."""

    class Handler(RequestHandler):
        def do_GET(self) -> None:
            _answer(held, self, super().do_GET)

        def do_POST(self) -> None:
            _answer(held, self, super().do_POST)

        def do_PUT(self) -> None:
            _answer(held, self, super().do_PUT)

        def do_DELETE(self) -> None:
            _answer(held, self, super().do_DELETE)

    logging.getLogger("gcp_storage_emulator").setLevel(logging.CRITICAL)
    held = GoogleStorage(seed=seed, pause=pause)
    held.content = Content(use_memory_fs=True)
    handler = partial(Handler, held.content)
    held.listener = Listener(lambda port: Server(("127.0.0.1", port), handler))
    try:
        held.empty(bucket=bucket)
        yield held
    finally:
        held.come_back()
        held.listener.stop()


def _answer(held: GoogleStorage, handler: Any, usual: Callable[[], None]) -> None:
    """Answer a request as planned, or else as the emulator does."""
    body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
    handler.rfile = BytesIO(body)
    fault = held.fault(handler.command, _subject(handler.path, body))
    if fault in _STATUS:
        _refuse(handler, _STATUS[fault])
    elif fault == "cut short":
        _half(handler, usual)
    elif fault != REFUSED:
        if fault == "silence":
            sleep(held.pause)
        usual()


def _subject(path: str, body: bytes) -> str:
    """Return the path of a request, with the name of the object that it uploads."""
    name = _NAME.search(body, 0, 1000)
    return unquote(path) + (f" {name[1].decode()}" if name else "")


def _refuse(handler: Any, status: int) -> None:
    message = _MESSAGES.get(status, "injected")
    body = json.dumps({"error": {"code": status, "message": message}}).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def _half(handler: Any, usual: Callable[[], None]) -> None:
    """Send half of an answer and end the connection."""
    stream, handler.wfile = handler.wfile, BytesIO()
    usual()
    whole = handler.wfile.getvalue()
    handler.wfile = stream
    stream.write(whole[: len(whole) // 2])
