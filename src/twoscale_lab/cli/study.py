"""The commands of studies: list them, run them, compare them with the paper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from twoscale.cli import options
from twoscale.cli.application import Application
from twoscale.cli.names import METHODS
from twoscale.errors import TwoscaleError
from twoscale_lab.names import STUDIES, Scale

ScaleOption = Annotated[Scale, typer.Option(help="paper, or small for a few minutes on two cores.")]

study_app = Application(
    help="Repeat the paper's experiments, and two beyond it.",
)


@study_app.add
def list_(scale: ScaleOption = "paper", json: options.Json = False) -> None:
    """List the studies, their questions and their numbers of cells.

    \b
    Examples:
      twoscale study list
    """
    from twoscale_lab.cli.study_display import show_studies
    from twoscale_lab.study.catalogue import load_study

    show_studies([load_study(name) for name in STUDIES], scale, json=json)


@study_app.add
def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="Names of studies, all, or your own YAML files.",
            autocompletion=options.one_of((*STUDIES, "all")),
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Where the results go: a study folder. Finished cells in it are kept.",
        ),
    ],
    scale: ScaleOption = "paper",
    seeds: Annotated[
        str | None,
        typer.Option(help="Seeds to run, such as 0-4 or 0,3; by default the study's own."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD",
            help="Run this method only, or cases such as 'poisson-128 *'; may be repeated.",
            autocompletion=options.one_of(METHODS),
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what is finished and what would run.")
    ] = False,
    plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Run nothing: write the unfinished cells to a file, for `python -m "
            "twoscale_lab.study.worker` on a machine without pydantic, PyYAML and Zarr.",
        ),
    ] = None,
    scheduler: options.Scheduler = None,
    device: options.Device = "auto",
    resume: options.Resume = True,
    json: options.Json = False,
) -> None:
    """Run the unfinished cells of studies; an interrupted study continues where it stopped.

    \b
    Examples:
      twoscale study run headline --out studies --scale small
    """
    from twoscale.cli.display import progress_bar
    from twoscale.cli.paths import expect
    from twoscale.cli.workers import workers_at
    from twoscale.data.kinds import ContentKind
    from twoscale.methods.settings import parse_seeds
    from twoscale_lab.cli.study_display import show_outcomes, show_plans, write_plan
    from twoscale_lab.study.catalogue import load_study
    from twoscale_lab.study.runner import run_studies

    for name in names:
        if name not in STUDIES:
            expect((ContentKind.YAML,), Path(name))
    studies = [load_study(one) for one in (STUDIES if names == ["all"] else names)]
    wanted: dict[str, Any] = {
        "seeds": None if seeds is None else parse_seeds(seeds),
        "only": tuple(only or ()),
    }
    if plan is not None:
        write_plan(studies, out, scale, wanted, plan)
        return
    if dry_run:
        show_plans(studies, out, scale, wanted, json=json)
        return
    label = studies[0].name if len(studies) == 1 else "studies"
    with progress_bar(label, over="cells") as progress, workers_at(scheduler) as workers:
        outcomes = run_studies(
            studies,
            out,
            scale=scale,
            device=device,
            resume=resume,
            workers=workers,
            progress=progress,
            **wanted,
        )
    show_outcomes(outcomes, json=json)
    failed = [entry for outcome in outcomes.values() for entry in outcome.failed]
    if failed:
        first = failed[0]
        raise TwoscaleError(
            f"{len(failed)} cells failed, the first of them {first['case']} seed {first['seed']}: "
            f"{first['error']} (see {out / 'logs' / first['key']}.log; run again to retry)"
        )


@study_app.add
def merge(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Study folders, or folders of records."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="The study folder that gets all records; it may have some."
        ),
    ],
    json: options.Json = False,
) -> None:
    """Put records of the same studies together, such as those of several machines.

    \b
    Examples:
      twoscale study merge first second --out studies
    """
    from twoscale.cli.display import print_json
    from twoscale.cli.paths import FOLDERS, RECORDS, expect
    from twoscale.cli.terminal import say
    from twoscale_lab.study.folder import merge_folders

    expect(RECORDS, *folders, or_else=FOLDERS)
    written = merge_folders(folders, out)
    if json:
        print_json({"records": [str(file) for file in written]})
        return
    for file in written:
        say(f"merged: {file}")


@study_app.add
def compare(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A study folder, or a folder of records.")
    ],
    everything: Annotated[
        bool, typer.Option("--all", help="Show every value and why it is off, not only a summary.")
    ] = False,
    times: Annotated[
        bool, typer.Option("--times", help="Show every value, and wall-clock times too.")
    ] = False,
    table: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write everything to a CSV file.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the CSV file.")] = False,
    json: options.Json = False,
) -> None:
    """Compare the records of studies with the paper's numbers: a summary, or every value.

    The study leaderboard is compared with errors that others published.

    \b
    Examples:
      twoscale study compare studies --json
    """
    from twoscale.cli.display import print_json
    from twoscale.cli.paths import FOLDERS, RECORDS, expect
    from twoscale.cli.terminal import say
    from twoscale_lab.cli.study_display import (
        as_json,
        check_csv,
        show_comparison,
        show_standings,
        write_csv,
    )
    from twoscale_lab.study.folder import read_records
    from twoscale_lab.study.leaderboard.board import STUDY, measured_standings
    from twoscale_lab.study.paper.comparison import compare as compare_records

    expect(RECORDS, folder, or_else=FOLDERS)
    if table is not None:
        check_csv(table, overwrite=overwrite)
    records = read_records(folder)
    if not records:
        raise TwoscaleError(f"{folder} has no records of studies: run one with --out {folder}")
    rows, standings = compare_records(records), measured_standings(records)
    if table is not None:
        write_csv(table, [row.as_dict() for row in rows], overwrite=overwrite)
    if json:
        print_json(as_json(rows, standings))
        return
    known = {record["study"] for record in records}
    if table is not None:
        say(f"All of it, times included: {table}")
    if STUDY in known:
        show_standings(standings)
    if known == {STUDY}:
        return
    show_comparison(rows, known, everything=everything, times=times)


@study_app.add
def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A study folder, or a folder of records.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the result goes: a new page; report.html in the folder by default. "
            "Figures go to a folder beside it.",
        ),
    ] = None,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write a page on studies: tables, figures, and the comparison with the paper.

    The page needs no other file and no network.

    \b
    Examples:
      twoscale study report studies
    """
    from twoscale.cli.display import print_outcome
    from twoscale.cli.paths import FOLDERS, RECORDS, expect
    from twoscale_lab.report.study_page import write_report

    expect(RECORDS, folder, or_else=FOLDERS)
    page = write_report(folder, out, overwrite=overwrite)
    figures = page.parent / "figures"
    sentence = f"{page}, and every figure as PNG and SVG in {figures}"
    print_outcome(sentence, page, {"figures": str(figures)}, json=json)
