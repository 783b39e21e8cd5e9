"""Charts that compare cases seed by seed, or two values of the same case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from twoscale.report.axes import GREY, label_width, log_axis, panels, shared_legend, ticks
from twoscale.report.display import display
from twoscale_lab.report.audits import QUANTITIES, Audited, audited
from twoscale_lab.report.charts.cases import (
    PALE,
    CaseValue,
    CaseValues,
    Chart,
    draw_rows,
    measured,
    require_any,
    seed_by_seed,
    styles,
)
from twoscale_lab.report.charts.kinds import chart_kind
from twoscale_lab.report.results import CaseResult, StudyResult, place_title
from twoscale_lab.study.paper.audit import Margin

_TUNED = (("#009E73", "s"), ("#0072B2", "D"), ("#D55E00", "^"))  # looks of objectives
_WIDE = 2.0  # inches of labels that leave no room for a second panel


@chart_kind("Oracle error and learned error")
def oracle_learned(study: StudyResult) -> Chart:
    """Hollow markers show the oracle error: the true field is encoded and decoded. Filled markers
    show the learned error. The number is learned over oracle.
    """
    places = study.where(lambda case: bool(case.mean("oracle_mre"))).places
    require_any(places, "case with an oracle")
    coded = [case for cases in places.values() for case in cases]
    table = measured(coded, ("oracle_mre", "mre", "learned_to_oracle"))
    labels = [case.label for case in coded]
    columns = 2 if label_width(labels) < _WIDE else 1
    sizes = [len(cases) for cases in places.values()]
    figure, axes = panels(
        len(places),
        width=3.2 + label_width(labels),
        columns=columns,
        heights=[0.8 + 0.3 * max(sizes[k : k + columns]) for k in range(0, len(sizes), columns)],
    )
    for axis, (place, cases) in zip(axes, places.items(), strict=True):
        style = styles(cases)
        drawn: list[float] = []
        for row, case in enumerate(cases):
            own = style[case.id]
            learned, deviation = table.row(case, "mre").point
            oracle = table.value(case, "oracle_mre")
            drawn += [learned, oracle]
            axis.plot([oracle, learned], [row, row], color=own.colour, linewidth=2, alpha=0.45)
            axis.plot(oracle, row, marker=own.marker, color=own.colour, mfc="white", ms=8)
            axis.errorbar(learned, row, xerr=deviation, marker=own.marker, color=own.colour, ms=8)
            axis.annotate(
                f"\N{MULTIPLICATION SIGN} {learned / oracle:.2f}",
                (max(learned, oracle), row),
                (9, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
        axis.set_yticks(range(len(cases)), [case.label for case in cases])
        axis.set_ylim(len(cases) - 0.5, -0.5)
        log_axis(axis, "x", drawn)
        axis.margins(x=0.18)
        axis.grid(axis="y", visible=False)
        axis.set(xlabel=display("mre").axis, title=place_title(place))
        axis.plot([], [], "o", color=GREY, mfc="white", label="oracle: the representation alone")
        axis.plot([], [], "o", color=GREY, label="learned")
    shared_legend(figure, axes)
    return Chart(figure, table)


@chart_kind("Representation and fine-tuning")
def interaction(
    study: StudyResult,
    *,
    quantities: Sequence[str] = ("mre", "value_trace_error", "normal_derivative_trace_error"),
) -> Chart:
    """Each representation as trained and after fine-tuning. Parallel lines mean that fine-tuning
    helps both alike. Error bars show one standard deviation over seeds.
    """
    table = measured(study.cases, quantities)
    figure, axes = panels(len(quantities))
    methods = list(dict.fromkeys(case.method for case in study.cases))
    objectives = list(dict.fromkeys(case.objective for case in study.cases))
    for axis, name in zip(axes, quantities, strict=True):
        drawn: list[float] = []
        for number, objective in enumerate(objectives):
            cases = {case.method: case for case in study.cases if case.objective == objective}
            places = [k for k, method in enumerate(methods) if method in cases]
            rows = [table.row(cases[methods[k]], name) for k in places]
            if not rows:
                continue
            drawn += [row.value for row in rows]
            look: dict[str, Any] = {"color": GREY, "marker": "o", "linestyle": "--"}
            look["label"] = "as trained"
            if objective is not None:
                colour, marker = _TUNED[number % 3 - 1]
                look = {"color": colour, "marker": marker, "label": f"fine-tuned, {objective}"}
            draw_rows(axis, places, rows, markersize=8, **look)
        log_axis(axis, "y", drawn)
        labels = {case.method: case.label for case in study.cases if case.objective is None}
        ticks(axis, range(len(methods)), [labels.get(name, name) for name in methods])
        axis.set_xlim(-0.35, len(methods) - 0.65)
        axis.set(ylabel=display(name).axis)
    shared_legend(figure, axes)
    return Chart(figure, table)


@chart_kind("Seed by seed")
def paired_seeds(study: StudyResult, *, quantities: Sequence[str] = ("mre",)) -> Chart:
    """Each dot is a seed. Lines join the same seed within a method.

    A panel per method, each with a scale of its own: seeds are compared within a method only.
    """
    table = seed_by_seed(study.cases, quantities)
    parts = [
        (place, method, name)
        for place, cases in study.places.items()
        for method in dict.fromkeys(case.method for case in cases)
        for name in quantities
    ]
    figure, axes = panels(len(parts), width=2.9, height=3.0)
    for axis, (place, method, name) in zip(axes, parts, strict=True):
        cases = [case for case in study.places[place] if case.method == method]
        style = styles(cases)
        rows = [table.rows_of(case, name) for case in cases]
        values = [{row.more["seed"]: row.value for row in own} for own in rows]
        for seed in sorted({seed for own in values for seed in own}):
            heights = [own.get(seed, float("nan")) for own in values]
            axis.plot(range(len(cases)), heights, color=PALE, linewidth=0.9, zorder=1)
        for at, (case, own) in enumerate(zip(cases, values, strict=True)):
            axis.plot([at] * len(own), list(own.values()), **style[case.id].dots)
        ticks(axis, range(len(cases)), [_variant(case) for case in cases])
        axis.set_xlim(-0.4, len(cases) - 0.6)
        axis.set(ylabel=display(name).axis, title=f"{cases[0].title}\n{place_title(place)}")
    return Chart(figure, table)


def _variant(case: CaseResult) -> str:
    """Return a label without the method, one part a line."""
    parts = case.label.removeprefix(case.title).strip(", ").split(", ")
    return "\n".join(part.split(" ", 1)[-1] for part in parts) or case.title


_UNITS = {"relative": "change, %", "absolute": "change", "speed_up": "times as fast"}
_COLUMNS = 3
_AGREEING = ("equivalent", "pass")


@chart_kind("Equivalence audit")
def equivalence(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str] = QUANTITIES,
    margins: Mapping[str, Any] | None = None,
) -> Chart:
    """The 90 % interval of the mean change, compared seed by seed. The shaded band is the margin,
    which was set in advance. An interval inside the band means equivalent. An interval across its
    edge is inconclusive.
    """
    found = audited(study, base=base, quantities=quantities, margins=margins)
    require_any(found, "case with its base")
    words = list(dict.fromkeys(one.words for one in found))
    shown = {name: [one for one in found if one.quantity == name] for name in quantities}
    shown = {name: own for name, own in shown.items() if own}
    height = 0.9 + 0.36 * len(words)
    figure, axes = panels(len(shown), width=2.3, height=height, columns=_COLUMNS, labels=words)
    style = styles(study.cases)
    rows = {id(one): _row(one) for one in found}
    for index, (axis, (name, own)) in enumerate(zip(axes, shown.items(), strict=True)):
        margin = own[0].audit.margin
        _band(axis, margin)
        for one in own:
            line, row, look = words.index(one.words), rows[id(one)], style[one.case.id]
            ends = [float(row.more[end]) for end in ("lower", "upper")]
            axis.plot(ends, [line, line], color=look.colour, linewidth=3)
            axis.plot(row.value, line, marker=look.marker, color=look.colour, ms=8)
            axis.annotate(
                one.audit.decision,
                (0.99, line - 0.26),
                xycoords=("axes fraction", "data"),
                va="center",
                ha="right",
                fontsize=9,
                color="#333333" if one.audit.decision in _AGREEING else "#A23B00",
            )
        axis.set_yticks(range(len(words)), words if index % _COLUMNS == 0 else [""] * len(words))
        axis.set_ylim(len(words) - 0.4, -0.6)
        axis.set(title=display(name).words, xlabel=_UNITS[margin.kind])
        axis.grid(axis="y", visible=False)
        axis.margins(x=0.2)
        axis.locator_params(axis="x", nbins=5)
    return Chart(figure, CaseValues(list(rows.values())))


def _scale(margin: Margin) -> float:
    return 100.0 if margin.kind == "relative" else 1.0


def _row(one: Audited) -> CaseValue:
    """Return a change, the ends of its interval, its margin and the decision."""
    scale, change, margin = _scale(one.audit.margin), one.audit.change, one.audit.margin
    low, high = (change.estimate if end is None else end for end in (change.lower, change.upper))
    more: dict[str, str | float] = {
        "comparison": one.words,
        "change": _UNITS[margin.kind],
        "lower": scale * low,
        "upper": scale * high,
        "margin": scale * margin.size,
        "decision": one.audit.decision,
    }
    return CaseValue(one.case, one.quantity, scale * change.estimate, more=more)


def _band(axis: Axes, margin: Margin) -> None:
    edge = _scale(margin) * margin.size
    if margin.kind == "speed_up":
        axis.axvline(edge, color=GREY, linestyle="--", linewidth=1)
    else:
        axis.axvspan(-edge, edge, color="#dfe7ee", zorder=0)
        axis.axvline(0, color=GREY, linewidth=0.9)
