"""The page of `demo`: what a search finds, then what the paper's methods do at patch borders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from twoscale.data import Dataset
from twoscale.math.measures import median_sample
from twoscale.methods.roles import PLAIN_PATCHES, PROPOSED
from twoscale.predictors import SpectralFilter
from twoscale.report import comparison_figures as drawn
from twoscale.report.axes import shade
from twoscale.report.comparison_figures import Look
from twoscale.report.display import (
    METRIC_COLUMNS,
    METRIC_NOTE,
    display,
    metric_cells,
    metric_header,
)
from twoscale.report.figure_folder import write_with_figures
from twoscale.report.method_looks import colour, marker, method_title
from twoscale.report.page import ChartTable, PageTable, Picture, Section, page_text
from twoscale.run import Run
from twoscale.run.pairs import loaded_pair
from twoscale.runtime.progress import Progress
from twoscale.runtime.texts import duration_text, percent, short_number
from twoscale.search.findings import PERFECT

SEARCH = "search"
"""The name of the run that a search found; others have the name of their method."""

BLENDED = "overlap"
_SEAMS = ("value_trace_error", "normal_derivative_trace_error")
_COLUMNS = ("mre", *_SEAMS, "residual_rms", "total")
_DARKER = 0.62  # of the colour of a searched run's method
_ALIKE = 1.05  # numbers within this factor are called about the same
_EXACT_FILTER = (
    "That is the limit of single precision. Poisson's equation multiplies each sine wave by a "
    "number of its own, and a filter learns just these numbers. An equation with coefficients that "
    "vary, such as Darcy's, is not so simple."
)


@dataclass(frozen=True)
class Shown:
    """A run as tables and pictures show it: its look, its metrics and the seconds it took."""

    look: Look
    metrics: Mapping[str, Any]
    predictor: str = ""

    @classmethod
    def of(cls, run: Run) -> Shown:
        """Return what is shown of a run; the time of a search is that of all its candidates."""
        method, metrics, search = run.surrogate.method, run.metrics, run.search
        if search is None:
            return cls(Look(method_title(method), colour(method), marker(method)), metrics)
        predictor = str(run.surrogate.settings["predictor"])
        title = f"Search ({method_title(method)} + {predictor})"
        timings = {**metrics["timings"], "total": search["seconds"]}
        look = Look(title, shade(colour(method), _DARKER), "*")
        return cls(look, {**metrics, "timings": timings}, predictor)

    @property
    def title(self) -> str:
        return self.look.title

    @property
    def seconds(self) -> float:
        """Return the seconds of fit, training and inference."""
        return float(self.metrics["timings"]["total"])

    @property
    def prediction_seconds(self) -> float:
        """Return the seconds of one prediction among many."""
        return float(self.metrics["timings"]["inference"] / self.metrics["samples"])

    def value(self, name: str) -> float:
        """Return a metric; at seams, of the borders that all methods are measured at."""
        return float({**self.metrics, **self.metrics["common_seams"]}[name])


def table_rows(
    shown: Iterable[Shown], columns: Iterable[str] = _COLUMNS
) -> tuple[list[str], list[list[str]]]:
    """Return the headings and rows of the table of runs, with few columns by default."""
    names = list(columns)
    return metric_header(names), [[one.title, *metric_cells(one.metrics, names)] for one in shown]


def write_comparison(
    page: Path,
    dataset: Dataset,
    runs: Mapping[str, Run],
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write `page` and its `figures/*.png` from the run of a search and the paper's methods."""
    pair = loaded_pair(dataset, runs[SEARCH].test_samples)
    inputs, truth = (samples.tensor() for samples in pair)
    predictions = {name: run.surrogate.predict_fields(inputs).cpu() for name, run in runs.items()}
    shown = {name: Shown.of(run) for name, run in runs.items()}
    header, rows = table_rows(shown.values(), METRIC_COLUMNS)
    table = PageTable(header, rows, note=METRIC_NOTE)
    first = _prediction(shown[SEARCH], inputs, truth, predictions[SEARCH])
    sections = [
        _time(shown, runs),
        *_seams(shown, runs, truth, predictions),
        Section("All numbers", lead=best_sentence(shown), tables=[table], anchor="numbers"),
    ]
    pictures = [first, *(picture for section in sections for picture in section.pictures)]
    for done, picture in enumerate(pictures, 1):
        picture.render()  # which takes most of the time, and is kept
        if progress:
            progress("pictures", done, len(pictures), "")
    text = page_text(
        title=f"twoscale demo: {dataset.samples:,} pairs of Poisson fields",
        best=result_sentences(shown),
        first=first,
        summary=[],
        sections=sections,
        footer=_footer(dataset, runs),
    )
    write_with_figures(page, text, pictures, kinds=("png",), overwrite=overwrite)


def result_sentences(shown: Mapping[str, Shown]) -> list[str]:
    """Return the result of the search, why it is exact if it is, and that of the paper's method."""
    found, proposed = shown[SEARCH], shown[PROPOSED]
    larger = relation(proposed.value("mre"), found.value("mre"))
    exact = found.predictor == SpectralFilter.name and found.value("mre") <= PERFECT
    return [
        f"{found.title} predicts {found.metrics['samples']} test fields with an error of "
        f"{_percent(found)}, after {duration_text(found.seconds)} of search.",
        *([_EXACT_FILTER] if exact else ()),
        f"The error of the paper's {proposed.title} is {larger}: {_percent(proposed)}, after "
        f"{duration_text(proposed.seconds)}.",
    ]


def seam_sentences(shown: Mapping[str, Shown]) -> dict[str, str]:
    """Return, by run, what each of the paper's methods does at patch borders; from the numbers."""
    plain, blended, proposed = (shown[name] for name in (PLAIN_PATCHES, BLENDED, PROPOSED))
    value, slope = (plain.value(name) for name in _SEAMS)
    return {
        PLAIN_PATCHES: f"It decodes every patch by itself, so that neighbouring patches disagree. "
        f"Its error is {_percent(plain)}. At patch borders the error of its value is {value:.1e}, "
        f"and of its slope {slope:.1e}.",
        PROPOSED: "It writes one coarse field first, and the patches add what is left. "
        + _beside(proposed, plain),
        BLENDED: "It blends patches that overlap. " + _beside(blended, proposed),
    }


def best_sentence(shown: Mapping[str, Shown]) -> str:
    """Return which of the runs is best, in error and at patch borders."""
    error, value, slope = (
        min(shown.values(), key=lambda one: one.value(name)).title for name in ("mre", *_SEAMS)
    )
    start = f"Of these {len(shown)}, {error} has the smallest error."
    if value == slope:
        return f"{start} At patch borders {value} has the smallest errors of value and slope."
    return (
        f"{start} At patch borders {value} has the smallest error of the value, and {slope} that "
        "of the slope."
    )


def _beside(ours: Shown, others: Shown) -> str:
    error, value, slope = (relation(ours.value(n), others.value(n)) for n in ("mre", *_SEAMS))
    return (
        f"Its error is {_percent(ours)}. Compared with {others.title}, its error is {error}. At "
        f"patch borders its error of the value is {value}, and its error of the slope is {slope}."
    )


def relation(ours: float, others: float) -> str:
    """Return in words how a number compares with another one.

    >>> relation(1.0, 4.0), relation(6543.0, 2.0), relation(1.0, 1.01)
    ('4.0 times smaller', '3,300 times larger', 'about the same')
    """
    low, high = sorted((ours, others))
    if high <= _ALIKE * low:
        return "about the same"
    word = "smaller" if ours < others else "larger"
    if not low:
        return word
    factor = f"{high / low:.1f}" if high < 10 * low else f"{float(f'{high / low:.2g}'):,.0f}"
    return f"{factor} times {word}"


def _percent(one: Shown) -> str:
    return percent(one.value("mre"), 2)


def _both(draw: Callable[..., Figure], *values: Any, **options: Any) -> dict[str, Any]:
    """Return a drawing in both widths, for a page and for a phone."""
    return {
        "figure": draw(*values, **options),
        "narrow": draw(*values, **options, width=drawn.NARROW),
    }


def _prediction(found: Shown, inputs: Tensor, truth: Tensor, prediction: Tensor) -> Picture:
    """Return the picture of one prediction of the searched surrogate."""
    sample = median_sample(prediction, truth)
    given, target, field = (one[sample, 0].numpy() for one in (inputs, truth, prediction))
    return Picture(
        "prediction",
        "One test field",
        f"The test field of median error, predicted by {found.title}. The time is that of one "
        f"field among {found.metrics['samples']}.",
        **_both(drawn.prediction_picture, given, target, field, seconds=found.prediction_seconds),
    )


def _time(shown: Mapping[str, Shown], runs: Mapping[str, Run]) -> Section:
    paper = runs[PROPOSED]
    points = [(one.look, one.seconds, 100 * one.value("mre")) for one in shown.values()]
    picture = Picture(
        "error-time",
        "Error against time",
        "Relative error on the test fields against the time to fit. Further down is more "
        "accurate; further left is faster. The time of the search is that of all its candidates.",
        **_both(drawn.error_against_time, points),
        vector=True,
        table=ChartTable(
            ("method", "time to fit (s)", "relative error (%)"),
            [[look.title, f"{time:.3g}", short_number(error)] for look, time, error in points],
        ),
    )
    lead = (
        f"All four learn from the same {paper.config['training_samples']:,} pairs. The paper's "
        f"networks train for {paper.surrogate.settings['epochs']} epochs here."
    )
    return Section("Error against time", lead=lead, pictures=[picture], anchor="time")


def _seams(
    shown: Mapping[str, Shown],
    runs: Mapping[str, Run],
    truth: Tensor,
    predictions: Mapping[str, Tensor],
) -> list[Section]:
    """Return the parts on patch borders; their field has the median error of plain patches."""
    sample = median_sample(predictions[PLAIN_PATCHES], truth)
    layout = runs[PLAIN_PATCHES].surrogate.operator_.layout
    assert layout is not None
    target: np.ndarray = truth[sample, 0].numpy()
    fields = {shown[name].look: batch[sample, 0].numpy() for name, batch in predictions.items()}
    parts = (target, fields, layout.seams)
    sizes = {
        display(name).words: {one.look: one.value(name) for one in shown.values()}
        for name in _SEAMS
    }
    pictures = {
        PLAIN_PATCHES: [
            Picture(
                "errors",
                "Where the error sits",
                "Errors of the same test field on one scale; thin lines are patch borders. The "
                f"field is the one of median error with {shown[PLAIN_PATCHES].title}.",
                **_both(drawn.error_maps, *parts),
            ),
            Picture(
                "zoom",
                "Close to a seam",
                "The predicted fields around a crossing of patch borders. White lines are contours "
                "of the prediction, and dashed lines are those of the truth. A white line that "
                "breaks at a border is a seam.",
                **_both(drawn.zoomed_fields, *parts),
            ),
        ],
        PROPOSED: [
            Picture(
                "profile",
                "Across the seams",
                "The error of that field along one row of nodes; dashed lines are patch borders.",
                **_both(drawn.error_profile, *parts),
                vector=True,
            )
        ],
        BLENDED: [
            Picture(
                "seams",
                "Size of the seams",
                "Mean error of the jump in value and in slope across patch borders, over all test "
                "fields. Shorter bars are better.",
                **_both(drawn.seam_bars, sizes),
                vector=True,
                table=ChartTable(
                    ("method", *sizes),
                    [
                        [one.title, *(f"{one.value(name):.3g}" for name in _SEAMS)]
                        for one in shown.values()
                    ],
                ),
            )
        ],
    }
    return [
        Section(
            f"What {shown[name].title} does",
            lead=sentence,
            pictures=pictures[name],
            anchor=name,
        )
        for name, sentence in seam_sentences(shown).items()
    ]


def _footer(dataset: Dataset, runs: Mapping[str, Run]) -> str:
    hashes = ", ".join(f"{name} {run.config['hash']}" for name, run in runs.items())
    device = next(iter(runs.values())).surrogate.device.type
    return (
        f"{dataset.samples} samples on {dataset.output_space} nodes, data {dataset.identity}; "
        f"configurations {hashes}; device {device}."
    )
