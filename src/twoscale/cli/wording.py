"""Messages of the library in the words of the command line."""

from __future__ import annotations

import re

_OPTIONS = {
    "axes": "--axes",
    "data": "--data",
    "device": "--device",
    "host": "--host",
    "inputs": "--input",
    "memory": "--memory",
    "method": "--method",
    "outputs": "--output",
    "overwrite": "--overwrite",
    "parameters": "--parameters",
    "periodic": "--periodic",
    "port": "--port",
    "resample": "--resample",
    "seed": "--seed",
    "select": "--select",
    "time": "--time",
    "warm_up": "--warm-up",
}
"""The option of each Python argument that messages name."""

_NAMED = re.compile(rf"\b({'|'.join(_OPTIONS)})=(?:True|\.\.\.|'([^']*)')")


def as_options(message: str) -> str:
    """Return a message with options in place of Python arguments.

    The library names an argument in one of three ways: `memory=...`, `overwrite=True` or
    `device='cpu'`.

    >>> as_options("choose another path, or pass overwrite=True")
    'choose another path, or pass --overwrite'
    >>> as_options("use device='cpu'")
    'use --device cpu'
    """
    return _NAMED.sub(lambda found: f"{_OPTIONS[found[1]]} {found[2] or ''}".rstrip(), message)
