"""The commands that make and check datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale import problems
from twoscale.cli.display import print_findings, print_json, progress_bar
from twoscale.cli.options import DeviceOption, JsonOption, OutOption, OverwriteOption, SeedOption
from twoscale.data import Dataset, check_dataset, import_fields
from twoscale.data import generate as generate_dataset
from twoscale.data.check import layout_findings
from twoscale.errors import TwoscaleError
from twoscale.problems import PROBLEMS, get_problem
from twoscale.run.check import check_run, is_run
from twoscale.surrogate.options import resolve_device

_PERIODIC = {
    "none": (False, False),
    "rows": (True, False),
    "columns": (False, True),
    "both": (True, True),
}


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
    files: Annotated[list[Path], typer.Argument(help="One npz, HDF5 or MAT file; or npy files.")],
    out: OutOption,
    input_keys: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="KEY[,KEY...]",
            help="Keys of the input arrays; several are channels.",
        ),
    ] = None,
    output_keys: Annotated[
        str | None,
        typer.Option(
            "--output",
            metavar="KEY[,KEY...]",
            help="Keys of the output arrays; several are channels.",
        ),
    ] = None,
    parameter_keys: Annotated[
        str | None,
        typer.Option(
            "--parameters",
            metavar="KEY[,KEY...]",
            help="Keys of scalars of each sample, beside the input fields or instead of them.",
        ),
    ] = None,
    periodic: Annotated[
        str | None,
        typer.Option(help=f"Axes that wrap: {', '.join(_PERIODIC)}; none by default."),
    ] = None,
    problem: Annotated[
        str | None, typer.Option(help="Equation the pairs solve, if it is a known one.")
    ] = None,
    overwrite: OverwriteOption = False,
) -> None:
    """Turn your own fields into a dataset: images, images with channels, or fields on a line."""
    with progress_bar() as progress:
        dataset = import_fields(
            files,
            out,
            inputs=_keys(input_keys),
            outputs=_keys(output_keys),
            parameters=_keys(parameter_keys),
            periodic=_axes(periodic),
            problem=get_problem(problem) if problem else None,
            overwrite=overwrite,
            progress=progress,
        )
    print(f"{dataset.samples} pairs of {dataset.layout} in {out}")
    for finding in layout_findings(dataset):
        print(finding.text)


def _assignments(texts: list[str]) -> dict[str, str]:
    """Return the parameters of a problem that are given as `key=value`; keys may have dots."""
    found = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise TwoscaleError(f"a parameter is set by key=value, got '{text}'")
        found[key] = value
    return found


def _keys(text: str | None) -> list[str] | None:
    """Return the names in a text such as `a,b`."""
    if text is None:
        return None
    keys = [key.strip() for key in text.split(",")]
    if not all(keys):
        raise TwoscaleError(f"names of arrays are given like a or a,b, got '{text}'")
    return keys


def _axes(name: str | None) -> tuple[bool, bool] | None:
    """Return whether rows and columns wrap."""
    if name is None:
        return None
    if name not in _PERIODIC:
        raise TwoscaleError(f"--periodic is one of {', '.join(_PERIODIC)}, got '{name}'")
    return _PERIODIC[name]


def check(
    path: Annotated[
        Path, typer.Argument(metavar="DATA|RUN", help="A dataset, run or saved surrogate.")
    ],
    test: Annotated[
        Path | None,
        typer.Option(help="A test set whose samples must not be in DATA.", metavar="DATA"),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Read every value of a dataset or run, and report errors, warnings and what is fine."""
    other = Dataset(test) if test else None
    with progress_bar() as progress:
        findings = (
            check_run(path)
            if is_run(path)
            else check_dataset(Dataset(path), test=other, progress=progress)
        )
    if json:
        print_json({"findings": [vars(finding) for finding in findings]})
    else:
        print_findings([(finding.level, finding.text) for finding in findings])
    errors = [finding.message for finding in findings if finding.level == "error"]
    if errors:
        raise TwoscaleError(f"{path} has {len(errors)} error(s): {'; '.join(errors)}")
