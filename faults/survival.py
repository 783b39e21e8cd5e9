"""What must hold after a command was stopped, and after it was run again."""

from __future__ import annotations

from faults.commands import OVER, Case
from faults.contents import Broken, changed, snapshot, strays
from faults.rules import REFUSED, last_line, misbehaviour
from faults.trials import Place

_EXISTS = "exists already"


def check_stopped(case: Case, place: Place) -> tuple[str | None, bool]:
    """Return what is wrong after a command was stopped, and whether its result is complete.

    What was there before is there unchanged, or is replaced by a complete new result.
    """
    reference = case.reference(place)
    complete = True
    for part in case.parts:
        try:
            found = case.state(place, part)
        except Broken as error:
            return f"{part} is half-written: {error}", False
        old, new = reference["old"][part], reference["new"][part]
        if found is None and old is not None:
            return f"{part} is gone: neither the old result nor the new one is there", False
        if case.growing or found in (None, old) or not case.fixed:
            complete = complete and (found == new)
        elif found != new:
            return f"{part} is neither the old result nor the whole new one", False
    return others_changed(case, place), complete


def others_changed(case: Case, place: Place) -> str | None:
    """Return what is wrong about all that is not the result."""
    before = {
        name: kind
        for name, kind in case.reference(place)["before"].items()
        if not _belongs(name, case.target) and not case.target.startswith(f"{name}/")
    }
    return changed(before, snapshot(place.path))


def _belongs(name: str, target: str) -> bool:
    return name == target or name.startswith(f"{target}/")


def check_again(case: Case, place: Place, *, complete: bool) -> str | None:
    """Run a stopped command again and return what is wrong then."""
    outcome = place.run(*case.command, prepare=case.prepare)
    wrong = misbehaviour(outcome)
    if wrong:
        return f"run again: {wrong}"
    if outcome.status == REFUSED:
        told = _EXISTS in last_line(outcome) and OVER not in case.arguments
        if not told:
            return f"run again, it is refused: {last_line(outcome)}"
        if not complete and case.fixed:
            return f"run again, it says '{_EXISTS}' of an incomplete result"
    return check_finished(case, place)


def check_finished(case: Case, place: Place) -> str | None:
    """Return what is wrong about a result that should be that of an undisturbed run."""
    reference = case.reference(place)
    for part in case.parts:
        try:
            found = case.state(place, part)
        except Broken as error:
            return f"the finished {part} is not whole: {error}"
        if found is None:
            return f"the finished {part} is missing"
        if case.fixed and found != reference["new"][part]:
            names = {*found, *reference["new"][part]}
            unlike = [n for n in names if found.get(n) != reference["new"][part].get(n)]
            return f"{part} differs from an undisturbed run in {sorted(unlike)[:4]}"
    return others_changed(case, place) or strays(place.path, case.names)
