"""Error against time: of the candidates of a search, and of runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from twoscale.errors import TwoscaleError
from twoscale.report.axes import Point, label_points, log_axis, one_panel, pareto_front
from twoscale.report.display import display
from twoscale.report.field_pictures import short
from twoscale.report.method_looks import colour, marker
from twoscale.report.picture import ChartTable, Drawing, chart
from twoscale.report.run_record import RunRecord
from twoscale.search.trials import HEADINGS, table_rows


@chart("Candidates of the search")
def candidates(search: Mapping[str, Any]) -> Drawing:
    """Validation error against the time of each candidate. The ring marks the chosen one. The
    dashed line joins candidates that no other one beats in both. Numbers are table rows.
    """
    fitted = {
        place: trial
        for place, trial in enumerate(search["trials"])
        if trial["failure"] is None and trial["error"] > 0 and trial["seconds"] > 0
    }
    points = {k: (trial["seconds"], 100 * trial["error"]) for k, trial in fitted.items()}
    best = pareto_front(list(points.values()))
    names = {k: f"{k + 1} {fitted[k]['label']}" for k, point in points.items() if point in best}
    methods = {k: trial["method"] for k, trial in fitted.items()}
    words = "mean relative error (%)"
    figure = _error_against_time(points, methods, names, words, ring=search["chosen"])
    return Drawing(figure, ChartTable(HEADINGS, table_rows(search)))


@chart("Error against time")
def error_time(runs: Mapping[str, RunRecord]) -> Drawing:
    """Error on the test samples and seconds of the fit. The dashed line joins runs that no other
    one beats in both.
    """
    points = {
        name: (run.fit_seconds, 100 * run.error)
        for name, run in runs.items()
        if run.error and run.fit_seconds > 0
    }
    methods = {name: run.surrogate.method for name, run in runs.items()}
    names = {name: short(name) for name in points}
    figure = _error_against_time(points, methods, names, display("mre").axis)
    rows = [(name, *point) for name, point in points.items()]
    return Drawing(figure, ChartTable(["run", "s", "error %"], rows))


def _error_against_time(
    points: Mapping[Any, Point],
    methods: Mapping[Any, str],
    names: Mapping[Any, str],
    words: str,
    *,
    ring: object = None,
) -> Figure:
    """Draw errors in percent against seconds, in the colours of methods; some have names."""
    if not points:
        raise TwoscaleError("nothing has an error and a time")
    figure, axis = one_panel(3.6)
    best = pareto_front(list(points.values()))
    if len(best) > 1:
        axis.plot(*zip(*best, strict=True), color="#9aa3ad", linestyle="--", linewidth=1, zorder=1)
    look: dict[str, Any] = {"linestyle": "none", "markersize": 9, "markeredgecolor": "white"}
    for key, point in points.items():
        axis.plot(*point, color=colour(methods[key]), marker=marker(methods[key]), **look)
    if ring in points:
        axis.plot(*points[ring], "o", ms=14, mfc="none", color="black", zorder=3)
    for which, values in zip("xy", zip(*points.values(), strict=True), strict=True):
        log_axis(axis, which, values)
    axis.margins(0.15)
    axis.set(xlabel="seconds of the fit", ylabel=words)
    label_points(axis, {name: points[key] for key, name in names.items()})
    return figure
