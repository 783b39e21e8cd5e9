"""Commands that are stopped: killed, or asked to stop by Ctrl-C, a session's end or a batch system.

They are stopped at an instant, in the middle of a write too, or before a file operation.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

from faults.children import Outcome
from faults.commands import CASES, Case, both
from faults.contents import strays
from faults.operations import watch
from faults.rules import FINE, misbehaviour
from faults.survival import check_again, check_finished, check_stopped
from faults.trials import Place, Trial

# Trials of each command, by its cost. Some have fewer operations, and are killed before each.
_POINTS = {"quick": 40, "usual": 16, "long": 10}
_INSTANTS = {"quick": 16, "usual": 8, "long": 5}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SIGNAL_INSTANTS = {"quick": 2, "usual": 1, "long": 1}  # of each signal too
_SIGNAL_OPERATIONS = {"quick": 8, "usual": 2, "long": 1}

_CONTENT = ".twoscale-work/content/"
_CONTINUES = "run the same command again"


def kills(choose: random.Random) -> Iterator[Trial]:
    """Yield kills spread evenly over the file operations of each command."""
    for case in CASES:
        points = _POINTS[case.cost]
        for point in range(points):
            words = f"{case.name}, {point + 1} of {points}"
            attack = partial(_before_operation, case, signal.SIGKILL, point / points)
            yield Trial(words, attack, case.cost == "quick")


def instants(choose: random.Random) -> Iterator[Trial]:
    """Yield kills of each command at random instants."""
    for case in CASES:
        for _ in range(_INSTANTS[case.cost]):
            attack = partial(_at_instant, case, signal.SIGKILL)
            yield Trial(case.name, attack, case.cost == "quick")


def signals(choose: random.Random) -> Iterator[Trial]:
    """Yield each signal at random instants and before random file operations of each command."""
    for case in CASES:
        for number in _SIGNALS:
            quick = case.cost == "quick"
            for _ in range(_SIGNAL_INSTANTS[case.cost]):
                words = f"{case.name}, {number.name} at an instant"
                yield Trial(words, partial(_at_instant, case, number), quick)
            for _ in range(_SIGNAL_OPERATIONS[case.cost]):
                words = f"{case.name}, {number.name} before an operation"
                yield Trial(words, partial(_before_operation, case, number, None), quick)


def _at_instant(case: Case, number: signal.Signals, place: Place) -> str | None:
    """Stop a command at an instant of the time it takes; run it again."""
    delay = place.random.random() * case.reference(place)["seconds"]
    case.set_up(place)
    if number == signal.SIGKILL:
        child = place.start(case.command, prepare=case.prepare)
    else:
        ready, says_so = os.pipe()
        prepare = both(case.prepare, partial(_say_when_ready, says_so))
        child = place.start(case.command, prepare=prepare)
        os.close(says_so)
        os.read(ready, 1)
        os.close(ready)
    time.sleep(delay)
    child.signal(number)
    wrong = _check(case, number, child.wait(), place, tidy=False)
    return wrong and f"{number.name} after {delay:.3f} s: {wrong}"


def _before_operation(
    case: Case, number: signal.Signals, share: float | None, place: Place
) -> str | None:
    """Stop a command when it has done a share of its file operations, or any; run it again."""
    operations = case.reference(place)["operations"]
    count = len(operations)
    done = place.random.randrange(count) if share is None else int(share * count)
    case.set_up(place)
    fatal = watch(place.root / "operations", done + 1, number)
    outcome = place.run(*case.command, prepare=both(case.prepare, fatal))
    # A signal that comes when a command begins or tidies up may leave work for the next command.
    wrong = _check(case, number, outcome, place, tidy=_CONTENT in operations[done])
    return wrong and f"{number.name} before operation {done + 1} ({operations[done]}): {wrong}"


def _say_when_ready(says_so: int) -> None:
    """Let the command say when it is about to begin: before that Python itself would answer."""
    from twoscale import cli

    run: Callable[[list[str]], int] = cli._run

    def say_and_run(arguments: list[str]) -> int:
        os.close(says_so)
        return run(arguments)

    cli._run = say_and_run


def _check(
    case: Case, number: signal.Signals, outcome: Outcome, place: Place, *, tidy: bool
) -> str | None:
    """Return what is wrong after a stop; with `tidy` also if a signal has left anything behind."""
    killed = number == signal.SIGKILL
    allowed = (FINE, -number) if killed else (FINE, 128 + number, -number)
    wrong = misbehaviour(outcome, allowed=allowed)
    if wrong:
        return wrong
    wrong, complete = check_stopped(case, place)
    if wrong:
        return wrong
    if killed:
        return check_again(case, place, complete=complete)
    if outcome.status == FINE:  # a search that is stopped ends with its best, which is a success
        return check_finished(case, place)
    if outcome.status == -number and case.fixed and not complete:
        return "the signal killed it before it had ended"
    if tidy and _CONTINUES not in outcome.err and not case.growing:
        wrong = strays(place.path, case.names) or _unasked_parents(case, place, complete)
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
