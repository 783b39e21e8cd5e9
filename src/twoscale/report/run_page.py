"""The page of one run: what was fitted, its error in words and pictures, and what to do next."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from twoscale._version import __version__
from twoscale.errors import TwoscaleWarning
from twoscale.methods.settings import setting_text
from twoscale.report import run_charts
from twoscale.report.display import ABSENT, METRIC_NOTE, metric_cells, metric_header
from twoscale.report.page import PageTable, Section, Tile, page_text
from twoscale.report.picture import PicturePlan
from twoscale.report.run_commands import (
    next_commands,
    python_line,
    repeat_command,
    suggested_command,
)
from twoscale.report.run_record import RunRecord, fresh_run
from twoscale.report.run_samples import RunSamples
from twoscale.report.time_charts import candidates
from twoscale.report.trust_charts import trust_charts
from twoscale.report.trust_words import break_even_text, trust_text
from twoscale.run.folder import Fitted
from twoscale.runtime.texts import duration_text, percent, short_duration_text
from twoscale.search.advice import shares_text
from twoscale.search.trials import HEADINGS, table_rows
from twoscale.surrogate.artifact import PAGE

FOOTER = f"Made by twoscale {__version__}. The page needs no network."


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
    first = Section("", charts=median_charts(run)).drawn()
    return page_text(
        title=f"{run.name}: {run.title}",
        best=result_sentences(run),
        first=next(iter(first.pictures), None),
        summary=[*first.remarks, *filter(None, (limits_text(run), used_text(run)))],
        tiles=_tiles(run),
        sections=[section.drawn() for section in run_sections(run)],
        footer=FOOTER,
    )


def median_charts(run: RunRecord) -> list[PicturePlan]:
    """Return the picture of the median sample, with which a page begins, in a list."""
    sample = None if run.samples is None else run.samples.median
    if sample is None:
        return []
    return [run_charts.sample_chart(run, "median", sample, columns=4)]


def run_sections(run: RunRecord) -> Iterator[Section]:
    """Yield the sections of a run, which are not drawn yet; what does not apply is left out."""
    yield _next_section(run)
    if run.samples is not None and run.samples.best is not None:
        yield from _error_sections(run, run.samples)
    if run.search is not None:
        explanation, rows = run.search["explanation"], table_rows(run.search)
        note = "Relative errors of the validation fields in %; * marks the chosen one."
        title = f"All {len(run.search['trials'])} candidates"
        yield Section(
            "The search",
            " ".join(explanation[:1]),
            steps=[(sentence, "") for sentence in explanation[1:]],
            charts=[candidates(run.search)],
            folded=[PageTable(HEADINGS, rows, title, note, words=(0, 1))],
            anchor="search",
        )
    charts = [run_charts.timings(run)]
    charts += [run_charts.losses(run.history)] if run.history else []
    yield Section("Training and time", charts=charts, anchor="training")
    yield _origin_section(run)


def _error_sections(run: RunRecord, samples: RunSamples) -> Iterator[Section]:
    """Yield the sections on errors: samples, channels, places, scales, seams, trust."""
    assert samples.best is not None
    assert samples.worst is not None
    yield Section(
        "Best and worst sample",
        "Does the worst input look unusual, or does the error sit in one place?",
        charts=[
            run_charts.sample_chart(run, "best", samples.best),
            run_charts.sample_chart(run, "worst", samples.worst),
        ],
        anchor="samples",
    )
    charts = [run_charts.histogram(run, samples)]
    if findings := run.findings:
        charts.append(run_charts.shares(findings.shares))
    rows = [[run.title, *metric_cells(run.metrics)]]
    if channels := run.metrics.get("channels"):
        charts.append(run_charts.channels(channels))
        rows += [[f"channel {name}", *metric_cells(one)] for name, one in channels.items()]
    table = PageTable(metric_header(), rows, note=METRIC_NOTE)
    yield Section("How large the error is", tables=[table], charts=charts, anchor="errors")
    charts = [run_charts.error_map(run, samples), run_charts.spectra(run, samples)]
    yield Section("Where the error is", charts=charts, anchor="places")
    if samples.jumps:
        charts = [run_charts.seams(samples.jumps)]
        yield Section("Seams", _seam_text(samples.seam_ratio), charts=charts, anchor="seams")
    if samples.trust is not None:
        texts = (trust_text(run.metrics), break_even_text(run.metrics))
        charts = list(trust_charts(samples.numbers, samples.trust))
        lead = " ".join(filter(None, texts))
        yield Section("How far to trust it", lead, charts=charts, anchor="trust")


def _seam_text(ratio: float | None) -> str:
    lead = "Patches meet at borders. A jump of the error there is a seam."
    if ratio is None:
        return lead
    times = f"{ratio:.2g} times as large" if abs(ratio - 1) > 0.15 else "about as large"
    return f"{lead} Jumps in the slope of the error are {times} there as inside patches."


def _tiles(run: RunRecord) -> list[Tile]:
    """Return the numbers at the top of the page."""
    metrics = run.metrics
    errors = {
        f"mean relative error, {run.judged_by}": run.error,
        "MRE: all of them together": metrics["mre"],
    }
    tiles = [
        Tile(ABSENT if error is None else percent(error), words) for words, error in errors.items()
    ]
    oracle = metrics["oracle_mean_relative_l2"]
    if oracle is not None:
        tiles.append(Tile(percent(oracle), "oracle: mean error of the representation alone"))
    tiles.append(Tile(duration_text(run.fit_seconds), "search" if run.search else "fit"))
    if run.prediction_seconds is not None:
        time = short_duration_text(run.prediction_seconds)
        tiles.append(Tile(time, "per prediction, in a batch"))
    if metrics["output_code"] is not None:
        code = f"{metrics['input_code']} → {metrics['output_code']}"
        tiles.append(Tile(code, "numbers in the codes"))
    return tiles


def _next_section(run: RunRecord) -> Section:
    """Return what to do next: what would help, then how the run is used."""
    steps = [(one.text, suggested_command(run, one)) for one in run.suggestions[:4]]
    steps += [next_commands(run)[1], ("Use it in Python.", python_line(run))]
    return Section("What to do next", steps=steps, anchor="next")


def _origin_section(run: RunRecord) -> Section:
    """Return how the run was made: data, device, settings, and the command that repeats it."""
    environment, config = run.environment, run.config
    facts = [("Data", f"{run.dataset_path.name}, {config['dataset']['identity']}")]
    if test := config.get("test_dataset"):
        facts.append(("Test data", f"{Path(test['path']).name}, {test['identity']}"))
    commit = environment.get("commit") or ABSENT
    facts += [
        ("Training samples", str(config["training_samples"])),
        ("Seed", str(run.surrogate.seed)),
        ("Device", f"{environment.get('device')}, {environment.get('device_name')}"),
        ("Threads", str(environment.get("threads"))),
        ("twoscale", f"{environment.get('twoscale')}, commit {commit}"),
        ("torch", str(environment.get("torch"))),
        ("Configuration", str(config["hash"])),
    ]
    known = sorted(run.surrogate.settings.items())
    settings = [[name, setting_text(value)] for name, value in known]
    return Section(
        "How it was made",
        facts=facts,
        steps=[("This command makes the same run again.", repeat_command(run))],
        folded=[PageTable(["setting", "value"], settings, "All settings", words=(0, 1))],
        anchor="origin",
    )


def result_sentences(run: RunRecord) -> list[str]:
    """Return what was fitted on what, how well, and in which time."""
    inputs, outputs = run.surrogate.input_space_, run.surrogate.output_space_
    seconds = duration_text(run.fit_seconds)
    time = f"A search of {seconds} chose it" if run.search else f"The fit took {seconds}"
    if run.prediction_seconds is not None:
        time += f", and a prediction takes {short_duration_text(run.prediction_seconds)}"
    return [
        f"{run.title} was fitted on {run.config['training_samples']} samples of "
        f"{run.dataset_path.name} ({inputs.contents} to {outputs.contents}).",
        f"Its mean relative L2 error on {run.metrics.get('samples')} {run.judged_by} is "
        f"{percent(run.error)}; that of all of them together (MRE) is "
        f"{percent(run.metrics['mre'])}.",
        f"{time}.",
    ]


def limits_text(run: RunRecord) -> str:
    """Return what limits the error: the representation, the predictor or the data."""
    found = run.findings
    if found is None:
        return ""
    text = shares_text(found.shares)
    if found.training_error is not None:
        text = f"The error on training samples is {percent(found.training_error)}. {text}"
    if found.oracle is not None:
        text = f"The representation alone (oracle) has {percent(found.oracle)}. {text}"
    return text


def used_text(run: RunRecord) -> str:
    """Return how many samples the pictures show, and the range of their errors."""
    samples = run.samples
    if samples is None or not len(samples.finite):
        return ""
    used, tested = len(samples.errors), samples.tested
    of = f"all {used}" if used == tested else f"the first {used} of {tested}"
    low, middle, high = map(percent, np.quantile(samples.finite, (0.0, 0.5, 1.0)))
    return (
        f"Pictures show {of} samples. Their errors range from {low} to {high}; the median is "
        f"{middle}."
    )
