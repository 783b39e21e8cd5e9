"""The progress of long work and what it costs: bars, seconds of its stages, peak GPU memory.

In a terminal the bars are rich's, if it is installed. Elsewhere one line of text is enough: it is
rewritten in a notebook, and printed once per stage into a file.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Real
from typing import Any, TextIO

import torch

from twoscale.errors import TwoscaleError
from twoscale.runtime.logs import LOGGER

Progress = Callable[[str, int, int, str], None]
"""Called as progress(stage, done, total, remark)."""

ShowProgress = Progress | bool | None
"""What users give as `progress`: True for a bar, a function to be called, or nothing."""

_WIDTH = 100  # characters of a line of text
_BAR = 20  # characters of its bar
_PAUSE = 0.1  # seconds between two changes of a line


def reporting(
    progress: ShowProgress, label: str = "", *, over: str | None = None
) -> AbstractContextManager[Progress | None]:
    """Give the function to report to: the user's own, one that draws bars, or None."""
    if progress is None or progress is False:
        return nullcontext()
    if progress is True:
        return progress_bars(label, over=over)
    if callable(progress):
        return nullcontext(progress)
    raise TwoscaleError(
        f"progress is True, False or a function of (stage, done, total, remark), got {progress!r}"
    )


@contextmanager
def progress_bars(
    label: str = "", *, over: str | None = None, terminal_only: bool = False
) -> Iterator[Progress]:
    """Give a progress function that draws on stderr.

    With `over`, the name of a stage, there is one bar for it and one for whatever runs inside.
    Without, each stage has its own. With `terminal_only` nothing is drawn anywhere else.
    """
    in_terminal = sys.stderr.isatty()
    if in_terminal and _has_rich():
        with _rich_bars(label, over) as report:
            yield report
    elif terminal_only and not in_terminal:
        yield lambda stage, done, total, remark: None
    else:
        line = TextBar(label, over=over, rewrites=in_terminal or "ipykernel" in sys.modules)
        try:
            yield line
        finally:
            line.close()


class TextBar:
    """A progress function that writes one line of text, such as `training: 45%|█████    | 9/20`.

    Parameters
    ----------
    label
        What the line starts with.
    over
        The stage that the bar counts. By default it counts the stage that reported last.
    rewrites
        Whether the line is rewritten in place. If not, a line is written for every step of `over`,
        or for every stage that is complete.
    stream
        Where it is written, stderr by default.
    """

    def __init__(
        self,
        label: str = "",
        *,
        over: str | None = None,
        rewrites: bool = True,
        stream: TextIO | None = None,
    ) -> None:
        self.label = label
        self.over = over
        self.rewrites = rewrites
        self.stream = stream or sys.stderr
        self._stage = ""
        self._start = self._drawn = time.monotonic()
        self._line = ""  # as it stands, without its end
        self._outer = (0, 0, "")

    def __call__(self, stage: str, done: int, total: int, remark: str) -> None:
        if self.over is not None and stage != self.over:
            if self.rewrites:
                outer, count, text = self._outer
                self._draw(self.over, outer, count, f"{text} · {stage} {done}/{total}")
            return
        self._outer = (done, total, remark)
        if stage != self._stage:
            self.close()
            self._stage, self._start, self._drawn = stage, time.monotonic(), 0.0
        if self.rewrites:
            self._draw(stage, done, total, remark, at_once=done >= total)
        elif self.over is not None or done >= total:
            counted = (
                f"{done} of {total} {self.over}" if self.over else f"{stage} {done} of {total}"
            )
            line = f"{self.label}: {counted}, {remark}".removeprefix(": ").rstrip(", ")
            print(line, file=self.stream, flush=True)

    def close(self) -> None:
        """End the line that is being rewritten, if there is one."""
        if self._line:
            print(file=self.stream, flush=True)
            self._line = ""

    def _draw(
        self, stage: str, done: int, total: int, remark: str, *, at_once: bool = False
    ) -> None:
        moment = time.monotonic()
        if not at_once and moment - self._drawn < _PAUSE:
            return
        self._drawn = moment
        text = self._text(stage, done, total, remark)[:_WIDTH]
        print(f"\r{text.ljust(len(self._line))}", end="", file=self.stream, flush=True)
        self._line = text

    def _text(self, stage: str, done: int, total: int, remark: str) -> str:
        share = min(1.0, done / total) if total else 0.0
        bar = ("█" * round(_BAR * share)).ljust(_BAR)
        seconds = round(time.monotonic() - self._start)
        name = f"{self.label} {stage}".strip()
        clock = f"{seconds // 60}:{seconds % 60:02d}"
        return f"{name}: {100 * share:3.0f}%|{bar}| {done}/{total} [{clock}] {remark}".rstrip()


def _has_rich() -> bool:
    try:
        import rich.progress  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def _rich_bars(label: str, over: str | None) -> Iterator[Progress]:
    """Give a progress function that draws rich's bars; they disappear in the end."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars
    from rich.table import Column

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        # These are never cut off; the elapsed time moves even without a report.
        MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=len("100/300"))),
        (TimeElapsedColumn if over else TimeRemainingColumn)(
            table_column=Column(no_wrap=True, min_width=len("0:00:00"))
        ),
        TextColumn("{task.fields[remark]}"),
    )
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int, remark: str) -> None:
            inside = over is not None and stage != over
            name = f"  {stage}" if inside else label if over else f"{label} {stage}".strip()
            key = "inside" if inside else stage
            if key not in tasks:
                tasks[key] = bars.add_task(name, total=None, remark="")
            if "inside" in tasks and not inside:
                bars.update(tasks["inside"], visible=False)  # until it tells something
            place = tasks[key]
            bars.update(place, description=name, completed=done, total=total, visible=True)
            bars.update(place, remark=remark)

        if over is not None:  # it is there from the start
            tasks[over] = bars.add_task(label, total=None, remark="")
        yield report


_UNITS = {"": 1, "s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600}


class Clock:
    """Accumulates seconds per stage; entering and leaving a stage waits for the device."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = now()
        try:
            yield
        finally:
            self.add(name, now() - start)

    def add(self, name: str, seconds: float) -> None:
        LOGGER.debug("%s: %.3f s", name, seconds)
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


def add_seconds(*timings: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds per stage of all timings together."""
    total: dict[str, float] = {}
    for timing in timings:
        for stage, seconds in timing.items():
            total[stage] = total.get(stage, 0.0) + seconds
    return total


def reset_peak_memory() -> None:
    """Start a new measurement of the peak of allocated GPU memory."""
    if torch.cuda.is_initialized():
        torch.cuda.reset_peak_memory_stats()


def device_peak_gigabytes() -> float | None:
    """Return the peak of allocated GPU memory, or None where no GPU is in use."""
    return torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_initialized() else None


def now() -> float:
    """Return the time in seconds, after waiting for all work queued on the GPU."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


def parse_duration(given: float | str) -> float:
    """Return the seconds of a time such as 90, `90s`, `2min` or `1.5 h`.

    >>> parse_duration("2min")
    120.0
    """
    if isinstance(given, Real) and not isinstance(given, bool):
        seconds = float(given)
    else:
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(given), re.IGNORECASE)
        unit = _UNITS.get(found[2].lower()) if found else None
        seconds = float(found[1]) * unit if found and unit else 0.0
    if not 0 < seconds < math.inf:
        raise TwoscaleError(f"a time is given like 90s, 2min or 1h, got '{given}'")
    return seconds
