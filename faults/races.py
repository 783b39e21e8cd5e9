"""Several commands at once that write to the same place."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from faults.children import Outcome
from faults.commands import (
    FINETUNE,
    FIT_ONE,
    GENERATE_DATA,
    IMPORT_NPY,
    IMPORT_NPZ,
    OVER,
    PREDICT,
    REPORT,
    STUDY,
    Case,
)
from faults.contents import Broken, strays
from faults.rules import FINE, last_line, misbehaviour
from faults.trials import Place, Trial

_TRIALS = 140
_TARGET = "result"
_EXCUSES = ("another command is", "exists already", "something else")


def _other(case: Case, name: str, *arguments: str) -> Case:
    return replace(case, name=f"{case.name} {name}", arguments=(*case.arguments, *arguments))


_DATA = (GENERATE_DATA, _other(GENERATE_DATA, "seed 3", "--seed", "3"), IMPORT_NPZ, IMPORT_NPY)
_RUNS = (FIT_ONE, _other(FIT_ONE, "seed 3", "--seed", "3"), FINETUNE)
_FILES = (
    PREDICT,
    replace(
        PREDICT,
        name="predict other",
        arguments=("predict", "other-run", "inputs.npy"),
        needs=("other-run", "inputs.npy"),
    ),
)
_GROUPS: tuple[tuple[tuple[Case, ...], str], ...] = (
    (_DATA, "other.zarr"),
    (_DATA, "other.zarr"),
    (_RUNS, "other-run"),
    (_FILES, "prediction.npy"),
    ((REPORT,), "page.html"),
    ((STUDY,), ""),
    ((*_DATA, *_RUNS, *_FILES), ""),
)


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield races between commands of one group, or of any."""
    for number in range(_TRIALS):
        group, old = _GROUPS[number % len(_GROUPS)]
        old = old if choose.random() < 0.4 else ""
        cases = [choose.choice(group) for _ in range(choose.choice((2, 2, 3, 4)))]
        cases = [_at_target(case, bool(old) or choose.random() < 0.3) for case in cases]
        words = " against ".join(case.name for case in cases)
        yield Trial(words, partial(_race, cases, old), all(one.cost == "quick" for one in cases))


def _at_target(case: Case, over: bool) -> Case:
    """Return a case that writes to the common target; studies add to what is there anyway."""
    flags = (OVER,) if over and not case.growing else ()
    return replace(
        case, target=_TARGET, name=f"{case.name} in a race", arguments=(*case.arguments, *flags)
    )


def _race(cases: Sequence[Case], old: str, place: Place) -> str | None:
    """Start commands at almost the same instant and see who has won."""
    for case in cases:
        case.reference(place)
        for name in case.needs:
            if not (place.path / name).exists():
                place.put(name)
    if old:
        place.put(old, _TARGET)
    children = []
    for case in cases:
        children.append(place.start(case.command, prepare=case.prepare))
        time.sleep(place.random.choice((0.0, 0.0, 0.02, 0.1)) * place.random.random())
    outcomes = [child.wait() for child in children]
    return _check(cases, outcomes, place)


def _check(cases: Sequence[Case], outcomes: Sequence[Outcome], place: Place) -> str | None:
    for outcome in outcomes:
        wrong = misbehaviour(outcome)
        if not wrong and outcome.status != FINE:
            excused = any(words in last_line(outcome) for words in _EXCUSES)
            wrong = None if excused else f"refused for no good reason: {last_line(outcome)}"
        if wrong:
            return wrong
    winners = [
        case for case, outcome in zip(cases, outcomes, strict=True) if outcome.status == FINE
    ]
    if not winners:
        return f"nobody has won: {last_line(outcomes[0])}"
    alone = not any(OVER in case.arguments or case.growing for case in winners)
    if alone and len(winners) > 1:
        return f"{len(winners)} succeeded at one place without {OVER}"
    try:
        found = Case.state(place, _TARGET)
    except Broken as error:
        return f"the result is not whole: {error}"
    if found not in [case.reference(place)["new"][_TARGET] for case in winners]:
        return "the result is not that of any winner"
    return strays(place.path, {name for case in cases for name in case.names})
