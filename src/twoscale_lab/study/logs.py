"""What a running study reports: a log for each cell, and the time left."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from twoscale.errors import TwoscaleError
from twoscale.runtime.progress import Progress
from twoscale_lab.study.planning import Group

# A link would lead to another file, and a pipe would block the study.
_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Log:
    """A cell's log file: lines of time and text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, text: str) -> None:
        """Append a line with the time."""
        moment = datetime.now().astimezone().isoformat(timespec="seconds")
        line = f"{moment} {text}\n".encode(errors="backslashreplace")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | _PLAIN_FILE, 0o666)
        with open(descriptor, "ab") as log:
            log.write(line)


def with_logs(progress: Progress, logs: Sequence[Log]) -> Progress:
    """Return a progress function that also logs the beginning and end of each stage."""

    def report(stage: str, done: int, total: int, remark: str) -> None:
        progress(stage, done, total, remark)
        if done in (0, total):
            for log in logs:
                log.write(" ".join(f"{stage} {done}/{total} {remark}".split()))

    return report


class TimeLeft:
    """An estimate of the time that the remaining groups take, from the time of those done."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self.start = time.monotonic()
        self.left = sum(group.cost for group in groups)
        self.done = 0.0

    def finish(self, group: Group) -> None:
        """Count a group as done."""
        self.left -= group.cost
        self.done += group.cost

    def remark(self) -> str:
        """Return the time left in words; nothing before the first group is done."""
        if not self.done:
            return ""
        seconds = (time.monotonic() - self.start) * self.left / self.done
        if seconds < 90:
            return f"about {max(1, round(seconds))} s left"
        return f"about {round(seconds / 60)} min left"


def one_line(error: BaseException) -> str:
    """Return an error in one line, with its type if it is not a TwoscaleError."""
    text = " ".join(str(error).split())
    return text if isinstance(error, TwoscaleError) else f"{type(error).__name__}: {text}"
