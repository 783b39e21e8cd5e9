"""The command that turns runs, or records of studies, into a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from twoscale.cli.display import print_json, progress_bar
from twoscale.cli.options import DeviceOption, JsonOption, OverwriteOption
from twoscale.data import Dataset
from twoscale.errors import TwoscaleError
from twoscale.report.run_commands import suggested_command
from twoscale.report.run_record import RunRecord
from twoscale.report.run_report import find_runs, write_run_report
from twoscale.report.study_page import write_report


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR|RUN...",
            help="Runs, folders of runs such as several seeds, or one folder of studies.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="The page to write, instead of report.html in the folder."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Another dataset to show runs on, instead of their test samples."),
    ] = None,
    device: DeviceOption = "auto",
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write one page: of runs, their errors in pictures and what to do next; of studies, tables.

    The page needs no other file and no network. Figures of studies are also written to a folder
    beside it.
    """
    found = {path: [] if (path / "records").is_dir() else find_runs(path) for path in paths}
    runs = list(dict.fromkeys(run for some in found.values() for run in some))
    if not runs and len(paths) == 1:
        _report_study(paths[0], out, data, overwrite=overwrite, json=json)
        return
    for path, some in found.items():
        if not some:
            raise TwoscaleError(
                f"{path} holds no run: several paths are runs, or folders of runs; a folder of "
                "studies is given alone"
            )
    with progress_bar("report") as progress:
        written = write_run_report(
            runs,
            out,
            data=Dataset(data) if data else None,
            device=device,
            overwrite=overwrite,
            progress=progress,
        )
    if json:
        content = {name: _numbers(run) for name, run in written.runs.items()}
        print_json({"page": str(written.page), "runs": content})
        return
    for name, run in written.runs.items():
        for suggestion in run.suggestions[:1]:
            print(f"{name}: {suggestion.text}")
    print(written.page)


def _numbers(run: RunRecord) -> dict[str, Any]:
    """Return the numbers of a run's page that are worth reading by a program."""
    samples = run.samples
    some = None if samples is None else samples.finite
    return {
        "path": str(run.path),
        "method": run.surrogate.method,
        "mre": run.error,
        "oracle_mre": run.metrics["oracle_mre"],
        "training_mre": run.metrics.get("training_mre"),
        "fit_seconds": run.fit_seconds,
        "prediction_seconds": run.prediction_seconds,
        "shares": run.findings.shares if run.findings else None,
        "samples": 0 if samples is None else len(samples.errors),
        "worst_sample": None if samples is None or samples.worst is None else samples.worst.number,
        "worst_error": None if some is None or not len(some) else float(some.max()),
        "suggestions": [
            {"text": one.text, "command": suggested_command(run, one)} for one in run.suggestions
        ],
    }


def _report_study(
    folder: Path, out: Path | None, data: Path | None, *, overwrite: bool, json: bool
) -> None:
    if data is not None:
        raise TwoscaleError(f"--data is for reports of runs, and {folder} is none: drop it")
    page = write_report(folder, out, overwrite=overwrite)
    if json:
        print_json({"page": str(page), "figures": str(page.parent / "figures")})
        return
    print(f"{page}, and every figure as PNG and SVG in {page.parent / 'figures'}")
