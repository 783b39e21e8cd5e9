"""How much memory requests take, from their first byte to the last one of their answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twoscale.runtime.memory import size_text
from twoscale.serve.limits import TOO_LARGE, Limits, Refusal, busy

_VALUE_BYTES = 32  # of a number in a list of Python
_LIST_BYTES = 64  # of an empty list or object


class Held:
    """The memory of one request."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending
        self.total = 0

    def add(self, count: int) -> None:
        """Count bytes of this request, or refuse it if others leave too little.

        A request is never refused for its own bytes: alone it is answered, whatever its size.
        """
        pending = self._pending
        others = pending.total - self.total
        if others and pending.total + count > pending.limits.pending_bytes:
            raise busy(f"requests of {size_text(others)} are waiting already: ask again later")
        pending.total += count
        self.total += count

    def add_expanded(self, count: int) -> None:
        """Count fields and answer, or refuse them if they are too much for one request."""
        most = self._pending.limits.memory_bytes
        if count > most:
            raise Refusal(
                413,
                TOO_LARGE,
                f"the fields of a request and its answer have {size_text(most)} at most on the "
                f"model's grid, these have {size_text(count)}: send fewer fields at a time",
            )
        self.add(count)

    def release(self) -> None:
        """Count nothing any more."""
        self._pending.total -= self.total
        self.total = 0


class Pending:
    """How many bytes of memory all requests take that are not answered yet."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.total = 0

    @contextmanager
    def hold(self) -> Iterator[Held]:
        """Give what counts the bytes of one request; at the end they are released."""
        held = Held(self)
        try:
            yield held
        finally:
            held.release()


def decoded_size(body: bytes) -> int:
    """Return about how many bytes the values of a JSON text take in Python."""
    return _VALUE_BYTES * body.count(b",") + _LIST_BYTES * (body.count(b"[") + body.count(b"{"))
