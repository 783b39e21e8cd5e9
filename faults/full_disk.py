"""Disks that are full, or become full while a result is written."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from faults.commands import (
    AGAIN,
    FINETUNE,
    FIT_ONE,
    FIT_SAVING,
    FIT_SEEDS,
    GENERATE_DATA,
    IMPORT_NPZ,
    PREDICT,
    REPORT,
    STUDY,
    Case,
    both,
)
from faults.contents import Broken, changed, snapshot, strays
from faults.rules import FINE, misbehaviour
from faults.survival import check_finished
from faults.trials import Place, Skipped, Trial

_DISKS, _FILES = 7, 4  # trials of each command: on small disks, and with small files
_CONTINUES = "run the same command again"
_PAGE = 4096
_DISK = "disk"

_FRESH = (
    GENERATE_DATA,
    IMPORT_NPZ,
    FIT_ONE,
    FIT_SEEDS,
    FIT_SAVING,
    FINETUNE,
    PREDICT,
    REPORT,
    STUDY,
)
_OVER = tuple(case for case in AGAIN if case.fixed and not case.growing)


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield commands whose target is on a small disk, or whose files must stay small."""
    for case in (*_FRESH, *_OVER):
        quick = case.cost == "quick"
        for step in range(_DISKS):
            share = step / (_DISKS - 1)
            words = f"{case.name}, {share:.0%} of a disk"
            yield Trial(words, partial(_small_disk, case, share), quick)
        for step in range(_FILES):
            share = step / _FILES
            words = f"{case.name}, files of {share:.0%} at most"
            yield Trial(words, partial(_small_files, case, share), quick)


def _small_disk(case: Case, share: float, place: Place) -> str | None:
    """Run a command whose target is on a disk with a share of the space that it needs."""
    if not _may_mount():
        raise Skipped("small disks: mounting one is not allowed here")
    case = replace(case, target=f"{_DISK}/{case.target}", name=f"{case.name} on a disk")
    case.reference(place)
    needed = _space(case, place)
    (place.path / _DISK).mkdir()
    with _disk(place.path / _DISK, needed * 2 + 64 * _PAGE):
        case.set_up(place)
        left = int(share * 1.1 * needed)
        _fill(place.path / _DISK / "ballast", left)
        return _run(replace(case, beside=("disk/ballast",)), place, f"{left} bytes left")


def _small_files(case: Case, share: float, place: Place) -> str | None:
    """Run a command that may only write files of a share of the size of its largest."""
    case.reference(place)
    limit = max(1024, int(share * _largest(case, place)))
    case.set_up(place)

    def prepare() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return _run(
        replace(case, prepare=both(case.prepare, prepare)), place, f"files to {limit} bytes"
    )


def _run(case: Case, place: Place, words: str) -> str | None:
    """Run a command that may fail for want of space, and see what it leaves."""
    before = snapshot(place.path)
    outcome = place.run(*case.command, prepare=case.prepare)
    wrong = misbehaviour(outcome)
    if not wrong and outcome.status == FINE:
        wrong = check_finished(case, place)
    elif not wrong:
        after = snapshot(place.path)
        wrong = changed(before, after)
        new = sorted(set(after) - set(before))
        if not wrong and case.growing:
            wrong = _whole(case, place)
        elif not wrong and new and _CONTINUES not in outcome.err:
            wrong = f"left behind: {', '.join(new[:3])}"
    return wrong and f"{words}: {wrong}"


def _whole(case: Case, place: Place) -> str | None:
    """Return what is wrong if a folder that grows holds anything half-written."""
    try:
        case.state(place, case.target)
    except Broken as error:
        return f"{case.target} is half-written: {error}"
    return strays(place.path, os.listdir(place.path))


def _space(case: Case, place: Place) -> int:
    """Return the bytes that the disk of an undisturbed run has in use at the end."""
    found = case.reference(place)["after"]
    return sum(-(-size // _PAGE) * _PAGE for name, size in found.items() if name.startswith(_DISK))


def _largest(case: Case, place: Place) -> int:
    found = case.reference(place)["after"]
    return max(size for name, size in found.items() if name.startswith(case.target.split("/")[0]))


def _fill(file: Path, left: int) -> None:
    """Write a file that leaves only some bytes of a disk."""
    free = shutil.disk_usage(file.parent).free
    with file.open("wb") as stream:
        stream.write(b"\0" * max(0, free - left))


@contextmanager
def _disk(folder: Path, size: int) -> Iterator[None]:
    """Mount a small disk in memory on a folder."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "faults", folder],
        check=True,
        capture_output=True,
    )
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True, capture_output=True)


@cache
def _may_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"faults-mount-{os.getpid()}"
    folder.mkdir()
    try:
        with _disk(folder, 16 * _PAGE):
            return True
    except subprocess.CalledProcessError:
        return False
    finally:
        folder.rmdir()
