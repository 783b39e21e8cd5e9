"""Options that several commands have, and the words that a shell completes them with.

`--out` is always the place of the result. Its help says what is written there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twoscale.cli.names import settings
from twoscale.errors import TwoscaleError

if TYPE_CHECKING:
    from twoscale.data import Reading

Completion = Callable[[str], list[str]]


def one_of(words: Sequence[str]) -> Completion:
    """Return the completion to one of some words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def complete_setting(incomplete: str) -> list[str]:
    """Return the settings `key=` that begin with a text; nothing is offered after the `=`."""
    key = incomplete.replace("-", "_")
    return [f"{name}=" for name in settings() if f"{name}=".startswith(key) and "=" not in key]


SavedRun = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder or saved surrogate.")]
OtherData = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DATA",
        help="Another dataset, or a file, with the same channels, in place of the run's own.",
    ),
]
OutDataset = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DATA",
        help="Where the result goes: a new dataset, which is a folder such as data/mine.zarr, or a "
        "place such as s3://bucket/mine.zarr.",
    ),
]
OutRun = Annotated[
    Path, typer.Option("--out", metavar="RUN", help="Where the result goes: a new run folder.")
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")]
Device = Annotated[
    str,
    typer.Option(
        metavar="DEVICE", help="auto, cpu or cuda.", autocompletion=one_of(("auto", "cpu", "cuda"))
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Most memory to use, such as 2GB; larger datasets stay on disk."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Share the work among processes: local:4, or a Dask scheduler such as "
        "tcp://host:8786. By default this process does it all.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out.")]
Resample = Annotated[
    bool,
    typer.Option("--resample", help="Accept fields on another grid, and interpolate them."),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume/--no-resume", help="Continue from checkpoints of the same command, if any."
    ),
]

PERIODIC = {
    "none": (False, False),
    "rows": (True, False),
    "columns": (False, True),
    "both": (True, True),
}
_KEYS = "KEY[,KEY...]"


@dataclass(frozen=True)
class InputLayout:
    """How input fields are read from a file."""

    input_keys: Annotated[
        str | None,
        typer.Option(
            "--input", metavar=_KEYS, help="Names of the input arrays; several are channels."
        ),
    ] = None
    axes: Annotated[
        str | None,
        typer.Option(
            metavar="ORDER",
            help="Order of axes by letters: n samples, t time, c channels, h height, w width. nhwc "
            "is for all arrays of four axes; nhw,nthw for those of three and four; a=hwn,u=nhw by "
            "name.",
        ),
    ] = None
    select: Annotated[
        str | None,
        typer.Option(
            metavar="RANGE",
            help="Part of the samples, such as 0:1000 or 0:1000:2; or of axes by name: "
            "sample=0:1000,height=::2,width=::2.",
        ),
    ] = None
    time: Annotated[
        str | None,
        typer.Option(
            metavar="IN/OUT",
            help="Which times are inputs and which are outputs. 0/-1: from the first to the last; "
            "0:10/10:20: from ten to the next ten. Several times are channels.",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Return what these options ask for, as arguments of the library."""
        own = {"axes": self.axes, "select": self.select, "time": self.time}
        return {"inputs": keys(self.input_keys), **own}

    def reading(self, **others: Any) -> Reading:
        """Return the reading that these options ask for, with other arguments of the library."""
        from twoscale.data import Reading

        return Reading.of(**self.arguments() | others)


@dataclass(frozen=True)
class PairLayout(InputLayout):
    """How inputs and outputs are read from files."""

    output_keys: Annotated[
        str | None,
        typer.Option(
            "--output", metavar=_KEYS, help="Names of the output arrays; several are channels."
        ),
    ] = None
    parameter_keys: Annotated[
        str | None,
        typer.Option(
            "--parameters",
            metavar=_KEYS,
            help="Names of scalars of each sample, with the input fields or instead of them.",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        own = {"outputs": keys(self.output_keys), "parameters": keys(self.parameter_keys)}
        return super().arguments() | own


@dataclass(frozen=True)
class GridLayout(PairLayout):
    """How inputs and outputs are read from files, and which of their axes wrap."""

    periodic: Annotated[
        str | None,
        typer.Option(
            metavar="AXES",
            autocompletion=one_of(tuple(PERIODIC)),
            help=f"Axes that wrap: {', '.join(PERIODIC)}; none by default, or as the file says.",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        if self.periodic is None:
            return super().arguments()
        if self.periodic not in PERIODIC:
            raise TwoscaleError(
                f"--periodic is one of {', '.join(PERIODIC)}, got '{self.periodic}'"
            )
        return super().arguments() | {"periodic": PERIODIC[self.periodic]}


def keys(text: str | None) -> list[str] | None:
    """Return the names in a text such as `a,b`."""
    if text is None:
        return None
    names = [key.strip() for key in text.split(",")]
    if not all(names):
        raise TwoscaleError(f"names of arrays are given like a or a,b, got '{text}'")
    return names


def one_or_all(paths: Sequence[Path]) -> Path | Sequence[Path]:
    """Return one path alone, which may be a dataset, or several files."""
    return paths[0] if len(paths) == 1 else paths
