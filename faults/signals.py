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
from faults.operations import watch
from faults.rules import FINE, misbehaviour
from faults.survival import check_again, check_finished, check_stopped, left_behind
from faults.trials import Place, Trial

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_INSTANTS = {"quick": 2, "usual": 1, "long": 1}  # trials of each command and signal, by its cost
_OPERATIONS = {"quick": 8, "usual": 2, "long": 1}
_CONTENT = ".twoscale-work/content/"
_CONTINUES = "run the same command again"


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield each signal at random instants and before random file operations of each command."""
    for case in CASES:
        for number in _SIGNALS:
            quick = case.cost == "quick"
            for _ in range(_INSTANTS[case.cost]):
                words = f"{case.name}, {number.name} at an instant"
                yield Trial(words, partial(_at_instant, case, number), quick)
            for _ in range(_OPERATIONS[case.cost]):
                words = f"{case.name}, {number.name} before an operation"
                yield Trial(words, partial(_before_operation, case, number), quick)


def _at_instant(case: Case, number: signal.Signals, place: Place) -> str | None:
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
    wrong = _check(case, number, child.wait(), place, tidy=False)
    return wrong and f"{number.name} after {delay:.3f} s: {wrong}"


def _before_operation(case: Case, number: signal.Signals, place: Place) -> str | None:
    """Let a command get a signal when it is about to change a file; run it again."""
    operations = case.reference(place)["operations"]
    last = place.random.randrange(len(operations))
    case.set_up(place)
    fatal = watch(place.root / "operations", last + 1, number)
    outcome = place.run(*case.command, prepare=both(case.prepare, fatal))
    # One that comes when a command begins or tidies up may leave work for the next command.
    wrong = _check(case, number, outcome, place, tidy=_CONTENT in operations[last])
    return wrong and f"{number.name} before operation {last + 1} ({operations[last]}): {wrong}"


def _when_ready(says_so: int) -> None:
    """Let the command say when it is about to begin: before that Python itself would answer."""
    from twoscale import cli

    run = cli._run

    def say_and_run() -> int:
        os.close(says_so)
        return run()

    cli._run = say_and_run


def _check(case: Case, number: int, outcome: Outcome, place: Place, *, tidy: bool) -> str | None:
    """Return what is wrong after a signal; with `tidy` also if anything is left behind."""
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
    if tidy and _CONTINUES not in outcome.err and not case.growing:
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
