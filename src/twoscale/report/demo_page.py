"""The page of `demo`: what a search finds, then what the paper's methods do at patch borders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from twoscale.data import Dataset
from twoscale.domain.patches import Seams
from twoscale.methods.roles import PLAIN_PATCHES, PROPOSED
from twoscale.predictors import SpectralFilter
from twoscale.report.axes import HALF, log_axis, one_panel, panels, shade, shared_legend
from twoscale.report.display import display, metric_cells, metric_header, number
from twoscale.report.field_pictures import draw_field
from twoscale.report.figure_folder import write_with_figures
from twoscale.report.method_looks import colour, method_title
from twoscale.report.page import Section, page_text
from twoscale.report.picture import ChartTable, Drawing, PicturePlan, chart
from twoscale.report.run_page import median_charts
from twoscale.report.run_record import RunRecord, read_run
from twoscale.report.run_samples import SamplePrediction
from twoscale.report.runs_page import best_sentences, predict_shared_sample, runs_table
from twoscale.report.time_charts import error_time
from twoscale.run import Run
from twoscale.runtime.progress import Progress
from twoscale.runtime.texts import duration_text, percent
from twoscale.search.advice import PERFECT

SEARCH = "search"
"""The name of the run that a search found; others have the name of their method."""

BLENDED = "overlap"
_SEAMS = ("value_trace_error", "normal_derivative_trace_error")
_COLUMNS = ("mre", *_SEAMS, "residual_rms")
_ZOOM = 10  # nodes on each side of the seams
_DARKER = 0.62  # of the colour of a searched run's method
_WHAT = {
    PLAIN_PATCHES: "It decodes every patch by itself, so that neighbouring patches disagree.",
    PROPOSED: "It writes one coarse field first, and the patches add what is left.",
    BLENDED: "It blends patches that overlap.",
}
_EXACT_FILTER = (
    "That is the limit of single precision. Poisson's equation multiplies each sine wave by a "
    "number of its own, and a filter learns just these numbers. An equation with coefficients that "
    "vary, such as Darcy's, is not so simple."
)


def demo_title(run: RunRecord) -> str:
    """Return the name of a run of the demo in tables and pictures."""
    title = method_title(run.surrogate.method)
    return title if run.search is None else f"Search ({title} + {run.predictor})"


def demo_table(runs: Mapping[str, RunRecord]) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of the table for a terminal, with few columns."""
    rows = [
        [demo_title(run), *metric_cells(run.metrics, _COLUMNS), number(run.fit_seconds, "seconds")]
        for run in runs.values()
    ]
    return [*metric_header(_COLUMNS), "fit s"], rows


def write_demo_page(
    page: Path,
    dataset: Dataset,
    runs: Mapping[str, Run],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write `page` and its `figures/*.png` from the run of a search and the paper's methods."""
    shown = {
        name: read_run(run, look=name in (SEARCH, PLAIN_PATCHES)) for name, run in runs.items()
    }
    parts = [Section("", charts=median_charts(shown[SEARCH])), *_sections(shown)]
    sections = []
    for done, section in enumerate(parts, 1):
        sections.append(section.drawn())
        if progress:
            progress("pictures", done, len(parts), section.title)
    text = page_text(
        title=f"twoscale demo: {dataset.samples:,} pairs of Poisson fields",
        best=result_sentences(shown),
        first=next(iter(sections[0].pictures), None),
        summary=sections[0].remarks,
        sections=sections[1:],
        footer=_footer(dataset, runs),
    )
    pictures = [picture for section in sections for picture in section.pictures]
    write_with_figures(page, text, pictures, kinds=("png",), overwrite=overwrite)


def _sections(runs: Mapping[str, RunRecord]) -> Iterator[Section]:
    """Yield error against time, patch borders with each of the paper's methods, all numbers."""
    paper, titled = runs[PROPOSED], {demo_title(run): run for run in runs.values()}
    yield Section(
        "Error against time",
        f"All four learn from the same {paper.config['training_samples']:,} pairs. The paper's "
        f"networks train for {paper.surrogate.settings['epochs']} epochs here. The time of the "
        "search is that of all its candidates.",
        charts=[error_time(titled)],
        anchor="time",
    )
    charts = _seam_charts(runs)
    for name, what in _WHAT.items():
        value, slope = (_value(runs[name], key) for key in _SEAMS)
        yield Section(
            f"What {demo_title(runs[name])} does",
            f"{what} Its error is {percent(runs[name].metrics['mre'])}. At patch borders the "
            f"error of its value is {value:.1e}, and of its slope {slope:.1e}.",
            charts=charts[name],
            anchor=name,
        )
    table = runs_table(titled)
    yield Section("All numbers", " ".join(best_sentences(titled)), tables=[table], anchor="numbers")


def _value(run: RunRecord, name: str) -> float:
    """Return a metric; at seams, of the borders that all methods are measured at."""
    return float({**run.metrics, **run.metrics["common_seams"]}[name])


def result_sentences(runs: Mapping[str, RunRecord]) -> list[str]:
    """Return the result of the search, why it is exact if it is, and that of the paper's method."""
    found, paper = runs[SEARCH], runs[PROPOSED]
    exact = found.predictor == SpectralFilter.name and found.metrics["mre"] <= PERFECT
    return [
        f"{demo_title(found)} predicts {found.metrics['samples']} test fields with an error of "
        f"{percent(found.metrics['mre'])}, after {duration_text(found.fit_seconds)} of search.",
        *([_EXACT_FILTER] if exact else ()),
        f"The error of the paper's {demo_title(paper)} is {percent(paper.metrics['mre'])}, "
        f"after {duration_text(paper.fit_seconds)}.",
    ]


def _seam_charts(runs: Mapping[str, RunRecord]) -> dict[str, list[PicturePlan]]:
    """Return the charts on patch borders, of a field of median error with plain patches."""
    plain = runs[PLAIN_PATCHES]
    layout = plain.surrogate.operator_.layout
    assert layout is not None
    assert plain.samples is not None
    assert plain.samples.median is not None
    samples = predict_shared_sample(runs, plain.samples.median.number)
    fields = {demo_title(runs[name]): sample for name, sample in samples.items()}
    looks = {
        demo_title(run): shade(colour(run.surrogate.method), _DARKER if run.search else 1.0)
        for run in runs.values()
    }
    values = {display(name).words: [_value(run, name) for run in runs.values()] for name in _SEAMS}
    return {
        PLAIN_PATCHES: [errors(fields, layout.seams), zoom(fields, layout.seams)],
        PROPOSED: [profile(fields, layout.seams, looks)],
        BLENDED: [seams(ChartTable.of({"method": list(looks), **values}), looks)],
    }


def _lines(title: str) -> str:
    """Return a title with its part in brackets on a line of its own."""
    return title.replace(" (", "\n(", 1)


@chart("Where the error sits", vector=False)
def errors(samples: Mapping[str, SamplePrediction], borders: Seams) -> Drawing:
    """Errors of the same test field on one scale; thin lines are patch borders. The field is the
    one of median error with plain patches.
    """
    found = {title: one.prediction[0] - one.truth[0] for title, one in samples.items()}
    top = max(float(np.abs(error).max()) for error in found.values()) or 1.0
    figure, axes = panels(len(found), width=HALF / 2 - 0.15, height=2.5, columns=2)
    for axis, (title, error) in zip(axes, found.items(), strict=True):
        words = f"{_lines(title)}\n{percent(samples[title].error)}"
        image = draw_field(axis, error, words, borders, cmap="RdBu_r", vmin=-top, vmax=top)
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.7, aspect=35)
    bar.ax.locator_params(nbins=3)
    bar.ax.ticklabel_format(axis="x", scilimits=(-2, 3))
    return Drawing(figure)


@chart("Close to a seam", vector=False)
def zoom(samples: Mapping[str, SamplePrediction], borders: Seams) -> Drawing:
    """The predicted fields around a crossing of patch borders. White lines are contours of the
    prediction, and dashed lines are those of the truth. A white line that breaks at a border is a
    seam.
    """
    truth = next(iter(samples.values())).truth[0]
    row, column = (lines[len(lines) // 2] for lines in (borders.rows, borders.columns))
    rows, columns = (
        slice(max(0, line - _ZOOM), min(line + _ZOOM, side))
        for line, side in zip((row, column), truth.shape, strict=True)
    )
    target = truth[rows, columns]
    low, high = float(target.min()), float(target.max())
    levels = np.linspace(low, high, 12)[1:-1]
    figure, axes = panels(len(samples), width=HALF / 2 - 0.15, height=2.3, columns=2)
    for axis, (title, one) in zip(axes, samples.items(), strict=True):
        near = one.prediction[0][rows, columns]
        draw_field(axis, near, _lines(title), cmap="viridis", vmin=low, vmax=high)
        if low < high:
            axis.contour(target, levels, colors="black", linestyles="dashed", linewidths=0.8)
            axis.contour(near, levels, colors="white", linestyles="solid", linewidths=1.2)
        axis.axhline(row - rows.start - 0.5, color="black", linewidth=0.8)
        axis.axvline(column - columns.start - 0.5, color="black", linewidth=0.8)
    return Drawing(figure)


@chart("Across the seams")
def profile(
    samples: Mapping[str, SamplePrediction], borders: Seams, looks: Mapping[str, str]
) -> Drawing:
    """The error of that field along one row of nodes; dashed lines are patch borders."""
    figure, axis = one_panel(3.6)
    for title, one in samples.items():
        row = one.truth.shape[1] // 2 + one.truth.shape[1] // 8
        error = (one.prediction - one.truth)[0, row]
        axis.plot(error, color=looks[title], label=title, linewidth=1.4)
    for column in borders.columns:
        axis.axvline(column - 0.5, color="0.6", linestyle="--", linewidth=0.8)
    axis.set(xlabel="column", ylabel=f"error in row {row}")
    axis.ticklabel_format(axis="y", scilimits=(-2, 3))
    shared_legend(figure, [axis])
    return Drawing(figure)


@chart("Size of the seams")
def seams(table: ChartTable, looks: Mapping[str, str]) -> Drawing:
    """Mean error of the jump in value and in slope across patch borders, over all test fields.
    Shorter bars are better.
    """
    _, *quantities = table.header
    figure, axes = panels(len(quantities), width=HALF - 0.3, height=2.0, columns=1)
    for axis, words in zip(axes, quantities, strict=True):
        lengths = table[words].tolist()
        drawn = axis.barh([_lines(title) for title in looks], lengths, color=list(looks.values()))
        axis.bar_label(drawn, fmt="%.1e", padding=3)
        log_axis(axis, "x", lengths, most=4)
        axis.invert_yaxis()
        axis.margins(x=0.3)
        axis.set_title(words, loc="left")
    return Drawing(figure, table)


def _footer(dataset: Dataset, runs: Mapping[str, Run]) -> str:
    hashes = ", ".join(f"{name} {run.config['hash']}" for name, run in runs.items())
    device = next(iter(runs.values())).surrogate.device.type
    return (
        f"{dataset.samples} samples on {dataset.output_space} nodes, data {dataset.identity}; "
        f"configurations {hashes}; device {device}."
    )
