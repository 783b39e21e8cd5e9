"""Settings as text: as they are given on the command line, and as they are shown."""

from __future__ import annotations

from typing import Any

from twoscale.errors import TwoscaleError

_ARGUMENTS = {
    **dict.fromkeys(("seed", "device", "method"), "it is an option of its own"),
    "problem": "it comes from the dataset",
}


def parse_assignments(assignments: list[str]) -> dict[str, str]:
    """Return the settings of `key=value` texts."""
    pairs = {}
    for name, value in key_values(assignments).items():
        key = name.replace("-", "_")
        if key in _ARGUMENTS or not key.isidentifier() or key == "self":
            place = f": {_ARGUMENTS[key]}" if key in _ARGUMENTS else ""
            raise TwoscaleError(f"'{key}' is not a setting{place}")
        pairs[key] = value
    return pairs


def key_values(texts: list[str]) -> dict[str, str]:
    """Return the pairs of `key=value` texts."""
    pairs = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise TwoscaleError(f"a setting is written key=value, got '{text}'")
        pairs[key] = value
    return pairs


def parse_seeds(text: str) -> list[int]:
    """Return the seeds that a text such as `0-4` or `0,3,7` names, each once."""
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        ends = (first, last) if dash else (first, first)
        if not all(end.isdecimal() and len(end) < 19 for end in ends) or int(ends[0]) > int(
            ends[1]
        ):
            raise TwoscaleError(f"seeds are given like 0-4 or 0,3,7, got '{text}'")
        if int(ends[1]) - int(ends[0]) >= 1000:
            raise TwoscaleError(f"'{text}' names more than a thousand seeds")
        seeds += range(int(ends[0]), int(ends[1]) + 1)
    return list(dict.fromkeys(seeds))


def setting_text(value: Any) -> str:
    """Return a setting's value as it is written in a case's name.

    >>> setting_text((4, 2)), setting_text(None)
    ('4x2', 'none')
    """
    if isinstance(value, list | tuple):
        return "x".join(map(str, value))
    return "none" if value is None else str(value)
