"""Requests to stop at random instants: Ctrl-C, the end of a session, a batch system's warning."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from functools import partial

from faults.children import Outcome
from faults.commands import CASES, Case, both
from faults.rules import FINE, misbehaviour
from faults.survival import check_again, check_finished, check_stopped, left_behind
from faults.trials import Place, Trial

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TRIALS = {"quick": 5, "usual": 3, "long": 2}  # of each command and signal
_CONTINUES = "run the same command again"


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield each signal at random instants of each command."""
    for case in CASES:
        for number in _SIGNALS:
            for _ in range(_TRIALS[case.cost]):
                words, quick = f"{case.name}, {number.name}", case.cost == "quick"
                yield Trial(words, partial(_stop, case, number), quick)


def _stop(case: Case, number: signal.Signals, place: Place) -> str | None:
    """Send a signal at an instant of the time a command takes; run it again."""
    delay = place.random.random() * case.reference(place)["seconds"]
    case.set_up(place)
    ready, says_so = os.pipe()
    child = place.start(case.command, prepare=both(case.prepare, partial(_when_ready, says_so)))
    os.close(says_so)
    os.read(ready, 1)
    os.close(ready)
    time.sleep(delay)
    child.signal(number)
    outcome = child.wait()
    wrong = _check(case, number, outcome, place)
    return wrong and f"{number.name} after {delay:.3f} s: {wrong}"


def _when_ready(says_so: int) -> None:
    """Let the command say when it is about to begin: before that Python itself would answer."""
    from twoscale import cli

    run = cli._run

    def say_and_run() -> int:
        os.close(says_so)
        return run()

    cli._run = say_and_run


def _check(case: Case, number: int, outcome: Outcome, place: Place) -> str | None:
    wrong = misbehaviour(outcome, allowed=(FINE, 128 + number, -number))
    if wrong:
        return wrong
    wrong, complete = check_stopped(case, place)
    if wrong:
        return wrong
    if outcome.status == FINE:  # a search that is stopped ends with its best, which is a success
        return check_finished(case, place)
    if outcome.status == -number and case.fixed and not complete:
        return "the signal killed it before it had ended"
    if _CONTINUES not in outcome.err and outcome.status > 0 and not case.growing:
        wrong = left_behind(case, place) or _unasked_parents(case, place, complete)
        if wrong:
            return wrong
    return check_again(case, place, complete=complete)


def _unasked_parents(case: Case, place: Place, complete: bool) -> str | None:
    """Return what is wrong if folders for a result are there that never came."""
    first = case.target.split("/")[0]
    there = (place.path / first).exists()
    if there and not (complete or case.old or case.growing or case.inside):
        return f"left behind: {first}"
    return None
