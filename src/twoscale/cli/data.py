"""The commands that make and check datasets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twoscale.cli import options
from twoscale.cli.names import PROBLEMS
from twoscale.errors import TwoscaleError

if TYPE_CHECKING:
    from twoscale.data import Dataset


def generate(
    problem: Annotated[
        str, typer.Argument(help=f"{', '.join(PROBLEMS)}.", autocompletion=options.one_of(PROBLEMS))
    ],
    out: options.OutDataset,
    resolution: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Nodes per side; by default the problem's own, 64 for most."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, metavar="N", help="Number of pairs.")] = 2500,
    seed: options.Seed = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="A parameter of the problem; may be repeated."
        ),
    ] = None,
    scheduler: options.Scheduler = None,
    device: options.Device = "auto",
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Sample and solve a known problem; an interrupted call continues where it stopped.

    \b
    Examples:
      twoscale generate poisson --resolution 64 --samples 2500 --out data/p64.zarr
    """
    from twoscale.cli.display import print_outcome, progress_bar
    from twoscale.cli.workers import workers_at
    from twoscale.data import generate as generate_dataset
    from twoscale.data.places import place_of
    from twoscale.methods.settings import key_values
    from twoscale.problems import make_problem
    from twoscale.surrogate.options import resolve_device, shared_device

    chosen = make_problem(problem, key_values(settings or []))
    where = resolve_device(shared_device(scheduler, device))
    with progress_bar() as progress, workers_at(scheduler) as workers:
        dataset = generate_dataset(
            chosen,
            out,
            resolution=resolution,
            samples=samples,
            seed=seed,
            device=where,
            overwrite=overwrite,
            workers=workers,
            progress=progress,
        )
    sentence = f"{problem}: {dataset.samples} pairs of {dataset.layout} in {place_of(out)}"
    content = {"problem": problem, "seed": seed, **_contents(dataset)}
    print_outcome(sentence, place_of(out), content, json=json)


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="A file or folder of arrays (npz, npy, HDF5, MAT, NetCDF, Zarr, .pt, PNG, TIFF); "
            "or two, the inputs and the outputs; or one file for each sample."
        ),
    ],
    out: options.OutDataset,
    *,
    layout: options.GridLayout,
    problem: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The equation that the pairs solve, if twoscale knows it.",
            autocompletion=options.one_of(PROBLEMS),
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Turn your own fields into a dataset: images, images with channels, or fields on a line.

    \b
    Examples:
      twoscale import pairs.npz --input a --output u --out data/mine.zarr
      twoscale import flow.h5 --input vx,vy --parameters nu --output p --out data/flow.zarr
    """
    from twoscale.cli.display import print_outcome, progress_bar
    from twoscale.cli.paths import ARRAYS, expect
    from twoscale.data import import_fields
    from twoscale.data.check import layout_findings
    from twoscale.data.places import place_of
    from twoscale.problems import get_problem

    expect(ARRAYS, *files)
    with progress_bar() as progress:
        dataset = import_fields(
            files,
            out,
            **layout.arguments(),
            problem=get_problem(problem) if problem else None,
            overwrite=overwrite,
            progress=progress,
        )
    findings = list(layout_findings(dataset))
    content = {**_contents(dataset), "findings": [vars(finding) for finding in findings]}
    sentence = f"{dataset.samples} pairs of {dataset.layout} in {place_of(out)}"
    more = [finding.text for finding in findings]
    print_outcome(sentence, place_of(out), content, *more, json=json)


def _contents(dataset: Dataset) -> dict[str, Any]:
    """Return what a dataset holds, for JSON."""
    return {"samples": dataset.samples, "fields": str(dataset.layout)}


def check(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA|RUN",
            help="A dataset, run or saved surrogate; or files and folders as for import.",
        ),
    ],
    test: Annotated[
        Path | None,
        typer.Option(help="A test set whose samples must not be in DATA.", metavar="DATA"),
    ] = None,
    *,
    layout: options.GridLayout,
    json: options.Json = False,
) -> None:
    """Read every value of data or a run, and report errors, warnings and what is fine.

    \b
    Examples:
      twoscale check pairs.npz --input a --output u
      twoscale check data/p64.zarr
      twoscale check runs/a
    """
    from twoscale.cli.display import print_findings, print_json, progress_bar
    from twoscale.cli.paths import PAIRS, SAVED, expect
    from twoscale.data import check_dataset
    from twoscale.data.direct import open_with_test
    from twoscale.data.places import place_of
    from twoscale.run.check import check_run

    path = paths[0]
    runs = SAVED if len(paths) == 1 else ()
    kind, *_ = expect((*runs, *PAIRS), *paths)
    expect(PAIRS, test)
    with progress_bar() as progress:
        if kind in runs:
            findings = check_run(path)
        else:
            dataset, other = open_with_test(options.one_or_all(paths), test, layout.reading())
            findings = check_dataset(dataset, test=other, progress=progress)
    if json:
        print_json({"findings": [vars(finding) for finding in findings]})
    else:
        print_findings(findings)
    errors = [finding.message for finding in findings if finding.level == "error"]
    if errors:
        raise TwoscaleError(f"{place_of(path)} has {len(errors)} error(s): {'; '.join(errors)}")
