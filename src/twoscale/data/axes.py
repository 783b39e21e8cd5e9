"""The order of axes: as users write it, as files name it, and where two readings are possible.

An order is a word of letters: n samples, t time, c channels, h height, w width; `nhwc` is the order
of images with their channels last.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from twoscale.errors import TwoscaleError
from twoscale.fields.arrays import CHANNEL_AXES, SAMPLE_AXES

LETTERS = {"n": "sample", "t": "time", "c": "channel", "h": "height", "w": "width"}
_NAMES = {
    "n": SAMPLE_AXES,
    "t": ["t", "time", "times", "step", "steps", "timestep", "time_step", "lead_time", "nt"],
    "c": CHANNEL_AXES,
    "h": ["h", "height", "y", "lat", "latitude", "row", "rows", "ny", "nlat"],
    "w": ["w", "width", "x", "lon", "longitude", "column", "columns", "col", "nx", "nlon"],
}
_BY_NAME = {name: letter for letter, names in _NAMES.items() for name in names}
THIN = 4  # nodes: a grid with so short a side is probably misread


@dataclass(frozen=True)
class AxesOrder:
    """The orders of axes that a user gives: by array, or for all arrays of so many axes."""

    by_name: Mapping[str, str] = field(default_factory=dict)
    by_rank: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> AxesOrder:
        """Return the orders in a text such as `nhwc`, `hwn,nthw`, `a=hwn,u=nhw` or in words.

        >>> AxesOrder.parse("sample,height,width,channel").by_rank
        {4: 'nhwc'}
        """
        tokens = [token.strip() for token in (text or "").split(",") if token.strip()]
        words = [_BY_NAME.get(token.lower()) for token in tokens]
        if len(tokens) > 1 and all(words):
            tokens = ["".join(word or "" for word in words)]
        by_name: dict[str, str] = {}
        by_rank: dict[int, str] = {}
        for token in tokens:
            name, _, letters = token.rpartition("=")
            _check_letters(letters.lower(), text or "")
            if name:
                by_name[name.strip()] = letters.lower()
            elif by_rank.setdefault(len(letters), letters.lower()) != letters.lower():
                raise TwoscaleError(
                    f"'axes' has two orders for arrays of {len(letters)} axes: give them by "
                    f"name, such as a={by_rank[len(letters)]},u={letters.lower()}"
                )
        return cls(by_name, by_rank)

    def of(self, name: str, rank: int) -> str | None:
        """Return the order of an array, if it is given."""
        given = self.by_name.get(name)
        if given is not None and len(given) != rank:
            raise TwoscaleError(
                f"'axes' gives '{name}' the {len(given)} axes {given}, it has {rank}"
            )
        return given or self.by_rank.get(rank)


def _check_letters(letters: str, text: str) -> None:
    known = set(letters) <= set(LETTERS) and len(set(letters)) == len(letters)
    if not known or "w" not in letters:
        meaning = ", ".join(f"{letter} {word}" for letter, word in LETTERS.items())
        raise TwoscaleError(
            f"'axes' is an order of axes such as nhw, nchw or hwn ({meaning}; w always), "
            f"or one for each array such as a=hwn,u=nhw, got '{text}'"
        )


def named_order(names: Sequence[str] | None) -> str | None:
    """Return the order of axes that have these names; None if the names do not tell.

    One axis of an unknown name is that of the samples, if no other one is.

    >>> named_order(["sim", "lat", "lon"])
    'nhw'
    """
    if not names:
        return None
    letters = [_BY_NAME.get(name.lower(), "?") for name in names]
    if letters.count("?") == 1 and "n" not in letters and len(letters) > 1:
        letters[letters.index("?")] = "n"
    if "h" in letters and "w" not in letters:  # fields on a line
        letters[letters.index("h")] = "w"
    if "?" in letters or len(set(letters)) != len(letters) or "w" not in letters:
        return None
    return "".join(letters)


Shapes = Mapping[str, tuple[int, ...]]
"""The shapes of arrays of fields, by name, whose orders of axes are to be found."""

_READINGS = (
    ("nw nhw nchw", "ntw nthw ntchw"),  # the usual one
    ("nw nhw nhwc", "nwt nhwt nthwc"),
    ("wn hwn hwcn", "wtn hwtn hwctn"),
    ("wn hwn chwn", "wtn hwtn hwctn"),
)
"""Orders of axes of all arrays of a file, without times and with times."""


def find_orders(arrays: Shapes, *, timed: bool, samples: Set[int] = frozenset()) -> dict[str, str]:
    """Return the order of axes of each array, or say which readings are possible.

    `timed`: some of them have an axis of time: those with the most axes. `samples` are the numbers
    of samples of other arrays, whose order is known.
    """
    usual, *others = _readings(arrays, timed)
    plausible = [one for one in others if len(_counts(one, arrays) | samples) == 1]
    best = max(plausible, key=lambda one: _score(one, arrays), default=None)
    if best is None or best == usual:
        return usual
    told = [_told(reading, arrays) for reading in (usual, best)]
    if len(_counts(usual, arrays) | samples) > 1:
        raise TwoscaleError(
            f"the numbers of samples must agree, which they do not with {told[0]}; if the file "
            f"holds {told[1]}, add that option"
        )
    gain = _score(best, arrays) - _score(usual, arrays)
    if gain < 0 or (gain == 0 and not timed):
        return usual
    ways = f"as {told[0]}, or as {told[1]}"
    raise TwoscaleError(f"the axes can be read in two ways: {ways}; set the 'axes' that are right")


def _readings(arrays: Shapes, timed: bool) -> list[dict[str, str]]:
    """Return the readings of all arrays, the usual one first."""
    most = max(map(len, arrays.values()), default=0)
    readings = []
    for orders in _READINGS:
        without, with_time = ({len(order): order for order in some.split()} for some in orders)
        reading = {}
        for name, shape in arrays.items():
            table = with_time if timed and len(shape) == most else without
            if len(shape) not in table:
                raise TwoscaleError(_no_order(name, shape))
            reading[name] = table[len(shape)]
        readings.append(reading)
    return readings


def _no_order(name: str, shape: tuple[int, ...]) -> str:
    advice = ""
    if len(shape) == 1:
        advice = ": scalars of each sample can be inputs, as 'parameters'"
    elif len(shape) > 4:
        advice = (
            ": of fields in three dimensions give slices, or the planes as channels; an axis of "
            "time is chosen with 'time', and named in 'axes', such as nthwc"
        )
    usual = "(samples, height, width), (samples, channels, height, width), or (samples, length)"
    return f"'{name}' must have shape {usual} for fields on a line, got {shape}{advice}"


def _counts(reading: Mapping[str, str], arrays: Shapes) -> set[int]:
    """Return the numbers of samples that the arrays have by a reading."""
    return {shape[reading[name].index("n")] for name, shape in arrays.items()}


def _score(reading: Mapping[str, str], arrays: Shapes) -> int:
    """Return how plausible a reading is: square grids are, grids with a very short side are not."""
    total = 0
    for name, shape in arrays.items():
        sides = dict(zip(reading[name], shape, strict=True))
        height, width = sides.get("h", sides["w"]), sides["w"]
        total += ("h" in sides and height == width) - 2 * (min(height, width) <= THIN)
    return total


def _told(reading: Mapping[str, str], arrays: Shapes) -> str:
    """Return a reading in words, with the option that asks for it."""
    parts = []
    for name, shape in arrays.items():
        sides = dict(zip(reading[name], shape, strict=True))
        grid = "x".join(str(sides[axis]) for axis in "hw" if axis in sides)
        with_channels = f"{sides['c']} channels of " if "c" in sides else ""
        times = f" at {sides['t']} times" if "t" in sides else ""
        parts.append(f"'{name}' {sides['n']} samples of {with_channels}{grid}{times}")
    return f"{', '.join(parts)} (axes {_option(reading)})"


def _option(reading: Mapping[str, str]) -> str:
    """Return the text of `axes` for a reading: by the number of axes where that is enough."""
    orders = sorted(set(reading.values()), key=len)
    if len({len(order) for order in orders}) == len(orders):
        return ",".join(orders)
    return ",".join(f"{name}={order}" for name, order in reading.items())


def is_order(text: object) -> bool:
    """Say whether a text is a recorded order of axes."""
    return isinstance(text, str) and re.fullmatch(f"[{''.join(LETTERS)}]+", text) is not None
