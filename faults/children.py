"""Commands of twoscale in forked children: the libraries are imported once, in the parent."""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

PATIENCE = 60.0
"""Seconds after which a command counts as hung; a busy machine must not reach them."""

_PAUSE = 0.002  # seconds between two looks at a child


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit status (minus the signal that killed it) and what it said."""

    arguments: tuple[str, ...]
    status: int
    out: str
    err: str
    seconds: float
    peak: int  # bytes of memory
    hung: bool

    @property
    def command(self) -> str:
        return " ".join(["twoscale", *map(_quoted, self.arguments)])


class Child:
    """A command under way."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        log: Path,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self.arguments = tuple(arguments)
        self._log = log
        self._start = time.monotonic()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if not self.pid:
            _be_the_command(self.arguments, folder, log, prepare)

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens if the command has ended."""
        os.kill(self.pid, number)  # not yet waited for, so its number is still its own

    def wait(self, patience: float = PATIENCE) -> Outcome:
        """Wait for the end of the command; one that takes too long is killed."""
        hung = False
        while True:
            pid, status, usage = os.wait4(self.pid, 0 if hung else os.WNOHANG)
            if pid:
                break
            if time.monotonic() - self._start > patience:
                hung = True
                self.signal(signal.SIGKILL)
            else:
                time.sleep(_PAUSE)
        return Outcome(
            self.arguments,
            os.waitstatus_to_exitcode(status),
            _said(self._log.with_suffix(".out")),
            _said(self._log.with_suffix(".err")),
            time.monotonic() - self._start,
            usage.ru_maxrss * 1024,
            hung,
        )


def _be_the_command(
    arguments: tuple[str, ...], folder: Path, log: Path, prepare: Callable[[], None] | None
) -> NoReturn:
    """Run a command as if this process were nothing else, and end it."""
    status = 70
    try:
        for number, suffix in ((1, ".out"), (2, ".err")):
            file = os.open(log.with_suffix(suffix), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout = _text_stream(1, "strict")
        sys.stderr = _text_stream(2, "backslashreplace")
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.chdir(folder)
        sys.argv = ["twoscale", *arguments]
        if prepare:
            prepare()
        from twoscale.cli import main

        main()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:  # it came after the command had ended: nobody is left to answer
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        with suppress(KeyboardInterrupt):
            # Threads may still write: the end of Python waits for them.
            threading._shutdown()  # type: ignore[attr-defined]
        os._exit(status)


def _text_stream(number: int, errors: str) -> io.TextIOWrapper:
    """Return a stream as Python opens them for a terminal in UTF-8."""
    raw = io.FileIO(number, "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors)


def _said(file: Path) -> str:
    return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""


def _quoted(word: str) -> str:
    return word if word.isascii() and word.isprintable() and " " not in word else ascii(word)


def warm_up() -> None:
    """Import what commands need and make it ready, so that each child starts at once."""
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ.setdefault("TWOSCALE_COMMIT", "unknown")  # spares every run the question to git
    import torch

    torch.set_num_threads(1)
    import h5py  # noqa: F401
    import matplotlib.figure
    import PIL.Image
    import PIL.WebPImagePlugin
    import psutil  # noqa: F401
    import typer.main
    import yaml  # noqa: F401
    import zarr  # noqa: F401

    if find_spec("twoscale_lab"):
        import twoscale_lab.cli.study_display
        import twoscale_lab.report.study_page  # noqa: F401
    from twoscale.cli.app import app
    from twoscale.errors import TwoscaleError

    PIL.Image.preinit()
    torch.linalg.eigh(torch.eye(8, dtype=torch.float64))
    torch.optim.Adam([torch.zeros(1)])  # the first optimiser imports a compiler: two seconds
    typer.main.get_command = cache(typer.main.get_command)  # type: ignore[assignment]
    with suppress(TwoscaleError):  # what reads arguments is imported when the first ones are read
        app(["check", "no-such-dataset"], standalone_mode=False)
    matplotlib.figure.Figure.savefig = small_picture  # type: ignore[method-assign,assignment]
    _make_things_small()
    gc.collect()
    gc.freeze()  # the children share these pages


def small_picture(figure: Any, file: Any, *, format: str = "png", **options: Any) -> None:
    """Write a fixed picture in place of a figure: drawing takes most of a command's time."""
    if hasattr(file, "write"):
        file.write(_pictures()[format])
    else:
        Path(file).write_bytes(_pictures()[format])


@cache
def _pictures() -> dict[str, bytes]:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "png")
    return {"png": buffer.getvalue(), "svg": b'<svg xmlns="http://www.w3.org/2000/svg"></svg>'}


def _make_things_small() -> None:
    """Let chunks hold 16 fields on 16 x 16 nodes, and files 32: small datasets have several.

    What commands do with their files stays the same.
    """
    from twoscale.data import description, generation

    description._CHUNK_BYTES = 16 * 4 * 16**2
    description._SHARD_BYTES = 2 * description._CHUNK_BYTES
    generation._BATCH_VALUES["cpu"] = 16 * 16**2
