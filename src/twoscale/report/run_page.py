"""The page of one run: what was fitted, its error in words and pictures, and what to do next."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from twoscale._version import __version__
from twoscale.errors import TwoscaleWarning
from twoscale.methods.settings import setting_text
from twoscale.report import run_figures, run_numbers
from twoscale.report.display import ABSENT
from twoscale.report.page import ChartTable, NextStep, PageTable, Section, Tile, page_text
from twoscale.report.run_commands import (
    next_commands,
    python_line,
    repeat_command,
    suggested_command,
)
from twoscale.report.run_pictures import Drawings
from twoscale.report.run_record import RunRecord, fresh_run
from twoscale.report.run_words import limits_text, result_sentences, used_text
from twoscale.run.folder import Fitted
from twoscale.runtime.texts import duration_text, percent, short_duration_text
from twoscale.search.record import HEADINGS, table_rows
from twoscale.surrogate.artifact import PAGE

FOOTER = f"Made by twoscale {__version__}. The page needs no network."
"""The end of a page; a page that ends so may be replaced."""


def illustrate_run(folder: Path, fitted: Fitted) -> None:
    """Write the report of a run into its unfinished folder; a failure only gives a warning."""
    try:
        text = run_page(fresh_run(folder, fitted))
        (folder / PAGE).write_text(text, encoding="utf-8")
    except Exception as error:  # the run is worth more than its pictures
        (folder / PAGE).unlink(missing_ok=True)
        said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        warnings.warn(f"the run has no report, since {said}", TwoscaleWarning, stacklevel=2)


def run_page(run: RunRecord) -> str:
    """Return the page of one run."""
    drawn = Drawings(run)
    first = drawn.first()
    sections = list(run_sections(run, drawn))
    return page_text(
        title=f"{run.name}: {run.title}",
        best=result_sentences(run),
        first=first,
        summary=[one for one in (limits_text(run), used_text(run)) if one],
        tiles=tiles(run),
        sections=sections,
        footer=FOOTER,
    )


def run_sections(run: RunRecord, drawn: Drawings) -> Iterator[Section]:
    """Yield the sections of a run's page; those that do not apply are left out."""
    yield next_section(run)
    yield from drawn.sections()
    if run.search is not None:
        yield _search_section(run.search, drawn)
    yield _training_section(run, drawn)
    yield origin_section(run)


def tiles(run: RunRecord) -> list[Tile]:
    """Return the numbers at the top of the page."""
    metrics = run.metrics
    errors = {
        f"mean relative error, {run.judged_by}": run.error,
        "MRE: all of them together": metrics["mre"],
    }
    found = [
        Tile(ABSENT if error is None else percent(error), words) for words, error in errors.items()
    ]
    oracle = metrics["oracle_mean_relative_l2"]
    if oracle is not None:
        found.append(Tile(percent(oracle), "oracle: mean error of the representation alone"))
    found.append(Tile(duration_text(run.fit_seconds), "search" if run.search else "fit"))
    if run.prediction_seconds is not None:
        time = short_duration_text(run.prediction_seconds)
        found.append(Tile(time, "per prediction, in a batch"))
    if metrics["output_code"] is not None:
        code = f"{metrics['input_code']} → {metrics['output_code']}"
        found.append(Tile(code, "numbers in the codes"))
    return found


def next_section(run: RunRecord) -> Section:
    """Return what to do next: what would help, then how the run is used."""
    steps = [NextStep(one.text, suggested_command(run, one)) for one in run.suggestions[:4]]
    steps += [NextStep(f"{words}.", command) for words, command in next_commands(run)[1:2]]
    steps.append(NextStep("Use it in Python.", python_line(run)))
    return Section("What to do next", steps=steps, anchor="next")


def _search_section(search: Mapping[str, Any], drawn: Drawings) -> Section:
    pictures = drawn.picture(
        "candidates",
        "Candidates of the search",
        "Validation error against the time of each candidate. The ring marks the chosen one. The "
        "dashed line joins candidates that no other one beats in both. Numbers are table rows.",
        lambda: run_figures.candidates(search),
        ChartTable(HEADINGS, table_rows(search)),
    )
    return Section(
        "The search",
        " ".join(search["explanation"][:1]),
        steps=[NextStep(sentence) for sentence in search["explanation"][1:]],
        pictures=pictures,
        folded=[
            PageTable(
                HEADINGS,
                table_rows(search),
                title=f"All {len(search['trials'])} candidates",
                note="Relative errors of the validation fields in %; * marks the chosen one.",
                words=(0, 1),
            )
        ],
        remarks=drawn.take_remarks(),
        anchor=f"{drawn.prefix}search",
    )


def _training_section(run: RunRecord, drawn: Drawings) -> Section:
    timings: Mapping[str, float] = run.metrics["timings"]
    pictures = drawn.picture(
        "timings",
        "Time by stage",
        "Seconds of the fit and of predicting all test samples."
        + (" The fit is that of the chosen candidate." if run.search else ""),
        lambda: run_figures.timing_bar(timings),
        run_numbers.timing_numbers(timings),
    )
    if run.history:
        pictures += drawn.picture(
            "losses",
            "Loss during training",
            "Training and validation loss of each epoch. If validation stays above training, more "
            "samples help. If both still fall at the end, longer training helps.",
            lambda: run_figures.losses(run.history),
            run_numbers.loss_numbers(run.history),
        )
    return Section(
        "Training and time",
        pictures=pictures,
        remarks=drawn.take_remarks(),
        anchor=f"{drawn.prefix}training",
    )


def _test_data(run: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield the separate dataset that a run is tested on, if there is one."""
    if "test_dataset" in run.config:
        test = run.config["test_dataset"]
        yield "Test data", f"{Path(test['path']).name}, {test['identity']}"


def origin_section(run: RunRecord, prefix: str = "") -> Section:
    """Return how the run was made: data, device, settings, and the command that repeats it."""
    environment = run.environment
    facts = [
        ("Data", f"{run.dataset_path.name}, {run.config['dataset']['identity']}"),
        *_test_data(run),
        ("Training samples", str(run.config["training_samples"])),
        ("Seed", str(run.surrogate.seed)),
        ("Device", f"{environment.get('device')}, {environment.get('device_name')}"),
        ("Threads", str(environment.get("threads"))),
        (
            "twoscale",
            f"{environment.get('twoscale')}, commit {environment.get('commit') or ABSENT}",
        ),
        ("torch", str(environment.get("torch"))),
        ("Configuration", str(run.config["hash"])),
    ]
    settings = [[name, setting_text(one)] for name, one in run.surrogate.settings.items()]
    return Section(
        "How it was made",
        facts=facts,
        steps=[NextStep("This command makes the same run again.", repeat_command(run))],
        folded=[PageTable(["setting", "value"], settings, title="All settings", words=(0, 1))],
        anchor=f"{prefix}origin",
    )
