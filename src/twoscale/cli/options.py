"""Options that several commands have.

`--out` is always the place of the result. Its help says what is written there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli.completion import one_of
from twoscale.cli.names import DEVICES

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
SeedOption = Annotated[int, typer.Option(min=0, metavar="N", help="Seed of everything random.")]
DeviceOption = Annotated[
    str, typer.Option(help="auto, cpu or cuda.", autocompletion=one_of(DEVICES))
]
MemoryOption = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="Most memory to use, such as 2GB; larger datasets stay on disk."
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Share the work among processes: local:4, or a Dask scheduler such as "
        "tcp://host:8786. By default this process does it all.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out.")]
ResampleOption = Annotated[
    bool,
    typer.Option("--resample", help="Accept fields on another grid, and interpolate them."),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume/--no-resume", help="Continue from checkpoints of the same command, if any."
    ),
]
