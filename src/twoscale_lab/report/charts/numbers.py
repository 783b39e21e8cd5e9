"""The numbers behind each kind of chart: what is drawn, as a table of text.

Each function takes the options of the function that draws, all of them: defaults are only there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from twoscale.report.display import ABSENT, display
from twoscale.report.method_looks import TRUTH
from twoscale.report.picture import ChartTable
from twoscale.representation import pca_stages
from twoscale_lab.report.audits import audited
from twoscale_lab.report.charts.bars import weight_terms
from twoscale_lab.report.charts.style import in_display_units
from twoscale_lab.report.derived_tables import audit_table
from twoscale_lab.report.related import base_of, change_from, with_base
from twoscale_lab.report.results import CaseResult, StudyResult, place_title
from twoscale_lab.report.scaling import scalings

_SEEDS = "Means over seeds, and sample standard deviations (sd)."
_SHARED = "†: a shared time."


def quantity_numbers(cases: Iterable[CaseResult], names: Sequence[str]) -> ChartTable:
    """Return mean and deviation of quantities, a row per case."""
    listed = list(cases)
    used = [name for name in names if any(case.mean(name) for case in listed)]
    header = ["case", "grid", "seeds"]
    for name in used:
        header += [display(name).axis, "sd"]
    rows = [
        [*_case(case), str(len(case.cells)), *(one for name in used for one in _cells(case, name))]
        for case in listed
    ]
    shared = any(case.is_shared_time(name) for case in listed for name in used)
    return ChartTable(header, rows, f"{_SEEDS} {_SHARED}" if shared else _SEEDS)


def _case(case: CaseResult) -> list[str]:
    return [case.label, place_title(case.place)]


def _cells(case: CaseResult, name: str) -> list[str]:
    found = case.spread(name)
    if found is None:
        return [ABSENT, ABSENT]
    mean, deviation = in_display_units(found, name)
    mark = " †" if case.is_shared_time(name) else ""
    return [number(mean) + mark, ABSENT if found.deviation is None else number(deviation)]


def number(value: float) -> str:
    """Return a number with five digits."""
    return f"{value:.5g}"


def of_points(study: StudyResult, *, x: str, y: str, **_: Any) -> ChartTable:
    """Return the two quantities of each point."""
    return quantity_numbers(study.cases, (x, y))


def of_bars(study: StudyResult, *, quantities: Sequence[str], **_: Any) -> ChartTable:
    """Return the quantities of bars and curves."""
    return quantity_numbers(study.cases, quantities)


def of_curves(
    study: StudyResult,
    *,
    quantities: Sequence[str],
    oracle: bool,
    **_: Any,
) -> ChartTable:
    """Return the quantities of curves, with the oracle error where it is drawn."""
    return quantity_numbers(study.cases, [*quantities, *(["oracle_mre"] if oracle else [])])


def of_frontier(
    study: StudyResult,
    *,
    against: Sequence[str],
    y: str,
    oracle: str,
) -> ChartTable:
    """Return both errors, and the sizes and costs they are drawn against."""
    return quantity_numbers(study.cases, (y, oracle, *against))


def of_stages(study: StudyResult, *, stages: Sequence[str]) -> ChartTable:
    """Return the seconds of each stage."""
    return quantity_numbers(study.cases, stages)


def of_pca(study: StudyResult, *, stages: Sequence[str] | None) -> ChartTable:
    """Return the seconds of each part of the PCA fit."""
    part = study.where(lambda case: case.mean("pca_fit") is not None)
    return of_stages(part, stages=stages or pca_stages())


def of_gap(study: StudyResult, **_: Any) -> ChartTable:
    """Return oracle error, learned error and their ratio."""
    coded = study.where(lambda case: case.mean("oracle_mre") is not None)
    return quantity_numbers(coded.cases, ("oracle_mre", "mre", "learned_to_oracle"))


def of_weights(study: StudyResult) -> ChartTable:
    """Return the weights of the terms of each objective."""
    tuned = study.where(lambda case: bool(weight_terms([case])))
    terms = [f"weights.{term}" for term in weight_terms(tuned.cases)]
    return quantity_numbers(tuned.cases, terms)


def of_changes(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str],
    ratio: bool,
) -> ChartTable:
    """Return the change of each case from its base, in percent or as a speed-up."""
    found = [(case, start) for case, start in with_base(study, base)]
    words = "times as fast" if ratio else "change, %"
    return _changes(found, quantities, words, scale=1 if ratio else 100, ratio=ratio)


def of_ladder(
    study: StudyResult, *, base: Mapping[str, Any] | None, quantities: Sequence[str]
) -> ChartTable:
    """Return each step of a ladder as a percentage of its base."""
    changes = {"objective": None} if base is None else base
    starts = [(case, base_of(study, case, changes)) for case in study.cases]
    found = [(case, start) for case, start in starts if start is not None]
    return _changes(found, quantities, "% of the base", offset=100)


def _changes(
    pairs: Sequence[tuple[CaseResult, CaseResult]],
    quantities: Sequence[str],
    words: str,
    *,
    scale: float = 100,
    offset: float = 0,
    ratio: bool = False,
) -> ChartTable:
    header = ["case", "grid", "base"]
    for name in quantities:
        header += [f"{display(name).words}: {words}", "sd"]
    rows = []
    for case, start in pairs:
        row = [*_case(case), start.label]
        for name in quantities:
            found = change_from(start, case, name, ratio=ratio)
            deviation = found.deviation if found else None
            row.append(ABSENT if found is None else number(offset + scale * found.mean))
            row.append(ABSENT if deviation is None else number(scale * deviation))
        rows.append(row)
    return ChartTable(header, rows, "Changes are taken seed by seed.")


def of_seeds(study: StudyResult, *, quantities: Sequence[str]) -> ChartTable:
    """Return the value of each seed."""
    header = ["case", "grid", "seed", *(display(name).axis for name in quantities)]
    rows = []
    for case in study.cases:
        values = [(display(name).scale, case.values(name)) for name in quantities]
        for seed in sorted({seed for _, own in values for seed in own}):
            shown = [number(scale * own[seed]) if seed in own else ABSENT for scale, own in values]
            rows.append([*_case(case), str(seed), *shown])
    return ChartTable(header, rows)


def of_speed_ups(
    study: StudyResult, *, base: Mapping[str, Any], quantities: Sequence[str]
) -> ChartTable:
    """Return how many times as fast as its base each case is."""
    return of_changes(study, base=base, quantities=quantities, ratio=True)


def of_audits(
    study: StudyResult,
    *,
    base: Mapping[str, Any],
    quantities: Sequence[str],
    margins: Mapping[str, Any] | None,
) -> ChartTable:
    """Return the audits: change, interval, margin and decision."""
    table = audit_table(audited(study, base=base, quantities=quantities, margins=margins))
    return ChartTable(table.header, table.texts)


def of_projection(study: StudyResult, *, quantity: str, to: Sequence[int]) -> ChartTable:
    """Return measured and extrapolated times on each grid."""
    rows = []
    for one in scalings(study, quantity=quantity):
        name = [one.problem.capitalize(), one.curve.label]
        rows += [[*name, f"{at:g}", number(time), "measured"] for at, time in one.measured.items()]
        ahead = [at for at in to if at > max(one.measured)]
        times = [one.law.extrapolate(at, anchored=True).estimate for at in ahead]
        rows += [
            [*name, f"{at:g}", number(time), "extrapolated"]
            for at, time in zip(ahead, times, strict=True)
        ]
    header = ["problem", "method", "nodes per side", display(quantity).axis, "origin"]
    return ChartTable(header, rows)


def of_fields(study: StudyResult, *, place: str | None) -> ChartTable:
    """Return the spectra and densities of truth and predictions; fields are too large."""
    where = place or next(iter(study.places), "")
    own = [case for case in study.places.get(where, ()) if _has_curves(study, where, case)]
    names = [TRUTH, *(case.id for case in own)]
    edges = study.fields[f"{where}/density/edges"]
    spectra = [study.fields[f"{where}/spectrum/{name}"] for name in names]
    densities = [study.fields[f"{where}/density/{name}"] for name in names]
    rows = [
        *_columns(
            "energy at wave number", np.arange(len(spectra[0]))[1:], [s[1:] for s in spectra]
        ),
        *_columns("density at value", (edges[1:] + edges[:-1]) / 2, densities),
    ]
    header = ["quantity", "at", TRUTH, *(case.label for case in own)]
    return ChartTable(
        header, rows, "Means over the test set. The fields are in the record's .npz file."
    )


def _has_curves(study: StudyResult, place: str, case: CaseResult) -> bool:
    return f"{place}/spectrum/{case.id}" in study.fields


def _columns(what: str, at: np.ndarray, values: Sequence[np.ndarray]) -> list[list[str]]:
    lines = zip(at, *values, strict=True)
    return [[what, *(f"{value:.4g}" for value in line)] for line in lines]
