"""How files become fields: which arrays, in which order of axes, which part of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from twoscale.data.axes import LETTERS, AxesOrder, is_order
from twoscale.errors import TwoscaleError

Keys = str | Sequence[str] | None

_RANGE = r"(?:-?\d+|(?:-?\d+)?:(?:-?\d+)?(?::(?:[1-9]\d*)?)?)"
_NAMES = ("inputs", "outputs", "parameters")


@dataclass(frozen=True)
class Reading:
    """How files become fields.

    Parameters
    ----------
    inputs, outputs, parameters
        Names of arrays. Several are channels, in this order. Without any, arrays whose names leave
        no doubt are taken, such as `a` and `u`.
    axes
        Orders of axes such as "nhwc" or "a=hwn,u=nhw", where files do not name them.
    select
        A part of the samples such as "0:1000", or of any axis: "sample=0:1000,height=::2".
    time
        The times that are inputs and those that are outputs, such as "0/-1" or "0:10/10:20".
    periodic
        Whether rows and columns wrap; by default as the file says, or not at all.
    known
        Orders of axes found earlier in a file of the same layout, by the arrays' names.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    axes: str | None = None
    select: str | None = None
    time: str | None = None
    periodic: tuple[bool, bool] | None = None
    known: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        AxesOrder.parse(self.axes), self.ranges, self.times  # may raise

    @classmethod
    def of(
        cls,
        *,
        inputs: Keys = None,
        outputs: Keys = None,
        parameters: Keys = None,
        axes: str | None = None,
        select: str | slice | None = None,
        time: str | None = None,
        periodic: tuple[bool, bool] | None = None,
    ) -> Reading:
        """Return the reading that is asked for; names of arrays are one text or a list."""
        if isinstance(select, slice):
            bounds = (select.start, select.stop, select.step)
            select = ":".join("" if one is None else str(one) for one in bounds)
        names = (_listed(inputs), _listed(outputs), _listed(parameters))
        return cls(*names, axes or None, select or None, time or None, periodic)

    @property
    def keys(self) -> dict[str, tuple[str, ...]]:
        """Return the names of arrays by role."""
        return {"input": self.inputs, "output": self.outputs, "parameters": self.parameters}

    @property
    def ranges(self) -> dict[str, slice]:
        """Return the selected part of each axis, by its letter; one without a name is of samples.

        >>> Reading(select="0:1000:2").ranges
        {'n': slice(0, 1000, 2)}
        """
        ranges = {}
        for token in (self.select or "").split(",") if self.select else ():
            name, _, part = (one.strip() for one in token.rpartition("="))
            letter = {word: one for one, word in LETTERS.items()}.get(name or "sample", name)
            is_range = re.fullmatch(_RANGE, part) and ":" in part
            if letter not in LETTERS or letter == "t" or not is_range:
                raise TwoscaleError(
                    "'select' takes ranges such as 0:1000 (samples), 0:1000:2, or by axis "
                    f"sample=0:1000,height=::2,width=::2, got '{self.select}'"
                )
            ranges[letter] = _slice(part)
        return ranges

    @property
    def times(self) -> tuple[str, str] | None:
        """Return which times are inputs and which are outputs; `->` may replace the `/`."""
        if not self.time:
            return None
        steps = rf"{_RANGE}(?:,{_RANGE})*"
        text = self.time.replace("->", "/")
        sides = re.fullmatch(rf"\s*({steps})?\s*/\s*({steps})\s*", text)
        if sides is None:
            raise TwoscaleError(
                "'time' says which times are inputs and which are outputs: 0/-1 (from the first "
                f"to the last), 0:10/10:20 (ten times each, as channels), got '{self.time}'"
            )
        return sides[1] or "", sides[2]

    def times_of(self, role: str, name: str, steps: int) -> list[int]:
        """Return the times of an array with some of them, counted from 0, or say what is wrong."""
        if self.times is None:
            halves = f"0:{steps // 2}/{steps // 2}:{steps} (halves, as channels)"
            ways = f"0/-1 (from the first to the last) or {halves}"
            asked = "say which are inputs and which are outputs, such as"
            raise TwoscaleError(f"'{name}' has {steps} times: {asked} {ways}")
        text = self.times[role == "output"]
        if not text:
            known = f"'{name}' has {steps} times and is an input"
            raise TwoscaleError(f"{known}: say which with 'time', such as 0/-1")
        times: list[int] = []
        for token in text.split(","):
            some = list(range(steps)[_slice(token)]) if ":" in token else [int(token)]
            if not some or not -steps <= some[0] < steps:
                known = f"'{name}' has the times 0 to {steps - 1}"
                raise TwoscaleError(f"{known}: {token} is none of them")
            times += [time % steps for time in some]
        return times

    def for_other(self, given: Reading) -> Reading:
        """Return the reading of another file of the same layout; what is `given` comes first.

        A selection of samples is one of the first file only. The orders of axes are `known`: they
        hold where the other file does not name its axes.
        """
        kept = [
            f"{axis}={part.start or ''}:{part.stop or ''}:{part.step or 1}"
            for axis, part in self.ranges.items()
            if axis != "n"
        ]
        base = replace(self, axes=None, select=",".join(kept) or None)
        return replace(base, **{name: value for name, value in vars(given).items() if value})

    def as_dict(self) -> dict[str, Any]:
        """Return the reading as JSON would hold it, for `from_dict`."""
        plain = asdict(self) | {"known": dict(self.known)}
        return {key: list(one) if isinstance(one, tuple) else one for key, one in plain.items()}

    @classmethod
    def from_dict(cls, stored: Any) -> Reading:
        """Return a stored reading, or raise a TwoscaleError."""
        if not _is_reading(stored):
            raise TwoscaleError("it has no proper record of how its files are read")
        names = {name: tuple(stored[name]) for name in _NAMES}
        periodic = stored["periodic"] and tuple(stored["periodic"])
        return cls(**(stored | names | {"periodic": periodic}))

    @classmethod
    def recorded_in(cls, described: Mapping[str, Any]) -> Reading:
        """Return how the files were read that a dataset is made of; empty if that is unknown."""
        stored = described.get("reading")
        return cls() if stored is None else cls.from_dict(stored)


def _slice(text: str) -> slice:
    return slice(*(int(one) if one else None for one in text.split(":")))


def _listed(keys: Keys) -> tuple[str, ...]:
    names = [keys] if isinstance(keys, str) else list(keys or ())
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TwoscaleError(f"an array is one channel only, got '{twice[0]}' twice")
    return tuple(names)


def _is_reading(stored: Any) -> bool:
    if not isinstance(stored, dict) or set(stored) != set(Reading.__dataclass_fields__):
        return False
    texts = (stored[name] for name in ("axes", "select", "time"))
    lists = (stored[name] for name in _NAMES)
    known, periodic = stored["known"], stored["periodic"]
    return (
        all(one is None or isinstance(one, str) for one in texts)
        and all(isinstance(one, list) and all(isinstance(key, str) for key in one) for one in lists)
        and isinstance(known, dict)
        and all(is_order(order) for order in known.values())
        and (periodic is None or (isinstance(periodic, list) and len(periodic) == 2))
    )
