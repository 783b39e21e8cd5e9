"""The command that measures a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli.display import show_metrics
from twoscale.cli.options import DeviceOption, JsonOption
from twoscale.cli.reading import (
    AxesOption,
    InputKeys,
    OutputKeys,
    ParameterKeys,
    SelectOption,
    TimeOption,
    reading_of,
)
from twoscale.run import Run


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Another dataset, or a file, with the same channels and grids."),
    ] = None,
    input_keys: InputKeys = None,
    output_keys: OutputKeys = None,
    parameter_keys: ParameterKeys = None,
    axes: AxesOption = None,
    select: SelectOption = None,
    time: TimeOption = None,
    device: DeviceOption = "auto",
    json: JsonOption = False,
) -> None:
    """Measure a run on its test split, or on all samples of another dataset or file."""
    opened = Run.open(run, device=device)
    asked = reading_of(input_keys, output_keys, parameter_keys, axes, select, time)
    metrics = opened.evaluate(opened.open_data(data, asked) if data else None)
    if opened.search and not json:
        print(opened.search["explanation"][0])
    show_metrics({opened.surrogate.method: metrics}, json, f"{run} on {data or 'its test split'}")
