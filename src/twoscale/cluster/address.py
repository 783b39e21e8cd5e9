"""Where the workers are: processes of this machine, or the address of a Dask scheduler."""

from __future__ import annotations

import re
from dataclasses import dataclass

from twoscale.errors import TwoscaleError

_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx")


@dataclass(frozen=True)
class Address:
    """So many worker processes of this machine, or the address of a scheduler.

    >>> Address.parse("local:4")
    Address(processes=4, remote=None)
    >>> Address.parse("tcp://host:8786")
    Address(processes=None, remote='tcp://host:8786')
    """

    processes: int | None = None
    remote: str | None = None

    @classmethod
    def parse(cls, text: str) -> Address:
        """Return the address in a text, or say what would be one."""
        local = re.fullmatch(r"local:([1-9]\d{0,3})", text)
        if local:
            return cls(processes=int(local[1]))
        if re.fullmatch(rf"(?:{'|'.join(_SCHEMES)})://[^\s/]+:\d+", text):
            return cls(remote=text)
        raise TwoscaleError(
            "a scheduler is local:4 (that many worker processes of this machine) or the address "
            f"of a Dask scheduler, such as tcp://host:8786, got '{text}'"
        )

    def __str__(self) -> str:
        return self.remote or f"local:{self.processes}"
