"""Trials chosen and run, several at a time."""

from __future__ import annotations

import multiprocessing
import random
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from faults.registry import KINDS
from faults.templates import Templates, Undisturbed
from faults.trials import Place, Skipped, Trial

_MEMORY_FOLDER = Path("/dev/shm")  # a file system in memory is several times as fast


@dataclass(frozen=True)
class Task:
    """A trial and its name: kind and number."""

    kind: str
    number: int
    trial: Trial


@dataclass(frozen=True)
class Result:
    """How a trial went: `wrong` says what did, `skipped` why it was not tried."""

    task: Task
    wrong: str | None
    seconds: float
    command: str = ""
    skipped: str = ""


def select(
    kind: str, seed: int, *, scale: float = 1, dose: int | None = None, quick: bool = False
) -> list[Task]:
    """Return the trials of a kind: all, or a part that is evenly spread over them.

    The part is a share (`scale`), or a number of trials (`dose`), of all or of the `quick` ones.
    A trial has the same number whatever part is run.
    """
    tasks = [task for task in _all(kind, seed) if task.trial.quick or not quick]
    wanted = len(tasks) if scale >= 1 else max(1, round(len(tasks) * scale))
    wanted = wanted if dose is None else min(wanted, dose)
    return [tasks[k * len(tasks) // wanted] for k in range(wanted)]


def pick(kind: str, seed: int, number: int) -> Task:
    """Return a single trial of a kind."""
    return _all(kind, seed)[number]


def _all(kind: str, seed: int) -> list[Task]:
    trials = KINDS[kind](random.Random(f"{seed} {kind}"))
    return [Task(kind, number, trial) for number, trial in enumerate(trials)]


_tasks: list[Task] = []  # for the workers, which are forked from this process
_seed = 0
_root = Path()


def run_tasks(tasks: list[Task], *, seed: int, workers: int) -> Iterator[Result]:
    """Yield the results of trials as they come."""
    global _tasks, _seed, _root
    parent = _MEMORY_FOLDER if _MEMORY_FOLDER.is_dir() else None
    root = Path(tempfile.mkdtemp(prefix="twoscale-faults-", dir=parent))
    root.chmod(0o755)  # some commands run as another user
    _tasks, _seed, _root = tasks, seed, root
    order = list(range(len(tasks)))
    random.Random(seed).shuffle(order)  # slow trials do not all come at the end
    try:
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            for index, wrong, seconds, command, skipped in pool.imap_unordered(_attack, order):
                yield Result(tasks[index], wrong, seconds, command, skipped)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _attack(index: int) -> tuple[int, str | None, float, str, str]:
    """Run a trial in a place of its own."""
    task = _tasks[index]
    start = time.monotonic()
    place = Place(
        _root / f"{task.kind}-{task.number}",
        Templates(_root / "templates"),
        random.Random(f"{_seed} {task.kind} {task.number}"),
    )
    wrong, skipped = None, ""
    try:
        wrong = task.trial.attack(place)
    except Skipped as reason:
        skipped = str(reason)
    except Undisturbed as error:
        wrong = str(error)
    except Exception:  # a mistake of the suite
        wrong = "the trial itself failed: " + " | ".join(traceback.format_exc().splitlines()[-3:])
    finally:
        place.close()
    command = place.commands[-1] if place.commands else ""
    return index, wrong, time.monotonic() - start, command, skipped
