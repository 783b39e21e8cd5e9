"""The command that measures a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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


def evaluate(
    run: Annotated[Path, typer.Argument(help="A run folder.")],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DATA", help="Another dataset, or a file, with the same channels and grids."
        ),
    ] = None,
    per_sample: Annotated[
        bool, typer.Option("--per-sample", help="Add the error of each sample to the JSON.")
    ] = False,
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
    from twoscale.cli.display import say, show_metrics
    from twoscale.cli.paths import PAIRS, expect_kind
    from twoscale.data.kinds import Kind
    from twoscale.errors import TwoscaleError
    from twoscale.run import Run

    expect_kind(run, Kind.RUN)
    if data is not None:
        expect_kind(data, *PAIRS)
    if per_sample and not json:
        raise TwoscaleError("--per-sample adds arrays to the JSON: pass --json as well")
    asked = reading_of(input_keys, output_keys, parameter_keys, axes, select, time)
    opened = Run.open(run, device=device)
    other = opened.open_data(data, asked) if data else None
    metrics = opened.evaluate(other, per_sample=per_sample)
    if opened.search and not json:
        say(opened.search["explanation"][0])
    show_metrics({opened.surrogate.method: metrics}, json, f"{run} on {data or 'its test split'}")
