"""The paper's numbers beside ours: difference, verdict, and why, for every value of its tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from twoscale.study.audit import CHANGES
from twoscale.study.published import (
    Explanation,
    PaperCell,
    PaperTable,
    known_explanations,
    paper_tables,
)
from twoscale.study.quantities import is_time, values_by_seed
from twoscale.study.statistics import (
    Interval,
    Spread,
    Values,
    changes_by_seed,
    deviation_behind,
    paired_effect,
    spread,
)

Verdict = Literal["match", "off", "missing", "time"]

_DEVIATIONS = 2.0
_PART = 0.05
_ROUNDING = 1e-9  # of the machine's numbers, at the edge of what matches


@dataclass(frozen=True)
class Row:
    """One value of the paper and what was measured here."""

    study: str
    table: str
    cell: str
    metric: str
    paper: float
    paper_sd: float | None
    paper_seeds: int
    ours: float | None
    ours_sd: float | None
    seeds: int
    difference_in_sd: float | None
    relative_difference: float | None
    verdict: Verdict
    explanation: str | None = None

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    records: Iterable[Mapping[str, Any]],
    *,
    tables: Iterable[PaperTable] | None = None,
    explanations: Sequence[Explanation] | None = None,
) -> list[Row]:
    """Return a row for every value of the paper's tables, in their order.

    A table is held against the records of its study at the paper's scale. An accuracy matches
    within two of the paper's standard deviations or 5 % of its value, whichever is larger (for a
    change, not less than half of its last printed digit). Times are told and not judged: they
    are of other machines.
    """
    chosen = list(paper_tables().values() if tables is None else tables)
    known = known_explanations() if explanations is None else explanations
    measured, printed = _Measured(records), _Printed(chosen)
    return [
        _row(table, cell, metric, measured, printed, known)
        for table in chosen
        for cell in table.cells
        for metric in cell.values
    ]


class _Measured:
    """Our values by study, case and seed."""

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        self._cells: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = {}
        for record in records:
            # A small study has cases of the same names that are not meant to be the paper's.
            for cell in record["cells"] if record["scale"] == "paper" else ():
                self._cells.setdefault((record["study"], cell["case"]), {})[cell["seed"]] = cell

    def values(self, study: str, case: str, metric: str) -> Values:
        return values_by_seed(self._cells.get((study, case), {}).values(), metric)

    def spread(self, study: str, cell: PaperCell, metric: str) -> Spread | None:
        """Return what was measured of a cell of the paper, None if nothing was."""
        values = self.values(study, cell.case, metric)
        if cell.against is None:
            return spread(values.values()) if values else None
        base = self.values(study, cell.against, metric)
        if cell.change == "of_means":
            effect = paired_effect(values, base)
            if effect is None:
                return None
            return Spread(effect.change_of_means, None, effect.changes.seeds)
        assert cell.change is not None  # a cell with `against` has one
        changes = changes_by_seed(values, base, CHANGES[cell.change])
        return None if changes is None else spread(changes)


class _Printed:
    """The paper's spreads: beside a value, in another table of the study, or implied by others."""

    def __init__(self, tables: Iterable[PaperTable]) -> None:
        self._spreads: dict[tuple[str, str, str], tuple[float, float]] = {}
        for table in tables:
            for cell in table.cells:
                for metric, (value, deviation) in cell.values.items():
                    if cell.against is None and deviation is not None:
                        self._spreads[table.study, cell.case, metric] = (value, deviation)

    def deviation(self, study: str, cell: PaperCell, metric: str) -> float | None:
        """Return the standard deviation over seeds that belongs to a value of the paper."""
        value, deviation = cell.values[metric]
        if deviation is not None:
            return deviation
        if cell.against is None:
            _, deviation = self._spreads.get((study, cell.case, metric), (value, None))
            return deviation
        if metric in cell.audit:
            return deviation_behind(Interval(value, *cell.audit[metric].interval), cell.seeds)
        if cell.change in ("relative", "of_means"):
            return self._of_ratio(study, cell.case, cell.against, metric)
        return None

    def _of_ratio(self, study: str, case: str, base: str, metric: str) -> float | None:
        """Return the deviation of v/b, (v/b)·√((s_v/v)² + (s_b/b)²), for independent v and b.

        Within a seed they tend to vary together, so that changes spread less than this.
        """
        both = [self._spreads.get((study, name, metric)) for name in (case, base)]
        (value, deviation), (base_value, base_deviation) = (one or (0.0, 0.0) for one in both)
        if not value or not base_value:
            return None
        parts = math.hypot(deviation / value, base_deviation / base_value)
        return abs(value / base_value) * parts


def _row(
    table: PaperTable,
    cell: PaperCell,
    metric: str,
    measured: _Measured,
    printed: _Printed,
    known: Sequence[Explanation],
) -> Row:
    paper, _ = cell.values[metric]
    deviation = printed.deviation(table.study, cell, metric)
    ours = measured.spread(table.study, cell, metric)
    unit = table.printed_to.get(cell.change, 0.0) if cell.change else 0.0
    tolerance = max(_DEVIATIONS * (deviation or 0.0), _PART * abs(paper), unit / 2)
    verdict = _verdict(metric, None if ours is None else abs(ours.mean - paper), tolerance)
    return Row(
        study=table.study,
        table=table.label,
        cell=cell.name,
        metric=metric,
        paper=paper,
        paper_sd=deviation,
        paper_seeds=cell.seeds,
        ours=ours.mean if ours else None,
        ours_sd=ours.deviation if ours else None,
        seeds=ours.seeds if ours else 0,
        difference_in_sd=(ours.mean - paper) / deviation if ours and deviation else None,
        relative_difference=ours.mean / paper - 1 if ours and paper else None,
        verdict=verdict,
        explanation=_explanation(table.label, cell.name, metric, verdict, known),
    )


def _verdict(metric: str, difference: float | None, tolerance: float) -> Verdict:
    if difference is None:
        return "missing"
    if is_time(metric):
        return "time"
    return "match" if difference <= tolerance * (1 + _ROUNDING) else "off"


def _explanation(
    table: str, cell: str, metric: str, verdict: Verdict, known: Sequence[Explanation]
) -> str | None:
    for one in known:
        patterns = ((table, one.table), (cell, one.cell), (metric, one.metric))
        if verdict == one.verdict and all(fnmatchcase(*pair) for pair in patterns):
            return one.because
    return None


@dataclass(frozen=True)
class Tally:
    """How many rows came out how; `unexplained` are those that are off without a sentence."""

    match: int
    off: int
    missing: int
    time: int
    unexplained: int

    @property
    def agreement(self) -> float | None:
        """Return the part of the judged rows that match."""
        judged = self.match + self.off
        return self.match / judged if judged else None


def tally(rows: Iterable[Row]) -> Tally:
    """Return the counts of some rows' verdicts; a missing time is not missed."""
    listed = [row for row in rows if row.verdict != "missing" or not is_time(row.metric)]
    counts = Counter(row.verdict for row in listed)
    unexplained = sum(row.verdict == "off" and row.explanation is None for row in listed)
    return Tally(
        counts["match"], counts["off"], counts["missing"], counts["time"], unexplained=unexplained
    )


def by_study(rows: Iterable[Row]) -> dict[str, Tally]:
    """Return the counts of each study, in the order in which the rows come."""
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row.study, []).append(row)
    return {study: tally(found) for study, found in grouped.items()}
