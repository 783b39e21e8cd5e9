"""The page of several runs: their comparison first, then each run folded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from twoscale.errors import TwoscaleError
from twoscale.report import run_fields, run_figures
from twoscale.report.display import METRIC_COLUMNS, METRIC_NOTE, display, number
from twoscale.report.figures import channel_names
from twoscale.report.method_looks import colour
from twoscale.report.page import ChartTable, PageTable, Picture, Section, TableCell, page_text
from twoscale.report.run_page import FOOTER, next_section, origin_section
from twoscale.report.run_pictures import Drawings
from twoscale.report.run_record import RunRecord
from twoscale.report.run_samples import Shown, show_sample
from twoscale.report.run_words import limits_text, result_sentences, used_text
from twoscale.run.pairs import loaded_pair
from twoscale.runtime.texts import duration_text, percent

_LARGEST = 3_300_000  # letters of all pictures: the page stays below 4 MB
_SIDE_BY_SIDE = 6  # runs that are drawn beside each other


def runs_page(runs: Mapping[str, RunRecord]) -> str:
    """Return the page of several runs by their names."""
    drawn = {
        name: Drawings(run, f"run-{place}-") for place, (name, run) in enumerate(runs.items(), 1)
    }
    compared = Drawings(next(iter(runs.values())))
    first = _scatter(runs, compared)
    sections = [_comparison(runs, compared)]
    room = _LARGEST - sum(_size(picture) for picture in (*first, *sections[0].pictures))
    for name, run in runs.items():
        section = _run_section(name, run, drawn[name], room)
        room -= sum(_size(picture) for picture in section.pictures)
        sections.append(section)
    return page_text(
        title=f"{len(runs)} runs compared",
        best=_best_sentences(runs),
        first=next(iter(first), None),
        summary=list(_summary(runs)),
        sections=sections,
        footer=FOOTER,
    )


def run_names(runs: Sequence[RunRecord]) -> dict[str, RunRecord]:
    """Return the runs by names that tell them apart: folders, with their parents if need be."""
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        names = [f"{run.path.resolve().parent.name}/{run.name}" for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.path) for run in runs]
    return dict(zip(names, runs, strict=True))


def _size(picture: Picture) -> int:
    return len(picture.source)


def _best_sentences(runs: Mapping[str, RunRecord]) -> list[str]:
    known = {name: run for name, run in runs.items() if run.error is not None}
    if not known:
        return ["No run has a finite error."]
    best = min(known, key=lambda name: known[name].error or 0.0)
    fastest = min(runs, key=lambda name: runs[name].fit_seconds)
    found = [
        f"{best} has the smallest mean error: {percent(known[best].error or 0.0)} "
        f"({known[best].title}, "
        f"{duration_text(known[best].fit_seconds)})."
    ]
    if fastest != best and runs[fastest].error is not None:
        found.append(
            f"{fastest} is the fastest fit: {duration_text(runs[fastest].fit_seconds)}, with "
            f"{percent(runs[fastest].error or 0.0)}."
        )
    return found


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


def _scatter(runs: Mapping[str, RunRecord], drawn: Drawings) -> list[Picture]:
    points = {
        name: (run.fit_seconds, run.error)
        for name, run in runs.items()
        if run.error and run.fit_seconds > 0
    }
    methods = {name: run.surrogate.method for name, run in runs.items()}
    rows = [
        [name, f"{seconds:.4g}", f"{100 * error:.4g}"] for name, (seconds, error) in points.items()
    ]
    return drawn.picture(
        "error-time",
        "Error against time",
        "Error on the test samples and seconds of the fit. The dashed line joins runs that no "
        "other one beats in both.",
        lambda: run_figures.runs_scatter(points, methods) if points else None,
        ChartTable(["run", "s", "error %"], rows),
    )


def _comparison(runs: Mapping[str, RunRecord], drawn: Drawings) -> Section:
    looked = {name: run.samples for name, run in runs.items() if run.samples is not None}
    colours = dict(zip(runs, _colours(runs), strict=True))
    pictures = drawn.picture(
        "histograms",
        "Errors of single samples",
        "How many samples have which error, each run on its own test samples.",
        lambda: run_figures.histogram({k: one.errors for k, one in looked.items()}, colours),
    )
    try:
        shown, remark = _same_sample(runs)
    except TwoscaleError as error:
        shown, remark = {}, f"No sample is shown side by side: {error}."
    names = channel_names(next(iter(runs.values())).surrogate.output_space_)
    if shown:
        number_ = next(iter(shown.values())).number
        pictures += drawn.picture(
            "side-by-side",
            "The same sample, predicted by each run",
            f"Sample {number_}, which is a test sample of all runs shown. Errors share one scale.",
            lambda: run_fields.side_by_side(shown, names[0] if names else ""),
            vector=False,
        )
    return Section(
        "Comparison",
        tables=[_table(runs)],
        pictures=pictures,
        remarks=[*([remark] if remark else []), *drawn.take_remarks()],
        anchor="comparison",
    )


def _colours(runs: Mapping[str, RunRecord]) -> Iterator[str]:
    """Yield a colour for each run: its method's, or one of its own where methods repeat."""
    own = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
    methods = [run.surrogate.method for run in runs.values()]
    for place, method in enumerate(methods):
        yield colour(method) if len(set(methods)) == len(methods) else own[place % len(own)]


def _table(runs: Mapping[str, RunRecord]) -> PageTable:
    keys = [key for key in METRIC_COLUMNS if key != "total"]
    header = ["run", "method", *(METRIC_COLUMNS[key] for key in keys), "fit s", "ms/prediction"]
    rows = []
    for name, run in runs.items():
        flat = {**run.metrics, **run.metrics.get("common_seams", {})}
        cells: list[TableCell | str] = [name, run.title]
        values = ((flat.get(key), display(key).kind) for key in keys)
        cells += [TableCell(number(value, kind), value) for value, kind in values]
        seconds, each = run.fit_seconds, run.prediction_seconds
        cells.append(TableCell(number(seconds, "seconds"), seconds))
        cells.append(TableCell(number(1e3 * each if each else None, "short"), each))
        rows.append(cells)
    return PageTable(header, rows, note=METRIC_NOTE, words=(0, 1))


def _same_sample(runs: Mapping[str, RunRecord]) -> tuple[dict[str, Shown], str]:
    """Return one test sample that runs have in common, as each predicts it; or why there is none.

    It is the one closest to the first run's median error.
    """
    some = dict(list(runs.items())[:_SIDE_BY_SIDE])
    left = f" The first {len(some)} runs are drawn." if len(some) < len(runs) else ""
    first = next(iter(some.values()))
    if any(run.samples is None for run in some.values()):
        return {}, ""
    if len({run.judging_identity for run in some.values()}) > 1:
        return {}, "The runs were tested on different data, so no sample is shown side by side."
    shared = set.intersection(*(set(run.test_samples) for run in some.values()))
    assert first.samples is not None
    numbers = first.samples.numbers
    known = [place for place, one in enumerate(numbers) if int(one) in shared]
    if not known:
        return {}, "The runs have no test sample in common, since their seeds differ."
    middle = float(np.median(first.samples.finite))
    place = min(known, key=lambda k: abs(float(first.samples.errors[k]) - middle))  # type: ignore
    chosen = int(numbers[place])
    pair = loaded_pair(first.judging_dataset(), [chosen])
    inputs, truth = (side.tensor() for side in pair)
    return {
        name: show_sample(run.surrogate, inputs, truth, chosen) for name, run in some.items()
    }, left


def _run_section(name: str, run: RunRecord, drawn: Drawings, room: int) -> Section:
    """Return a run, folded; its pictures only as far as there is room on the page."""
    parts = [next_section(run), *drawn.sections(), origin_section(run)]
    first = drawn.first()
    pictures = [*([first] if first else []), *(one for part in parts for one in part.pictures)]
    kept = []
    for picture in pictures:
        room -= _size(picture)
        if room > 0:
            kept.append(picture)
    remarks = [sentence for part in parts for sentence in part.remarks]
    if len(kept) < len(pictures):
        remarks.append(
            f"{len(pictures) - len(kept)} pictures are left out to keep the page small: "
            f"twoscale report {name} shows all."
        )
    words = [("Limits", limits_text(run)), ("Samples", used_text(run))]
    return Section(
        name,
        " ".join(result_sentences(run)),
        facts=[*((title, text) for title, text in words if text), *parts[-1].facts],
        steps=[*parts[0].steps, *parts[-1].steps],
        pictures=kept,
        remarks=remarks,
        folded=parts[-1].folded,
        fold=True,
        anchor=f"{drawn.prefix}run",
    )
