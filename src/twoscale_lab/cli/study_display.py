"""What the commands of studies show."""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from twoscale.cli.display import print_json
from twoscale.cli.terminal import (
    is_quiet,
    print_answer,
    print_table,
    say,
)
from twoscale.errors import TwoscaleError
from twoscale.files import atomic_output, plain_json, write_json
from twoscale_lab.names import STUDIES
from twoscale_lab.report.results import CaseResult
from twoscale_lab.study.catalogue import asked_cells, load_study
from twoscale_lab.study.definition import Scale, Study
from twoscale_lab.study.folder import StudyFolder
from twoscale_lab.study.leaderboard.board import HEADINGS, NOTE, Standing, table_rows
from twoscale_lab.study.leaderboard.board import summary as standings_summary
from twoscale_lab.study.paper.comparison import ComparedValue, agreement, by_study
from twoscale_lab.study.planning import StudyPlan, make_plan
from twoscale_lab.study.runner import StudyOutcome
from twoscale_lab.study.worker import planned

_FEW = 10  # values that are off in the summary
_VALUES = ("study", "cell", "metric", "paper", "ours", "in sd", "verdict")
_DERIVED = "~: derived from the deviations of both values, where the paper prints none for a change"


def show_studies(studies: list[Study], scale: Scale, *, json: bool) -> None:
    """Print one row per study: its title and its number of cells."""
    counts = {study.name: len(study.at(scale).cells()) for study in studies}
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


def show_comparison(
    rows: list[ComparedValue], known: Collection[str], *, everything: bool, times: bool
) -> None:
    """Print the counts of every study and the values that are furthest off, or every value."""
    mine = [row for row in rows if row.study in known]
    off = [row for row in mine if row.verdict == "off"]
    off.sort(key=lambda row: (row.explanation is not None, -abs(row.relative_difference or 0.0)))
    if everything or times:
        print_table(_VALUES, [_value(r) for r in mine if times or r.verdict], words=3)
        say(_DERIVED)
        for row in off:
            say(f"{row.cell}, {row.metric}: {row.explanation or 'off, and not explained'}")
    elif off:
        say("Values that are off: unexplained ones first, then by relative difference")
        print_table(_VALUES, [_value(row) for row in off[:_FEW]], words=3)
        say(f"{max(0, len(off) - _FEW)} more values are off.")
        say("--all shows every value and why it is off; --csv FILE writes them to a file.")
    counted = by_study(rows)
    counts = [
        [
            study,
            *map(str, (found.match, found.off, found.unexplained, found.missing)),
            "-" if found.agreement is None else f"{found.agreement:.1%}",
        ]
        for study, found in counted.items()
        if study in known
    ]
    if counts:
        print_table(["study", "match", "off", "not explained", "missing", "agreement"], counts)
    if absent := [study for study in counted if study not in known]:
        say(f"No record: {', '.join(absent)}.")
    say(f"In all: {agreement(rows)}")


def _value(row: ComparedValue) -> list[str]:
    """Return the cells of a value under `_VALUES`."""
    return [
        row.study,
        row.cell,
        row.metric,
        _number(row.paper, row.paper_sd, "~" if row.sd_derived else "±"),
        _number(row.ours, row.ours_sd),
        "-" if row.difference_in_sd is None else f"{row.difference_in_sd:+.1f}",
        row.verdict or "-",
    ]


def show_standings(found: list[Standing]) -> None:
    """Print where we stand on the benchmarks of others, and what is uncertain about them."""
    if not found:
        say("leaderboard: no cell at the paper scale, which published errors are for")
        return
    say("Errors in %: published by others, and ours as measured")
    print_table(HEADINGS, table_rows(found), words=4)
    for one in found:
        for caveat in one.benchmark.caveats:
            say(f"{one.benchmark.name}: {caveat}")
    say(NOTE)
    say(standings_summary(found))


def show_outcomes(outcomes: Mapping[str, StudyOutcome], *, json: bool) -> None:
    """Print what came out of each study."""
    if json:
        print_json({name: _summary(outcome) for name, outcome in outcomes.items()})
        return
    for study, outcome in outcomes.items():
        _show(study, outcome)
        if is_quiet():
            print_answer(outcome.path)


def as_json(rows: list[ComparedValue], standings: list[Standing]) -> dict[str, Any]:
    """Return the rows that are judged, the times, which are not, and the leaderboard if it ran."""
    cells = [row.as_dict() for row in rows if row.verdict is not None]
    times = [row.as_dict() for row in rows if row.verdict is None]
    board = {"leaderboard": [one.as_dict() for one in standings]} if standings else {}
    return {"cells": cells, "times": times, **board}


def check_csv(file: Path, *, overwrite: bool) -> None:
    """Raise if a file must not be written; the sentences about --out would not fit here."""
    if os.path.isdir(file):
        raise TwoscaleError(f"{file} is a folder: give a file, such as {file / 'comparison.csv'}")
    if os.path.lexists(file) and not overwrite:
        raise TwoscaleError(f"{file} exists already: choose another --csv or pass --overwrite")


def write_csv(file: Path, rows: list[dict[str, Any]], *, overwrite: bool) -> None:
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


def _show(name: str, outcome: StudyOutcome) -> None:
    """Print one row per case: its seeds, errors and time."""
    gathered: dict[str, list[dict[str, Any]]] = {}
    for cell in outcome.record["cells"]:
        gathered.setdefault(cell["case"], []).append(cell)
    results = [CaseResult(case, "", tuple(cells)) for case, cells in gathered.items()]
    names = ("mre", "oracle_mre", "total")
    rows = [[one.id, str(len(one.cells)), *map(one.text, names)] for one in results]
    finished, failed = len(outcome.record["cells"]), len(outcome.record["failed"])
    say(f"{name}: {finished} cells finished, {failed} failed; record in {outcome.path}")
    print_table(["case", "seeds", "error %", "oracle %", "seconds"], rows)


def _summary(outcome: StudyOutcome) -> dict[str, Any]:
    return {
        "record": str(outcome.path),
        "ran": sum(len(group.cells) for group in outcome.plan.groups),
        "finished": len(outcome.record["cells"]),
        "failed": outcome.record["failed"],
    }


def show_plans(
    studies: list[Study], out: Path, scale: Scale, wanted: dict[str, Any], *, json: bool
) -> None:
    """Print what each study would do."""
    folder = StudyFolder(out)
    elsewhere = Counter(
        key for name in STUDIES for key in {cell.key for cell in load_study(name).at(scale).cells()}
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
        say(f"{name}: {plan_of_study['cells']} cells, {counts} with other studies")
        if missing := [data for data, there in plan_of_study["datasets"].items() if not there]:
            say(f"to be generated: {', '.join(missing)}")
        rows = [
            [case, _seeds(seeds["done"]), _seeds(seeds["pending"])]
            for case, seeds in plan_of_study["cases"].items()
        ]
        print_table(["case", "done", "pending"], rows)


def write_plan(
    studies: list[Study], out: Path, scale: Scale, wanted: dict[str, Any], file: Path
) -> None:
    """Write the unfinished cells of a study to a file, for `twoscale_lab.study.worker`."""
    if len(studies) > 1:
        raise TwoscaleError(f"a plan is of one study, got {len(studies)}: name one")
    name = studies[0].name
    (cells,) = asked_cells(studies, scale, **wanted)
    pending = make_plan(StudyFolder(out), cells).pending
    content = {
        "study": name,
        "scale": scale,
        "command": f"twoscale study run {name} --scale {scale}",
        "cells": [planned(cell) for cell in pending],
    }
    with atomic_output(file, overwrite=False) as prepared:
        write_json(prepared, plain_json(content))
    say(f"{name}: {len(pending)} unfinished cells in {file}")


def _plan(plan: StudyPlan, folder: StudyFolder, shared: int) -> dict[str, Any]:
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
