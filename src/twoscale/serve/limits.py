"""What a server accepts at most, and how it says no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from twoscale.errors import TwoscaleError

HOST, PORT = "127.0.0.1", 4242
"""Where a server listens by default."""

_MEMORY_PER_BYTE = 8  # of a request's fields and answer, for each byte of the largest body
_KINDS = {
    403: "Forbidden",
    404: "NotFound",
    408: "Timeout",
    413: "TooLarge",
    500: "InvalidOutput",
    503: "Busy",
    504: "Timeout",
}


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
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not value > 0:
                raise TwoscaleError(f"the limit {limit.name} must be positive, got {value!r}")
        object.__setattr__(self, "pending_bytes", max(self.pending_bytes, self.request_bytes))

    @property
    def memory_bytes(self) -> int:
        """Return the most memory of one request's fields and answer, its body not counted."""
        return _MEMORY_PER_BYTE * self.request_bytes


CLOSE = {"Connection": "close"}
"""Headers of a refusal that ends the connection, because the client may still be sending."""


class Refusal(Exception):
    """A request that is not answered as asked: the status, one sentence, and the kind of error.

    The kind is that of the status by default.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(" ".join(message.split()))
        self.status = status
        self.kind = kind or _KINDS.get(status, "InvalidInput")
        self.headers = {**(headers or {}), **({"Retry-After": "1"} if status == 503 else {})}
