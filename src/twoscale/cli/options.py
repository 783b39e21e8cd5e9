"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

OutOption = Annotated[Path, typer.Option("--out", help="Where the result goes.")]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
DeviceOption = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
MemoryOption = Annotated[
    str | None,
    typer.Option(help="Memory to use at most, such as 2GB; larger datasets stay on disk."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out.")]
ResampleOption = Annotated[
    bool,
    typer.Option(
        "--resample", help="Take fields on another grid than the training one: interpolate."
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume/--no-resume", help="Continue from checkpoints of the same command, if any."
    ),
]
