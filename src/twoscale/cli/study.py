"""The commands of studies: list them, run them, compare them with the paper."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from twoscale.cli.display import print_json, print_table, study_bars
from twoscale.cli.options import DeviceOption, JsonOption, OutOption, ResumeOption
from twoscale.errors import TwoscaleError
from twoscale.files import atomic_output
from twoscale.methods.settings import parse_seeds
from twoscale.study.catalogue import asked_cells, load_study, study_names
from twoscale.study.definition import SCALES, Scale, Study
from twoscale.study.folder import StudyFolder, read_records
from twoscale.study.paper.comparison import Row, agreement, by_study
from twoscale.study.paper.comparison import compare as compare_records
from twoscale.study.planning import Plan, make_plan
from twoscale.study.quantities import values_by_seed
from twoscale.study.runner import Outcome, run_studies
from twoscale.study.statistics import spread

study_app = typer.Typer(
    help="Repeat the paper's experiments, and two beyond it.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

ScaleOption = Annotated[str, typer.Option(help="paper, or small for two cores and few minutes.")]


@study_app.command("list", epilog="Example: twoscale study list")
def list_(scale: ScaleOption = "paper", json: JsonOption = False) -> None:
    """List the studies, their questions and their numbers of cells."""
    studies = [load_study(name) for name in study_names()]
    counts = {study.name: len(study.at(_scale(scale)).cells()) for study in studies}
    if json:
        listed = [
            {
                "name": study.name,
                "title": study.title,
                "question": study.question,
                "cases": len(study.rows()),
                "cells": counts[study.name],
            }
            for study in studies
        ]
        print_json({"studies": listed})
        return
    rows = [[study.name, study.title, str(counts[study.name])] for study in studies]
    print_table(["study", "title", "cells"], rows, words=2)


@study_app.command(epilog="Example: twoscale study run headline --out studies --scale small")
def run(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="Studies, all, or YAML files of yours."),
    ],
    out: OutOption,
    scale: ScaleOption = "paper",
    seeds: Annotated[
        str | None, typer.Option(help="Instead of the study's own, such as 0-4 or 0,3.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METHOD",
            help="Run this method only, or cases such as 'poisson-128 *'; may be repeated.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what is done and what would run.")
    ] = False,
    device: DeviceOption = "auto",
    resume: ResumeOption = True,
    json: JsonOption = False,
) -> None:
    """Run the unfinished cells of studies; an interrupted study continues where it stopped."""
    studies = [load_study(one) for one in (study_names() if names == ["all"] else names)]
    wanted: dict[str, Any] = {
        "seeds": None if seeds is None else parse_seeds(seeds),
        "only": tuple(only or ()),
    }
    if dry_run:
        _show_plans(studies, out, _scale(scale), wanted, json)
        return
    with study_bars(studies[0].name if len(studies) == 1 else "studies") as progress:
        outcomes = run_studies(
            studies,
            out,
            scale=_scale(scale),
            device=device,
            resume=resume,
            progress=progress,
            **wanted,
        )
    if json:
        print_json({name: _summary(outcome) for name, outcome in outcomes.items()})
    else:
        for study_name, outcome in outcomes.items():
            _show(study_name, outcome)
    failed = [entry for outcome in outcomes.values() for entry in outcome.failed]
    if failed:
        first = failed[0]
        raise TwoscaleError(
            f"{len(failed)} cells failed, the first of them {first['case']} seed {first['seed']}: "
            f"{first['error']} (see {out / 'logs' / first['key']}.log; run again to retry)"
        )


@study_app.command(epilog="Example: twoscale study compare studies --json")
def compare(
    folder: Annotated[Path, typer.Argument(help="The --out of studies, or a folder of records.")],
    times: Annotated[bool, typer.Option("--times", help="Show wall-clock times too.")] = False,
    table: Annotated[
        Path | None, typer.Option("--csv", metavar="FILE", help="Write everything to a CSV file.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the CSV file.")] = False,
    json: JsonOption = False,
) -> None:
    """Compare the records of studies with the paper's numbers."""
    if table is not None:
        _check_csv(table, overwrite=overwrite)
    records = read_records(folder)
    if not records:
        raise TwoscaleError(f"{folder} has no records of studies: run one with --out {folder}")
    rows = compare_records(records)
    if table is not None:
        _write_csv(table, [row.as_dict() for row in rows], overwrite=overwrite)
    if json:
        print_json(_contents(rows))
        return
    known = {record["study"] for record in records}
    shown = [row for row in rows if row.study in known and (times or row.verdict is not None)]
    print_table(
        ["study", "cell", "metric", "paper", "ours", "in sd", "verdict"],
        [
            [
                row.study,
                row.cell,
                row.metric,
                _number(row.paper, row.paper_sd, "~" if row.sd_derived else "±"),
                _number(row.ours, row.ours_sd),
                "-" if row.difference_in_sd is None else f"{row.difference_in_sd:+.1f}",
                row.verdict or "-",
            ]
            for row in shown
        ],
        words=3,
    )
    for row in shown:
        if row.verdict == "off":
            print(f"{row.cell}, {row.metric}: {row.explanation or 'off, and not explained'}")
    for study, counts in by_study(rows).items():
        if study not in known:
            print(f"{study}: no record, {counts.missing} values missing")
            continue
        judged = "" if counts.agreement is None else f", {counts.agreement:.1%} of those judged"
        print(
            f"{study}: {counts.match} match{judged}, {counts.off} off "
            f"({counts.unexplained} of them unexplained), {counts.missing} missing"
        )
    if table is not None:
        print(f"All of it, times included: {table}")
    print("~: derived from the deviations of both values, where the paper prints none for a change")
    print(f"In all: {agreement(rows)}")


def _contents(rows: list[Row]) -> dict[str, Any]:
    """Return the rows that are judged, and apart from them the times, which are not."""
    cells = [row.as_dict() for row in rows if row.verdict is not None]
    times = [row.as_dict() for row in rows if row.verdict is None]
    return {"cells": cells, "times": times}


def _check_csv(file: Path, *, overwrite: bool) -> None:
    """Raise if a file must not be written; the sentences about --out would not fit here."""
    if os.path.isdir(file):
        raise TwoscaleError(f"{file} is a folder: give a file, such as {file / 'comparison.csv'}")
    if os.path.lexists(file) and not overwrite:
        raise TwoscaleError(f"{file} exists already: choose another --csv or pass --overwrite")


def _write_csv(file: Path, rows: list[dict[str, Any]], *, overwrite: bool) -> None:
    with (
        atomic_output(file, overwrite=overwrite) as prepared,
        prepared.open("w", newline="", encoding="utf-8") as stream,
    ):
        writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def _number(value: float | None, deviation: float | None, mark: str = "±") -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" + ("" if deviation is None else f" {mark} {deviation:.2g}")


def _scale(text: str) -> Scale:
    for scale in SCALES:
        if scale == text:
            return scale
    raise TwoscaleError(f"the scale is one of {', '.join(SCALES)}, got '{text}'")


def _show(name: str, outcome: Outcome) -> None:
    """Print one row per case: its seeds, errors and time."""
    gathered: dict[str, list[dict[str, Any]]] = {}
    for cell in outcome.record["cells"]:
        gathered.setdefault(cell["case"], []).append(cell)
    rows = [
        [
            case,
            str(len(found)),
            _spread(100 * value for value in values_by_seed(found, "mre").values()),
            _spread(100 * value for value in values_by_seed(found, "oracle_mre").values()),
            _spread(values_by_seed(found, "total").values()),
        ]
        for case, found in gathered.items()
    ]
    finished, failed = len(outcome.record["cells"]), len(outcome.record["failed"])
    print(f"{name}: {finished} cells finished, {failed} failed; record in {outcome.path}")
    print_table(["case", "seeds", "error %", "oracle %", "seconds"], rows)


def _spread(values: Iterable[float]) -> str:
    known = list(values)
    if not known:
        return "-"
    found = spread(known)
    return _number(found.mean, found.deviation)


def _summary(outcome: Outcome) -> dict[str, Any]:
    return {
        "record": str(outcome.path),
        "ran": sum(len(group.cells) for group in outcome.plan.groups),
        "finished": len(outcome.record["cells"]),
        "failed": outcome.record["failed"],
    }


def _show_plans(
    studies: list[Study], out: Path, scale: Scale, wanted: dict[str, Any], json: bool
) -> None:
    """Print what each study would do."""
    folder = StudyFolder(out)
    elsewhere = Counter(
        key
        for name in study_names()
        for key in {cell.key for cell in load_study(name).at(scale).cells()}
    )
    plans = {}
    for study, cells in zip(studies, asked_cells(studies, scale, **wanted), strict=True):
        plan = make_plan(folder, cells, others=study.at(scale).cells())
        shared = [cell for cell in plan.cells if elsewhere[cell.key] > 1]
        plans[study.name] = _plan(plan, folder, len(shared))
    if json:
        print_json(plans)
        return
    for name, plan_of_study in plans.items():
        counts = ", ".join(f"{plan_of_study[key]} {key}" for key in ("done", "pending", "shared"))
        print(f"{name}: {plan_of_study['cells']} cells, {counts} with other studies")
        if missing := [data for data, there in plan_of_study["datasets"].items() if not there]:
            print(f"to be generated: {', '.join(missing)}")
        rows = [
            [case, _seeds(seeds["done"]), _seeds(seeds["pending"])]
            for case, seeds in plan_of_study["cases"].items()
        ]
        print_table(["case", "done", "pending"], rows)


def _plan(plan: Plan, folder: StudyFolder, shared: int) -> dict[str, Any]:
    done = {cell.key for cell in plan.done}
    cases: dict[str, dict[str, list[int]]] = {}
    for cell in plan.cells:
        seeds = cases.setdefault(cell.case.id, {"done": [], "pending": []})
        seeds["done" if cell.key in done else "pending"].append(cell.seed)
    return {
        "cells": len(plan.cells),
        "done": len(plan.done),
        "pending": len(plan.pending),
        "shared": shared,
        "datasets": {cell.data.name: folder.data(cell.data).exists() for cell in plan.cells},
        "cases": cases,
    }


def _seeds(seeds: list[int]) -> str:
    return ",".join(map(str, seeds)) or "-"
