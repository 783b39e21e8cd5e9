"""Options that say how files of fields are read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twoscale.cli.completion import one_of
from twoscale.errors import TwoscaleError

if TYPE_CHECKING:
    from twoscale.data import Reading

PERIODIC = {
    "none": (False, False),
    "rows": (True, False),
    "columns": (False, True),
    "both": (True, True),
}
_KEYS = "KEY[,KEY...]"

InputKeys = Annotated[
    str | None,
    typer.Option("--input", metavar=_KEYS, help="Names of the input arrays; several are channels."),
]
OutputKeys = Annotated[
    str | None,
    typer.Option(
        "--output", metavar=_KEYS, help="Names of the output arrays; several are channels."
    ),
]
ParameterKeys = Annotated[
    str | None,
    typer.Option(
        "--parameters",
        metavar=_KEYS,
        help="Names of scalars of each sample, with the input fields or instead of them.",
    ),
]
AxesOption = Annotated[
    str | None,
    typer.Option(
        "--axes",
        metavar="ORDER",
        help="Order of axes by letters: n samples, t time, c channels, h height, w width. nhwc is "
        "for all arrays of four axes; nhw,nthw for those of three and four; a=hwn,u=nhw by name.",
    ),
]
SelectOption = Annotated[
    str | None,
    typer.Option(
        "--select",
        metavar="RANGE",
        help="Part of the samples, such as 0:1000 or 0:1000:2; or of axes by name: "
        "sample=0:1000,height=::2,width=::2.",
    ),
]
TimeOption = Annotated[
    str | None,
    typer.Option(
        "--time",
        metavar="IN/OUT",
        help="Which times are inputs and which are outputs. 0/-1: from the first to the last; "
        "0:10/10:20: from ten to the next ten. Several times are channels.",
    ),
]
PeriodicOption = Annotated[
    str | None,
    typer.Option(
        "--periodic",
        metavar="AXES",
        autocompletion=one_of(tuple(PERIODIC)),
        help=f"Axes that wrap: {', '.join(PERIODIC)}; none by default, or as the file says.",
    ),
]


def reading_options(
    inputs: str | None,
    outputs: str | None,
    parameters: str | None,
    axes: str | None,
    select: str | None,
    time: str | None,
    periodic: str | None = None,
) -> dict[str, Any]:
    """Return what these options ask for, as arguments of the library."""
    return {
        "inputs": _keys(inputs),
        "outputs": _keys(outputs),
        "parameters": _keys(parameters),
        "axes": axes,
        "select": select,
        "time": time,
        "periodic": _wrapping(periodic),
    }


def reading_of(*options: str | None) -> Reading:
    """Return the reading that these options ask for, in the order of `reading_options`."""
    from twoscale.data import Reading

    return Reading.of(**reading_options(*options))


def one_or_all(paths: Sequence[Path]) -> Path | Sequence[Path]:
    """Return one path alone, which may be a dataset, or several files."""
    return paths[0] if len(paths) == 1 else paths


def _keys(text: str | None) -> list[str] | None:
    """Return the names in a text such as `a,b`."""
    if text is None:
        return None
    keys = [key.strip() for key in text.split(",")]
    if not all(keys):
        raise TwoscaleError(f"names of arrays are given like a or a,b, got '{text}'")
    return keys


def _wrapping(name: str | None) -> tuple[bool, bool] | None:
    """Return whether rows and columns wrap."""
    if name is None:
        return None
    if name not in PERIODIC:
        raise TwoscaleError(f"--periodic is one of {', '.join(PERIODIC)}, got '{name}'")
    return PERIODIC[name]
