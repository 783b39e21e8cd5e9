"""What a server accepts at most, and how it says no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from twoscale.errors import TwoscaleError

INVALID_INPUT = "InvalidInput"
MODEL_NOT_FOUND = "ModelNotFound"
NOT_FOUND = "NotFound"
UNSUPPORTED = "UnsupportedFeature"
INVALID_OUTPUT = "InvalidOutput"
BUSY = "Busy"
TIMEOUT = "Timeout"
TOO_LARGE = "TooLarge"
FORBIDDEN = "Forbidden"

HOST, PORT = "127.0.0.1", 4242
"""Where a server listens by default."""

_MEMORY_PER_BYTE = 8  # of a request's fields and answer, for each byte of the largest body


@dataclass(frozen=True)
class Limits:
    """What a server accepts at most.

    Parameters
    ----------
    request_bytes
        Size of a request's body, 32 MB by default.
    pending_bytes
        Memory of all requests together that are not answered yet, 512 MB by default: bodies, what
        they hold on the model's grid, and answers. It is at least `request_bytes`. One request
        alone may take more.
    fields
        Number of fields in one request, 1024 by default.
    points
        Number of points that a request of UM-Bridge may name, 10,000 by default.
    batch_fields
        Number of fields that are predicted together, 256 by default. A larger request is alone.
    queue
        Number of requests that wait for their predictions, 256 by default.
    seconds
        Time of a request from its last byte to its answer, 60 s by default.
    body_seconds
        Time in which a request's head, its body, or the client's reading of an answer must make
        progress to its end, 20 s by default.
    """

    request_bytes: int = 32 * 10**6
    pending_bytes: int = 512 * 10**6
    fields: int = 1024
    points: int = 10_000
    batch_fields: int = 256
    queue: int = 256
    seconds: float = 60.0
    body_seconds: float = 20.0

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not value > 0:
                raise TwoscaleError(f"the limit {one.name} must be positive, got {value!r}")
        object.__setattr__(self, "pending_bytes", max(self.pending_bytes, self.request_bytes))

    @property
    def memory_bytes(self) -> int:
        """Return the most memory of one request's fields and answer, its body not counted."""
        return _MEMORY_PER_BYTE * self.request_bytes


class Refusal(Exception):
    """A request that is not answered as asked: the status, the kind of error, one sentence."""

    def __init__(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.headers = dict(headers or {})

    @property
    def content(self) -> dict[str, Any]:
        """Return the body of the answer; its shape is that of UM-Bridge's errors."""
        return error_content(self.kind, self.message)


def error_content(kind: str, message: str) -> dict[str, Any]:
    """Return the JSON object that tells an error."""
    return {"error": {"type": kind, "message": " ".join(message.split())}}


def printable(text: str) -> str:
    """Return a text of a client for the log: control characters are escaped."""
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def busy(message: str) -> Refusal:
    """Return the answer to a request that has to come again later."""
    return Refusal(503, BUSY, message, {"Retry-After": "1"})
