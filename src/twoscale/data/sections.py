"""Parts of arrays: which samples and nodes, and which times are inputs and which are outputs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from twoscale.data.axes import LETTERS
from twoscale.errors import TwoscaleError

_RANGE = r"-?\d*(?::-?\d*(?::(?:[1-9]\d*)?)?)?"


def parse_select(text: str | None) -> dict[str, slice]:
    """Return the part of each axis in a text such as `0:1000` or `sample=0:1000,height=::2`.

    A range without a name is one of samples.

    >>> parse_select("0:1000:2")
    {'n': slice(0, 1000, 2)}
    """
    found = {}
    for token in (text or "").split(",") if text else ():
        name, _, part = (one.strip() for one in token.rpartition("="))
        letter = {word: one for one, word in LETTERS.items()}.get(name or "sample", name)
        if (
            letter not in LETTERS
            or letter == "t"
            or not re.fullmatch(_RANGE, part)
            or ":" not in part
        ):
            raise TwoscaleError(
                "'select' takes ranges such as 0:1000 (samples), 0:1000:2, or by axis "
                f"sample=0:1000,height=::2,width=::2, got '{text}'"
            )
        found[letter] = _slice(part)
    return found


def _slice(text: str) -> slice:
    start, stop, step = (int(one) if one else None for one in (*text.split(":"), "", "")[:3])
    return slice(start, stop, step)


@dataclass(frozen=True)
class Times:
    """Which times are inputs and which are outputs, as texts such as `0`, `0:10` or `-1`."""

    inputs: str
    outputs: str

    @classmethod
    def parse(cls, text: str | None) -> Times | None:
        """Return the times in a text such as `0/-1` or `0:10/10:20`; `->` may replace the `/`."""
        if not text:
            return None
        sides = [side.strip() for side in text.replace("->", "/").split("/")]
        steps = rf"(?:{_RANGE})(?:,{_RANGE})*"
        if len(sides) != 2 or not sides[1] or not all(re.fullmatch(steps, one) for one in sides):
            raise TwoscaleError(
                "'time' says which times are inputs and which are outputs: 0/-1 (from the first "
                f"to the last), 0:10/10:20 (ten times each, as channels), got '{text}'"
            )
        return cls(*sides)

    def of(self, role: str, name: str, steps: int) -> list[int]:
        """Return the times of an array of a role, counted from 0, or say what is wrong."""
        text = self.outputs if role == "output" else self.inputs
        if not text:
            raise TwoscaleError(
                f"'{name}' has {steps} times and is an input: say which with 'time', such as 0/-1"
            )
        found: list[int] = []
        for token in text.split(","):
            part = _slice(token) if ":" in token else _single(int(token))
            some = list(range(*part.indices(steps)))
            if not some or (":" not in token and not -steps <= int(token) < steps):
                raise TwoscaleError(
                    f"'{name}' has the times 0 to {steps - 1}: {token} is none of them"
                )
            found += some
        return found


def _single(step: int) -> slice:
    return slice(step, step + 1 or None)
