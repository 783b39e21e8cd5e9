"""Kills at random instants: in the middle of a write too, not only between two operations."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from functools import partial

from faults.commands import CASES, Case
from faults.rules import FINE, KILLED, misbehaviour
from faults.survival import check_again, check_stopped
from faults.trials import Place, Trial

_TRIALS = {"quick": 16, "usual": 8, "long": 5}  # of each command, by its cost


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield kills of each command at random instants."""
    for case in CASES:
        for _ in range(_TRIALS[case.cost]):
            yield Trial(case.name, partial(_kill, case), case.cost == "quick")


def _kill(case: Case, place: Place) -> str | None:
    """Kill a command at an instant of the time it takes; run it again."""
    delay = place.random.random() * case.reference(place)["seconds"]
    case.set_up(place)
    child = place.start(case.command, prepare=case.prepare)
    time.sleep(delay)
    child.signal(signal.SIGKILL)
    outcome = child.wait()
    wrong = misbehaviour(outcome, allowed=(FINE, KILLED))
    complete = False
    if not wrong:
        wrong, complete = check_stopped(case, place)
    if not wrong:
        wrong = check_again(case, place, complete=complete)
    return wrong and f"killed after {delay:.3f} s: {wrong}"
