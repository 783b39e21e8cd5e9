"""The file operations of a command, counted, so that a signal can come before any of them."""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_NAMED = {
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.remove",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.chmod",
    "fcntl.flock",
    "shutil.rmtree",
    "shutil.copyfile",
    "shutil.move",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_HEAD_START = 0.05  # seconds that the main thread, which gets all signals, has before the others


class Operations:
    """A log of the operations of this process; it gets a signal before the one numbered `fatal`."""

    def __init__(self, log: Path, fatal: int | None = None, number: int = signal.SIGKILL) -> None:
        self.fatal = fatal
        self.number = number
        self.count = 0
        self.folder = os.getcwd()
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Take note of an event of Python's that changes a file."""
        if event in _NAMED:
            self.note(event, arguments[0] if arguments else "")
        elif event == "open" and arguments[2] & _WRITES:
            self.note("open", arguments[0])

    def note(self, what: str, place: Any) -> None:
        """Log an operation that is about to happen."""
        if not isinstance(place, int) and not self._inside(place):
            return
        self.count += 1
        name = "" if isinstance(place, int) else os.path.relpath(os.fsdecode(place), self.folder)
        os.write(self.log, f"{what} {name!a}\n".encode())
        if self.count == self.fatal:
            os.kill(os.getpid(), self.number)
            if threading.current_thread() is not threading.main_thread():
                time.sleep(_HEAD_START)

    def _inside(self, place: Any) -> bool:
        return os.path.abspath(os.fsdecode(place)).startswith(self.folder + os.sep)


def watch(log: Path, fatal: int | None = None, number: int = signal.SIGKILL) -> Callable[[], None]:
    """Return what a child has to do so that its operations are logged, and one is its last."""

    def prepare() -> None:
        operations = Operations(log, fatal, number)
        _wrap_unaudited(operations)
        sys.addaudithook(operations.audit)

    return prepare


def read_log(log: Path) -> list[str]:
    """Return the logged operations."""
    return log.read_text().splitlines()


def _wrap_unaudited(operations: Operations) -> None:
    """Count what Python does not audit: exchanges of names, flushes, and weights."""
    import safetensors.torch

    from twoscale.files import moves

    def counted(function: Callable[..., Any], what: str, position: int) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **options: Any) -> Any:
            operations.note(what, arguments[position])
            return function(*arguments, **options)

        return wrapped

    moves._renameat2 = counted(moves._renameat2, "renameat2", 1)
    safetensors.torch.serialize_file = counted(
        safetensors.torch.serialize_file, "serialize_file", 1
    )
    os.fsync = counted(os.fsync, "os.fsync", 0)
    os.pwrite = counted(os.pwrite, "os.pwrite", 0)
