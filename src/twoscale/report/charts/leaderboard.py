"""The chart of the leaderboard: published errors as hollow marks, our measured ones filled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from twoscale.errors import TwoscaleError
from twoscale.report.charts.style import GREY, log_axis, new_figure, shared_legend
from twoscale.report.display import ABSENT, number
from twoscale.report.figure_style import styled
from twoscale.report.picture import Numbers
from twoscale.report.results import StudyResult
from twoscale.study.leaderboard.published import leaderboard
from twoscale.study.leaderboard.standings import NOT_MEASURED, OURS, Standing, standings_of

_LOOKS = dict(
    zip(
        OURS.values(),
        (("#009E73", "*"), ("#0072B2", "^"), ("#D55E00", "D"), ("#E69F00", "v"), ("#CC79A7", "X")),
        strict=True,
    )
)
_OTHER_LOOK = (GREY, "h")
_LARGE = {"*": 13.0}  # markers that look smaller than others
_SIZE = 7.5
_WIDTH, _ROW = 4.8, 0.62  # inches: fits a phone
_LINE = 0.16  # of a row, from its middle to the marks of others and to ours
_PERCENT = 100.0
_QUANTITIES = {
    "mean_relative_l2": "mean relative L2",
    "median_relative_l1": "median relative L1",
}


def standing_of_study(study: StudyResult) -> Figure:
    """Draw where we stand on each benchmark, from the cases of a study."""
    return standings_chart(_standings(study))


def numbers_of_study(study: StudyResult) -> Numbers:
    """Return the errors that `standing_of_study` draws, one a row, with their sources."""
    sources = leaderboard().sources
    rows = []
    for one in _standings(study):
        start = [one.benchmark.name, measure_words(one)]
        for other in one.benchmark.published:
            origin = sources[other.source].words + (f" ({other.caveat})" if other.caveat else "")
            rows.append([*start, other.method, f"{other.percent:g}", ABSENT, origin])
        for name, found in one.ours.items():
            deviation = number(found.deviation, "percent")
            seeds = f"measured here, {found.seeds} seeds"
            rows.append([*start, name, number(found.mean, "percent"), deviation, seeds])
    header = ["benchmark", "error", "method", "%", "sd", "source"]
    return Numbers(header, rows, "Others measured the published errors, on samples of their own.")


def _standings(study: StudyResult) -> list[Standing]:
    if study.scale != "paper":
        raise TwoscaleError("published errors are for the paper scale, this record is smaller")
    return standings_of(cell for case in study.cases for cell in case.cells)


def measure_words(standing: Standing) -> str:
    """Return how the errors of a benchmark are measured, in words."""
    return _QUANTITIES[standing.benchmark.quantity.rpartition(".")[2]]


@styled
def standings_chart(standings: Sequence[Standing]) -> Figure:
    """Draw one row per benchmark: errors in percent on a logarithmic axis.

    Parameters
    ----------
    standings
        Where we stand, such as `standings(read_records(folder))`.
    """
    figure = new_figure(_WIDTH, _ROW * len(standings) + 1.5)
    axis = figure.subplots()
    for row, one in enumerate(standings):
        _others(axis, row, one)
        _ours(axis, row, one)
    errors = [value for one in standings for value in _errors(one)]
    log_axis(axis, "x", errors)
    axis.set_xlim(min(errors) / 1.6, max(errors) * 1.6)
    axis.set_yticks(range(len(standings)), [_label(one) for one in standings])
    axis.set_ylim(len(standings) - 0.45, -0.6)
    axis.grid(axis="y", visible=False)
    for border in range(1, len(standings)):
        axis.axhline(border - 0.5, color="#e4e7eb", linewidth=0.7)
    axis.set_xlabel("error (%)")
    _legend_entries(axis, standings)
    shared_legend(figure, [axis])
    return figure


def _label(one: Standing) -> str:
    benchmark = one.benchmark
    return f"{benchmark.title}\n{benchmark.resolution}², {benchmark.training:,} fields"


def _errors(one: Standing) -> Iterable[float]:
    yield from (other.percent for other in one.benchmark.published)
    yield from (_PERCENT * found.mean for found in one.ours.values())


def _others(axis: Axes, row: int, one: Standing) -> None:
    """Draw published errors with the names of their methods above, in the same order."""
    published = sorted(one.benchmark.published, key=lambda other: other.percent)
    if not published:
        return
    errors = [other.percent for other in published]
    place = row - _LINE
    axis.plot(errors, [place] * len(errors), **_hollow())
    axis.plot([errors[0]] * 2, [row - 0.3, row + 0.42], color=GREY, linewidth=0.9, linestyle=":")
    middle = exp(sum(map(log, (errors[0], errors[-1]))) / 2)
    names = ", ".join(other.method for other in published)
    axis.annotate(
        names,
        (middle, place),
        (0, 5),
        textcoords="offset points",
        ha="center",
        fontsize=8,
        color=GREY,
    )


def _ours(axis: Axes, row: int, one: Standing) -> None:
    """Draw our errors with one standard deviation over seeds, the best one on top."""
    if not one.ours:
        where = ("axes fraction", "data")
        words = {"va": "center", "fontsize": 8, "color": GREY, "style": "italic"}
        axis.annotate(f"ours: {NOT_MEASURED}", (0.02, row + 0.22), xycoords=where, **words)
    for name, found in one.ours.items():
        colour, marker = _LOOKS.get(name, _OTHER_LOOK)
        mean = _PERCENT * found.mean
        axis.errorbar(
            mean,
            row + _LINE,
            xerr=min(_PERCENT * (found.deviation or 0.0), 0.95 * mean),
            color=colour,
            marker=marker,
            markersize=_LARGE.get(marker, _SIZE),
            markeredgecolor="white",
            markeredgewidth=0.6,
            zorder=4 if name == one.best else 3,
        )


def _hollow() -> dict[str, Any]:
    look = {"color": GREY, "marker": "o", "linestyle": "none", "markersize": 6.0}
    return look | {"markerfacecolor": "white", "markeredgewidth": 1.1, "zorder": 2.5}


def _legend_entries(axis: Axes, standings: Sequence[Standing]) -> None:
    """Add invisible lines that the legend shows: others, and our methods that were measured."""
    measured = {name for one in standings for name in one.ours}
    axis.add_line(Line2D([], [], label="published by others", **_hollow()))
    for name, (colour, marker) in _LOOKS.items():
        if name in measured:
            look = {"color": colour, "marker": marker, "linestyle": "none"}
            axis.add_line(Line2D([], [], markersize=_SIZE, label=name, **look))
