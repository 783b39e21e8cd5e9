"""Kills before every file operation of every command that writes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial

from faults.commands import CASES, Case, both
from faults.operations import watch
from faults.rules import FINE, KILLED, misbehaviour
from faults.survival import check_again, check_stopped
from faults.trials import Place, Trial

# Points of each command by its cost. Some have fewer operations, and are killed before each.
_POINTS = {"quick": 40, "usual": 16, "long": 10}


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield kills spread evenly over the operations of each command."""
    for case in CASES:
        points = _POINTS[case.cost]
        for point in range(points):
            words = f"{case.name}, {point + 1} of {points}"
            yield Trial(words, partial(_kill, case, point / points), case.cost == "quick")


def _kill(case: Case, share: float, place: Place) -> str | None:
    """Kill a command when it has done a share of its operations; run it again."""
    operations = case.reference(place)["operations"]
    number = 1 + int(share * len(operations))
    case.set_up(place)
    fatal = watch(place.root / "operations", number)
    outcome = place.run(*case.command, prepare=both(case.prepare, fatal))
    wrong = misbehaviour(outcome, allowed=(FINE, KILLED))
    complete = False
    if not wrong:
        wrong, complete = check_stopped(case, place)
    if not wrong:
        wrong = check_again(case, place, complete=complete)
    return wrong and f"killed before operation {number} ({operations[number - 1]}): {wrong}"
