"""The chart of the leaderboard: published errors as hollow marks, our measured ones filled."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import exp, log
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from twoscale.errors import TwoscaleError
from twoscale.report.axes import GREY, chart_style, log_axis, new_figure, shared_legend
from twoscale_lab.report.charts.cases import CaseValue, CaseValues, Chart
from twoscale_lab.report.charts.kinds import chart_kind
from twoscale_lab.report.results import StudyResult
from twoscale_lab.study.leaderboard import board
from twoscale_lab.study.leaderboard.board import (
    NOT_MEASURED,
    OURS,
    PublishedError,
    Standing,
    standings_of,
)

_LOOKS = dict(
    zip(
        OURS.values(),
        (
            ("#009E73", "*"),
            ("#0072B2", "^"),
            ("#D55E00", "D"),
            ("#E69F00", "v"),
            ("#56B4E9", "s"),
            ("#CC79A7", "X"),
        ),
        strict=True,
    )
)
_OTHER_LOOK = (GREY, "h")
_HOLLOW: dict[str, Any] = {
    "color": GREY,
    "marker": "o",
    "linestyle": "none",
    "markersize": 6.0,
    "markerfacecolor": "white",
    "markeredgewidth": 1.1,
    "zorder": 2.5,
    "label": "published by others",
}
_LARGE = {"*": 13.0}  # markers that look smaller than others
_SIZE = 7.5
_WIDTH, _ROW = 4.8, 0.62  # inches: fits a phone
_LINE = 0.16  # of a row, from its middle to the marks of others and to ours
_LETTER = 0.018  # width of a letter, of the axis
_MARGIN = 1.6  # from the least and the largest error to the ends of the axis


@chart_kind("Where we stand")
def leaderboard(study: StudyResult) -> Chart:
    """Each row is a benchmark of other authors. Hollow marks are errors that others published, with
    their names in the same order; the dotted line is the best of them. Filled marks are our
    measurements, on samples of our own. Further left is better. Rows of CNO are medians of relative
    L1 errors, all others means of relative L2 errors. Error bars show one standard deviation over
    seeds.
    """
    if study.scale != "paper":
        raise TwoscaleError("published errors are for the paper scale, this record is smaller")
    found = standings_of(study.cells)
    return Chart(standings_chart(found), _table(found))


def _table(standings: Iterable[Standing]) -> CaseValues:
    """Return published and measured errors in percent, with their sources."""
    sources, rows = board.leaderboard().sources, []
    for one in standings:
        name, measure = one.benchmark.name, f"{one.benchmark.measure} error, %"
        for other in one.benchmark.published:
            source = sources[other.source].words + (f" ({other.caveat})" if other.caveat else "")
            more = {"method": other.method, "source": source}
            rows.append(CaseValue(name, measure, 100 * other.error, more=more))
        for method, found in one.ours.items():
            more = {"method": method, "source": f"measured here, {found.seeds} seeds"}
            deviation = None if found.deviation is None else 100 * found.deviation
            rows.append(CaseValue(name, measure, 100 * found.mean, deviation, more))
    return CaseValues(rows, "Others measured the published errors, on samples of their own.")


@chart_style()
def standings_chart(standings: Sequence[Standing]) -> Figure:
    """Draw one row per benchmark: errors in percent on a logarithmic axis.

    Parameters
    ----------
    standings
        Where we stand, such as `standings(read_records(folder))`.
    """
    figure = new_figure(_WIDTH, _ROW * len(standings) + 1.5)
    axis = figure.subplots()
    errors = [value for one in standings for value in _errors(one)]
    low, high = min(errors) / _MARGIN, max(errors) * _MARGIN
    for row, one in enumerate(standings):
        _others(axis, row, one, letter=_LETTER * log(high / low))
        _ours(axis, row, one)
    log_axis(axis, "x", errors)
    axis.set_xlim(low, high)
    axis.set_yticks(range(len(standings)), [_label(one) for one in standings])
    axis.set_ylim(len(standings) - 0.45, -0.6)
    axis.grid(axis="y", visible=False)
    for border in range(1, len(standings)):
        axis.axhline(border - 0.5, color="#e4e7eb", linewidth=0.7)
    axis.set_xlabel("error (%)")
    shared_legend(figure, [axis])
    return figure


def _label(one: Standing) -> str:
    benchmark = one.benchmark
    return f"{benchmark.title}\n{benchmark.resolution}², {benchmark.training:,} fields"


def _errors(one: Standing) -> Iterable[float]:
    yield from (100 * other.error for other in one.benchmark.published)
    yield from (100 * found.mean for found in one.ours.values())


def _others(axis: Axes, row: int, one: Standing, *, letter: float) -> None:
    """Draw published errors with the names of their methods above.

    Marks without room for a name each have one label with all their names, in their order.
    `letter` is the width of a letter on the logarithm of the axis.
    """
    published = sorted(one.benchmark.published, key=lambda other: other.error)
    place = row - _LINE
    for close in _with_one_label(published, letter):
        errors = [100 * other.error for other in close]
        axis.plot(errors, [place] * len(errors), **_HOLLOW)
        axis.annotate(
            _names(close),
            (exp(_middle(close)), place),
            (0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=8,
            color=GREY,
        )
    if published and one.ours:
        best = 100 * published[0].error
        axis.plot([best] * 2, [place, row + 0.42], color=GREY, linewidth=0.9, linestyle=":")


def _with_one_label(
    published: Sequence[PublishedError], letter: float
) -> list[list[PublishedError]]:
    """Return errors in groups whose labels do not overlap."""
    groups: list[list[PublishedError]] = []
    for other in published:
        groups.append([other])
        while len(groups) > 1 and _overlap(groups[-2], groups[-1], letter):
            groups[-2:] = [groups[-2] + groups[-1]]
    return groups


def _overlap(
    left: Sequence[PublishedError], right: Sequence[PublishedError], letter: float
) -> bool:
    room = (len(_names(left)) + len(_names(right))) / 2 + 1
    return _middle(right) - _middle(left) < room * letter


def _names(close: Sequence[PublishedError]) -> str:
    return ", ".join(other.method for other in close)


def _middle(close: Sequence[PublishedError]) -> float:
    """Return the middle of some sorted errors on the logarithm of the axis."""
    return (log(100 * close[0].error) + log(100 * close[-1].error)) / 2


def _ours(axis: Axes, row: int, one: Standing) -> None:
    """Draw our errors with one standard deviation over seeds, the best one on top."""
    if not one.ours:
        where = ("axes fraction", "data")
        words: dict[str, Any] = {"va": "center", "fontsize": 8, "color": GREY, "style": "italic"}
        axis.annotate(f"ours: {NOT_MEASURED}", (0.02, row + 0.22), xycoords=where, **words)
    for name, found in one.ours.items():
        colour, marker = _LOOKS.get(name, _OTHER_LOOK)
        mean = 100 * found.mean
        axis.errorbar(
            mean,
            row + _LINE,
            xerr=min(100 * (found.deviation or 0.0), 0.95 * mean),
            color=colour,
            marker=marker,
            markersize=_LARGE.get(marker, _SIZE),
            markeredgecolor="white",
            markeredgewidth=0.6,
            label=name,
            zorder=4 if name == one.best else 3,
        )
