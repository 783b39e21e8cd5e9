"""What holds for every command, whatever was done to it."""

from __future__ import annotations

import re
from collections.abc import Collection

from faults.children import Outcome

FINE, REFUSED = 0, 2

_PROGRESS = re.compile(r"^[^:]*: [\d.]+ of [\d.]+ (cells|seconds)\b")


def sentences(outcome: Outcome) -> list[str]:
    """Return the lines on stderr that are neither warnings of ours nor progress."""
    return [
        line
        for line in outcome.err.splitlines()
        if not line.startswith("twoscale: warning:") and not _PROGRESS.match(line)
    ]


def misbehaviour(outcome: Outcome, allowed: Collection[int] = (FINE, REFUSED)) -> str | None:
    """Return a sentence on what no command may do, if this one did it."""
    if outcome.hung:
        return f"it hung: not ended after {outcome.seconds:.0f} s"
    if "Traceback" in outcome.out + outcome.err:
        return f"it showed a traceback: {last_line(outcome)}"
    if outcome.status not in allowed:
        return f"exit status {outcome.status}: {last_line(outcome)}"
    if outcome.status <= 0:
        return None
    lines = sentences(outcome)
    if len(lines) != 1 or not lines[0].startswith("twoscale: ") or not lines[0][10:].strip():
        return f"exit status {outcome.status} with {len(lines)} lines on stderr: {lines[:3]}"
    if "unexpected" in lines[0] and "--debug shows where" in lines[0]:
        return f"the sentence is one of an error nobody expected: {lines[0]}"
    return None


def refusal(outcome: Outcome) -> str | None:
    """Return a sentence on what is wrong if the command was not refused in one sentence."""
    wrong = misbehaviour(outcome)
    if wrong is None and outcome.status != REFUSED:
        wrong = f"it was not refused: {outcome.out.strip()[-200:]}"
    return wrong


def last_line(outcome: Outcome) -> str:
    """Return the last thing a command said."""
    lines = (outcome.err.strip() or outcome.out.strip()).splitlines()
    return lines[-1][:300] if lines else "(nothing said)"
