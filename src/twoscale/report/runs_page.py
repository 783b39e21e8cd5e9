"""The page of several runs: their comparison first, then each run folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from twoscale.errors import TwoscaleError
from twoscale.report.display import METRIC_COLUMNS, METRIC_NOTE, display, number
from twoscale.report.field_pictures import side_by_side
from twoscale.report.method_looks import colour
from twoscale.report.page import PageTable, Section, TableCell, page_text
from twoscale.report.picture import Drawing, chart
from twoscale.report.run_charts import error_histogram
from twoscale.report.run_page import (
    FOOTER,
    limits_text,
    median_charts,
    result_sentences,
    run_sections,
    used_text,
)
from twoscale.report.run_record import RunRecord
from twoscale.report.run_samples import SamplePrediction, predict_sample
from twoscale.report.time_charts import error_time
from twoscale.run.pairs import loaded_pairs
from twoscale.runtime.texts import duration_text, percent

_LARGEST = 3_300_000  # letters of all pictures: the page stays below 4 MB
_SIDE_BY_SIDE = 6  # runs that are drawn beside each other
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def runs_page(runs: Mapping[str, RunRecord]) -> str:
    """Return the page of several runs by their names."""
    first = Section("", charts=[error_time(runs)]).drawn()
    sections = [_comparison(runs).drawn()]
    room = _LARGEST - _size(first) - _size(sections[0])
    for place, (name, run) in enumerate(runs.items(), 1):
        sections.append(_run_section(name, run, f"run-{place}-", room))
        room -= _size(sections[-1])
    return page_text(
        title=f"{len(runs)} runs compared",
        best=best_sentences(runs),
        first=next(iter(first.pictures), None),
        summary=[*first.remarks, *_summary(runs)],
        sections=sections,
        footer=FOOTER,
    )


def distinct_names(folders: Sequence[Path]) -> list[str]:
    """Return names of folders that tell them apart: their own, with their parents if need be."""
    for parts in (1, 2):
        names = ["/".join(folder.resolve().parts[-parts:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def _size(section: Section) -> int:
    return sum(len(picture.source) for picture in section.pictures)


def best_sentences(runs: Mapping[str, RunRecord]) -> list[str]:
    """Return which run has the smallest error, and which one was the fastest to fit."""
    errors = {name: run.error for name, run in runs.items() if run.error is not None}
    if not errors:
        return ["No run has a finite error."]
    best = min(errors, key=errors.__getitem__)
    fastest = min(runs, key=lambda name: runs[name].fit_seconds)
    times = {name: duration_text(run.fit_seconds) for name, run in runs.items()}
    sentences = [
        f"{best} has the smallest mean error: {percent(errors[best])} ({runs[best].title}, "
        f"{times[best]})."
    ]
    if fastest != best and fastest in errors:
        sentences.append(
            f"{fastest} is the fastest fit: {times[fastest]}, with {percent(errors[fastest])}."
        )
    return sentences


def _summary(runs: Mapping[str, RunRecord]) -> Iterator[str]:
    data = {run.judging_identity for run in runs.values()}
    if len(data) > 1:
        yield f"The errors are of samples of {len(data)} different datasets."
    errors = [run.error for run in runs.values() if run.error is not None]
    same = len({(run.surrogate.method, str(run.surrogate.settings)) for run in runs.values()}) == 1
    if same and len(errors) > 1:
        yield (
            f"All runs have the same method and settings. Over their seeds the error is "
            f"{percent(float(np.mean(errors)))} ± {percent(float(np.std(errors, ddof=1)))} (mean "
            "and standard deviation)."
        )


def _comparison(runs: Mapping[str, RunRecord]) -> Section:
    charts, remarks = [single_errors(runs)], []
    some = dict(list(runs.items())[:_SIDE_BY_SIDE])
    try:
        charts.append(same_sample(predict_shared_sample(some, _shared_sample(some))))
        if len(some) < len(runs):
            remarks.append(f"The first {len(some)} runs are drawn.")
    except TwoscaleError as error:
        remarks.append(f"No sample is shown side by side: {error}.")
    return Section(
        "Comparison", tables=[runs_table(runs)], charts=charts, remarks=remarks, anchor="comparison"
    )


@chart("Errors of single samples")
def single_errors(runs: Mapping[str, RunRecord]) -> Drawing:
    """How many samples have which error, each run on its own test samples."""
    errors = {name: run.samples.errors for name, run in runs.items() if run.samples is not None}
    methods = {name: run.surrogate.method for name, run in runs.items()}
    colours = {name: colour(method) for name, method in methods.items()}
    if len(set(methods.values())) < len(methods):
        colours = {name: _COLOURS[k % len(_COLOURS)] for k, name in enumerate(methods)}
    return Drawing(error_histogram(errors, colours))


@chart("The same sample, predicted by each run", vector=False)
def same_sample(samples: Mapping[str, SamplePrediction]) -> Drawing:
    """A test sample of all runs shown. Errors share one scale."""
    number_ = next(iter(samples.values())).number
    return Drawing(side_by_side(samples), more=f"This is sample {number_} of the data.")


def runs_table(runs: Mapping[str, RunRecord]) -> PageTable:
    """Return the metrics of runs, one a row, with the times of the fit and of a prediction."""
    keys = [key for key in METRIC_COLUMNS if key != "total"]
    header = ["run", "method", *(METRIC_COLUMNS[key] for key in keys), "fit s", "ms/prediction"]
    rows: list[list[TableCell | str]] = []
    for name, run in runs.items():
        flat = {**run.metrics, **run.metrics.get("common_seams", {})}
        values = [(flat.get(key), display(key).kind) for key in keys]
        seconds = run.prediction_seconds
        values += [(run.fit_seconds, "seconds"), (1e3 * seconds if seconds else None, "short")]
        rows.append([name, run.title, *(TableCell(number(one, kind), one) for one, kind in values)])
    return PageTable(header, rows, note=METRIC_NOTE, words=(0, 1))


def _shared_sample(runs: Mapping[str, RunRecord]) -> int:
    """Return the common test sample closest to the first run's median error; raise without one."""
    first = next(iter(runs.values()))
    if first.samples is None:
        raise TwoscaleError("their predictions were not looked at")
    if len({run.judging_identity for run in runs.values()}) > 1:
        raise TwoscaleError("they were tested on different data")
    shared = set.intersection(*(set(run.test_samples) for run in runs.values()))
    apart = np.abs(first.samples.errors - np.median(first.samples.finite))
    distances = dict(zip(map(int, first.samples.numbers), apart, strict=True))
    common = [sample for sample in distances if sample in shared]
    if not common:
        raise TwoscaleError("they have no test sample in common, since their seeds differ")
    return min(common, key=distances.__getitem__)


def predict_shared_sample(
    runs: Mapping[str, RunRecord], sample: int
) -> dict[str, SamplePrediction]:
    """Return a test sample of all runs, as each predicts it."""
    dataset = next(iter(runs.values())).judging_dataset()
    inputs, truth = loaded_pairs(dataset, [sample]).tensors()
    return {
        name: predict_sample(run.surrogate, inputs, truth, sample) for name, run in runs.items()
    }


def _run_section(name: str, run: RunRecord, prefix: str, room: int) -> Section:
    """Return a run, folded, with as many of its pictures as there is room for on the page."""
    sections = list(run_sections(run))
    charts = [*median_charts(run), *(chart for one in sections for chart in one.charts)]
    words = [("Limits", limits_text(run)), ("Samples", used_text(run))]
    origin = sections[-1]
    section = Section(
        name,
        " ".join(result_sentences(run)),
        facts=[*((title, text) for title, text in words if text), *origin.facts],
        steps=[*sections[0].steps, *origin.steps],
        folded=origin.folded,
        fold=True,
        anchor=f"{prefix}run",
        charts=charts,
    )
    return section.drawn(prefix, room, f"twoscale report {name} shows all")
