"""The paper's numbers beside ours: difference, verdict, and why, for every value of its tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from twoscale_lab.study.paper.audit import CHANGES
from twoscale_lab.study.paper.published import (
    Explanation,
    PaperCell,
    PaperTable,
    known_explanations,
    paper_tables,
)
from twoscale_lab.study.quantities import is_time, values_by_seed
from twoscale_lab.study.statistics import (
    Interval,
    Spread,
    Values,
    change_of_means,
    changes_by_seed,
    implied_deviation,
    spread,
)

Verdict = Literal["match", "off", "missing"]

_DEVIATIONS = 2.0
_PART = 0.05
_ROUNDING = 1e-9  # of the machine's numbers, at the edge of what matches


@dataclass(frozen=True)
class ComparedValue:
    """One value of the paper and what was measured here.

    A time has no verdict: it is of another machine. `sd_derived` says that the paper prints no
    deviation of a change, and `paper_sd` is made of those of its two values; `only_derived`, that
    the row matches by such a deviation alone.
    """

    study: str
    table: str
    cell: str
    metric: str
    paper: float
    paper_sd: float | None
    sd_derived: bool
    paper_seeds: int
    ours: float | None
    ours_sd: float | None
    seeds: int
    difference_in_sd: float | None
    relative_difference: float | None
    verdict: Verdict | None
    only_derived: bool
    explanation: str | None = None

    @property
    def is_change(self) -> bool:
        """Say whether it is about the change from one case to another."""
        return " against " in self.cell

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def compare(
    records: Iterable[Mapping[str, Any]],
    *,
    tables: Iterable[PaperTable] | None = None,
    explanations: Sequence[Explanation] | None = None,
) -> list[ComparedValue]:
    """Return a row for every value of the paper's tables, in their order.

    A table is held against the records of its study at the paper's scale. A value matches within
    two of the paper's standard deviations or 5 % of it, whichever is larger (for a change, not
    less than half of its last printed digit). Times are listed and not judged.
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
            return change_of_means(values, base)
        assert cell.change is not None  # a cell with `against` has one
        changes = changes_by_seed(values, base, CHANGES[cell.change])
        return None if changes is None else spread(changes)


class _Printed:
    """The paper's standard deviations: printed with a value, printed elsewhere, or derived."""

    def __init__(self, tables: Iterable[PaperTable]) -> None:
        self._spreads: dict[tuple[str, str, str], tuple[float, float]] = {}
        for table in tables:
            for cell in table.cells:
                for metric, (value, deviation) in cell.values.items():
                    if cell.against is None and deviation is not None:
                        self._spreads[table.study, cell.case, metric] = (value, deviation)

    def deviation(self, study: str, cell: PaperCell, metric: str) -> float | None:
        """Return the standard deviation over seeds that the paper gives a value.

        That of an audited change is the one behind its interval.
        """
        value, deviation = cell.values[metric]
        if deviation is not None:
            return deviation
        if cell.against is None:
            _, deviation = self._spreads.get((study, cell.case, metric), (value, None))
            return deviation
        if metric in cell.audit:
            return implied_deviation(Interval(value, *cell.audit[metric].interval), cell.seeds)
        return None

    def derived(self, study: str, cell: PaperCell, metric: str) -> float | None:
        """Return the deviation of v/b, (v/b)·√((s_v/v)² + (s_b/b)²), for independent v and b.

        Within a seed they tend to vary together, so that changes spread less than this.
        """
        if cell.against is None or cell.change not in ("relative", "of_means"):
            return None
        both = [self._spreads.get((study, name, metric)) for name in (cell.case, cell.against)]
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
) -> ComparedValue:
    paper, _ = cell.values[metric]
    given = printed.deviation(table.study, cell, metric)
    derived = printed.derived(table.study, cell, metric) if given is None else None
    deviation = given if derived is None else derived
    ours = measured.spread(table.study, cell, metric)
    unit = table.printed_to.get(cell.change, 0.0) if cell.change else 0.0
    difference = None if ours is None else abs(ours.mean - paper)
    verdict, strict = (
        None if is_time(metric) else _verdict(paper, difference, one, unit)
        for one in (deviation, given)
    )
    return ComparedValue(
        study=table.study,
        table=table.label,
        cell=cell.name,
        metric=metric,
        paper=paper,
        paper_sd=deviation,
        sd_derived=derived is not None,
        paper_seeds=cell.seeds,
        ours=ours.mean if ours else None,
        ours_sd=ours.deviation if ours else None,
        seeds=ours.seeds if ours else 0,
        difference_in_sd=(ours.mean - paper) / deviation if ours and deviation else None,
        relative_difference=ours.mean / paper - 1 if ours and paper else None,
        verdict=verdict,
        only_derived=verdict != strict,
        explanation=_explanation(table.label, cell.name, metric, verdict, known),
    )


def _verdict(
    paper: float, difference: float | None, deviation: float | None, unit: float
) -> Verdict:
    if difference is None:
        return "missing"
    tolerance = max(_DEVIATIONS * (deviation or 0.0), _PART * abs(paper), unit / 2)
    return "match" if difference <= tolerance * (1 + _ROUNDING) else "off"


def _explanation(
    table: str, cell: str, metric: str, verdict: Verdict | None, known: Sequence[Explanation]
) -> str | None:
    for one in known:
        patterns = ((table, one.table), (cell, one.cell), (metric, one.metric))
        if verdict == one.verdict and all(fnmatchcase(*pair) for pair in patterns):
            return one.because
    return None


@dataclass(frozen=True)
class Tally:
    """How many rows came out how.

    `unexplained` are those that are off without a sentence, `only_derived` those that match by a
    derived deviation alone, `times` those that were measured and have no verdict.
    """

    match: int
    off: int
    missing: int
    times: int
    unexplained: int
    only_derived: int

    @property
    def judged(self) -> int:
        return self.match + self.off

    @property
    def agreement(self) -> float | None:
        """Return the part of the judged rows that match."""
        return self.match / self.judged if self.judged else None


def tally(rows: Iterable[ComparedValue]) -> Tally:
    """Return the counts of some rows' verdicts."""
    listed = list(rows)
    counts = Counter(row.verdict for row in listed)
    return Tally(
        match=counts["match"],
        off=counts["off"],
        missing=counts["missing"],
        times=sum(row.verdict is None and row.ours is not None for row in listed),
        unexplained=sum(row.verdict == "off" and row.explanation is None for row in listed),
        only_derived=sum(row.only_derived for row in listed),
    )


def by_study(rows: Iterable[ComparedValue]) -> dict[str, Tally]:
    """Return the counts of each study, in the order in which the rows come."""
    grouped: dict[str, list[ComparedValue]] = {}
    for row in rows:
        grouped.setdefault(row.study, []).append(row)
    return {study: tally(found) for study, found in grouped.items()}


def agreement(rows: Iterable[ComparedValue]) -> str:
    """Return how many rows match, in a sentence: all of them, plain values, changes."""
    listed = list(rows)
    changes = tally(row for row in listed if row.is_change)
    plain = tally(row for row in listed if not row.is_change)
    return (
        f"{_matches(tally(listed))}. Plain values: {_matches(plain)}. Changes: {_matches(changes)}."
    )


def _matches(counts: Tally) -> str:
    if counts.agreement is None:
        return "none was measured"
    words = f"{counts.match:,} of {counts.judged:,} match ({100 * counts.agreement:.1f} %)"
    if counts.only_derived:
        strict = counts.match - counts.only_derived
        words += f", {strict:,} of them without derived deviations"
    return words
