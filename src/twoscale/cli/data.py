"""The commands that make datasets and look at them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli.display import print_findings, print_json, progress_bar
from twoscale.cli.options import DeviceOption, JsonOption, OutOption, OverwriteOption, SeedOption
from twoscale.data import Dataset, check_dataset, import_fields
from twoscale.data import generate as generate_dataset
from twoscale.errors import TwoscaleError
from twoscale.problems import PROBLEMS, get_problem
from twoscale.run.check import check_run, is_run
from twoscale.surrogate.arguments import resolve_device


def generate(
    problem: Annotated[str, typer.Argument(help=" or ".join(PROBLEMS))],
    out: OutOption,
    resolution: Annotated[int, typer.Option(min=8, help="Nodes per side.")] = 64,
    samples: Annotated[int, typer.Option(min=1, help="Number of pairs.")] = 2500,
    seed: SeedOption = 0,
    device: DeviceOption = "auto",
    overwrite: OverwriteOption = False,
) -> None:
    """Sample and solve a known problem; an interrupted call continues where it stopped."""
    chosen = resolve_device(device)
    with progress_bar() as progress:
        dataset = generate_dataset(
            get_problem(problem),
            out,
            resolution=resolution,
            samples=samples,
            seed=seed,
            device=chosen,
            overwrite=overwrite,
            progress=progress,
        )
    print(f"{dataset.samples} pairs of {dataset.grid} {problem} fields in {out}")


def import_(
    files: Annotated[list[Path], typer.Argument(help="One npz, HDF5 or MAT file; or two npy.")],
    out: OutOption,
    input_key: Annotated[str | None, typer.Option("--input", help="Name of the inputs.")] = None,
    output_key: Annotated[str | None, typer.Option("--output", help="Name of the outputs.")] = None,
    problem: Annotated[
        str | None, typer.Option(help="Equation the pairs solve, if it is a known one.")
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Turn your own pairs of fields into a dataset."""
    with progress_bar() as progress:
        dataset = import_fields(
            files,
            out,
            input_key=input_key,
            output_key=output_key,
            problem=get_problem(problem) if problem else None,
            overwrite=overwrite,
            progress=progress,
        )
    print(f"{dataset.samples} pairs of {dataset.grid} fields in {out}")


def check(
    path: Annotated[
        Path, typer.Argument(metavar="DATA|RUN", help="A dataset, run or saved surrogate.")
    ],
    json: JsonOption = False,
) -> None:
    """Read every value of a dataset or run and tell what is wrong, odd or fine."""
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
