"""The commands that make and check datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale import problems
from twoscale.cli.display import print_findings, print_json, progress_bar
from twoscale.cli.options import DeviceOption, JsonOption, OutOption, OverwriteOption, SeedOption
from twoscale.cli.reading import (
    AxesOption,
    InputKeys,
    OutputKeys,
    ParameterKeys,
    PeriodicOption,
    SelectOption,
    TimeOption,
    reading_options,
)
from twoscale.data import Dataset, check_dataset, import_fields
from twoscale.data import generate as generate_dataset
from twoscale.errors import TwoscaleError
from twoscale.problems import PROBLEMS, get_problem
from twoscale.run.check import check_run, is_run
from twoscale.surrogate.options import resolve_device


def generate(
    problem: Annotated[str, typer.Argument(help=" or ".join(PROBLEMS))],
    out: OutOption,
    resolution: Annotated[int, typer.Option(min=1, help="Nodes per side.")] = 64,
    samples: Annotated[int, typer.Option(min=1, help="Number of pairs.")] = 2500,
    seed: SeedOption = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value: a parameter of the problem.")
    ] = None,
    device: DeviceOption = "auto",
    overwrite: OverwriteOption = False,
) -> None:
    """Sample and solve a known problem; an interrupted call continues where it stopped."""
    chosen = problems.make_problem(problem, _assignments(settings or []))
    where = resolve_device(device)
    with progress_bar() as progress:
        dataset = generate_dataset(
            chosen,
            out,
            resolution=resolution,
            samples=samples,
            seed=seed,
            device=where,
            overwrite=overwrite,
            progress=progress,
        )
    print(f"{problem}: {dataset.samples} pairs of {dataset.layout} in {out}")


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A file or folder of arrays (npz, npy, HDF5, MAT, NetCDF, Zarr, .pt, PNG, TIFF); "
            "the input's and the output's file; or files of one sample each."
        ),
    ],
    out: OutOption,
    input_keys: InputKeys = None,
    output_keys: OutputKeys = None,
    parameter_keys: ParameterKeys = None,
    axes: AxesOption = None,
    select: SelectOption = None,
    time: TimeOption = None,
    periodic: PeriodicOption = None,
    problem: Annotated[
        str | None, typer.Option(help="Equation the pairs solve, if it is a known one.")
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Turn your own fields into a dataset: images, images with channels, or fields on a line."""
    asked = (input_keys, output_keys, parameter_keys, axes, select, time, periodic)
    options = reading_options(*asked)
    with progress_bar() as progress:
        dataset = import_fields(
            files,
            out,
            **options,
            problem=get_problem(problem) if problem else None,
            overwrite=overwrite,
            progress=progress,
        )
    print(f"{dataset.samples} pairs of {dataset.layout} in {out}")


def _assignments(texts: list[str]) -> dict[str, str]:
    """Return the parameters of a problem that are given as `key=value`; keys may have dots."""
    found = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise TwoscaleError(f"a parameter is set by key=value, got '{text}'")
        found[key] = value
    return found


def check(
    path: Annotated[
        Path, typer.Argument(metavar="DATA|RUN", help="A dataset, run or saved surrogate.")
    ],
    json: JsonOption = False,
) -> None:
    """Read every value of a dataset or run, and report errors, warnings and what is fine."""
    with progress_bar() as progress:
        findings = (
            check_run(path) if is_run(path) else check_dataset(Dataset(path), progress=progress)
        )
    if json:
        print_json({"findings": [vars(finding) for finding in findings]})
    else:
        print_findings([(finding.level, finding.message) for finding in findings])
    errors = [finding.message for finding in findings if finding.level == "error"]
    if errors:
        raise TwoscaleError(f"{path} has {len(errors)} error(s): {'; '.join(errors)}")
