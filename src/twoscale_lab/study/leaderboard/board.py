"""The benchmarks of the leaderboard and the errors that others published on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Annotated, Any

from twoscale.errors import TwoscaleError
from twoscale.methods.roles import SEARCH
from twoscale.runtime.texts import short_number
from twoscale_lab.study.paper.published import QuantityName, parse
from twoscale_lab.study.quantities import CellRecord, values_by_seed
from twoscale_lab.study.statistics import Spread, spread
from twoscale_lab.study.validation import Field, Size, Strict, model_validator

STUDY = "leaderboard"
"""The study that measures our errors on the benchmarks."""

RIVAL = "FNO"
"""The published method that most papers compare with."""

_FILE = "published.yaml"
_MEASURES = {
    "mean_relative_l2": "mean relative L2",
    "median_relative_l1": "median relative L1",
}


class PublishedSource(Strict):
    """A paper; `table` is the table that has the numbers, where it was noted."""

    title: str
    authors: str
    year: int
    table: str | None = None

    @property
    def words(self) -> str:
        """Return authors, year and title, and the table."""
        place = "" if self.table is None else f", table {self.table}"
        return f"{self.authors} ({self.year}): {self.title}{place}"


class PublishedError(Strict):
    """An error that somebody else published; `percent` is the text that is printed."""

    method: str
    percent: Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")]
    source: str
    caveat: str | None = None

    @property
    def error(self) -> float:
        """Return the error as a fraction."""
        return float(self.percent) / 100


class Benchmark(Strict):
    """A problem on a grid with so many training fields, and what others published on it.

    `quantity` is how errors are measured: that of the papers.
    """

    title: str
    problem: str
    resolution: Size
    training: Size
    quantity: QuantityName = "mean_relative_l2"
    caveat: str | None = None
    published: tuple[PublishedError, ...] = ()

    @property
    def name(self) -> str:
        """Return the benchmark in words, with grid and number of training fields."""
        return f"{self.title}, {self.resolution}², {self.training:,} fields"

    @property
    def measure(self) -> str:
        """Return how errors are measured, in words."""
        return _MEASURES[self._error]

    @property
    def _error(self) -> str:
        """Return the metric, whatever fields it is measured on."""
        return self.quantity.rpartition(".")[2]

    @property
    def chosen_by(self) -> str:
        """Return the quantity that the best of ours is chosen by: the error of validation fields.

        They are of the training distribution, also where errors are measured outside of it.
        """
        return f"validation.{self._error}"

    @property
    def best(self) -> PublishedError | None:
        """Return the lowest published error."""
        return min(self.published, key=lambda one: one.error, default=None)

    @property
    def rival(self) -> PublishedError | None:
        """Return the published error of FNO."""
        return next((one for one in self.published if one.method == RIVAL), None)

    @property
    def caveats(self) -> list[str]:
        """Return what is uncertain about the published numbers."""
        own = [f"{one.method}: {one.caveat}" for one in self.published if one.caveat]
        return own + ([self.caveat] if self.caveat else [])


class Leaderboard(Strict):
    """All benchmarks, in order, and the sources of their published errors by name."""

    sources: dict[str, PublishedSource]
    benchmarks: tuple[Benchmark, ...]

    @model_validator(mode="after")
    def _has_sources(self) -> Leaderboard:
        for benchmark in self.benchmarks:
            for one in benchmark.published:
                if one.source not in self.sources:
                    raise TwoscaleError(f"{benchmark.name}: no source is called '{one.source}'")
        return self


@cache
def leaderboard() -> Leaderboard:
    """Return the benchmarks with what others published on them."""
    text = (files("twoscale_lab.study") / STUDY / _FILE).read_text(encoding="utf-8")
    return parse(text, Leaderboard, source=_FILE)


NOT_MEASURED = "not measured yet"
NOT_CHOSEN = "no validation error"  # of any of our methods: none is the best by it

_SMALL = 0.1  # a smaller ratio to the best published error has one digit

HEADINGS = ("benchmark", "best published", "published FNO", "ours, best", "ours / best", "we are")
"""Errors in percent, of the kind that the benchmark's papers report."""

NOTE = (
    "Others measured the published errors, on samples of their own. We measured ours on new "
    "samples from the same distributions. The best of ours has the smallest error on validation "
    "fields, a tenth of the training fields: test errors have no part in this choice. The best "
    "published one has the smallest test error. Rows of CNO are medians of relative L1 errors, all "
    "others means of relative L2 errors."
)

OURS = {
    SEARCH: "our search",
    "whole-field": "our encoder",
    "kernel": "our kernel",
    "affine": "our affine map",
    "filter": "our filter",
    "fno": "our FNO",
}
"""Names of our methods: by predictor, or by method where the case names no predictor."""


@dataclass(frozen=True)
class Standing:
    """A benchmark, and the errors of our methods on it by name, as fractions.

    The best of ours is chosen by its mean error on validation fields. A method without one is shown
    and never chosen. The best published one is the best by its error on test fields.
    """

    benchmark: Benchmark
    ours: Mapping[str, Spread]
    validation: Mapping[str, float]  # mean errors of validation fields, by our method
    seconds: Mapping[str, Mapping[str, float]]  # of data, fit and one field, by our method

    @property
    def best(self) -> str | None:
        """Return the name of our method with the smallest validation error; None without any."""
        return min(self.validation, key=lambda name: self.validation[name], default=None)

    def ratio_to(self, published: PublishedError | None) -> float | None:
        """Return our best error over a published one; None if one of them is missing."""
        if self.best is None or published is None:
            return None
        return self.ours[self.best].mean / published.error

    @property
    def ahead(self) -> bool | None:
        """Say whether our best error is below all published ones; None if one is missing."""
        ratio = self.ratio_to(self.benchmark.best)
        return None if ratio is None else ratio < 1

    @property
    def verdict(self) -> str:
        """Return where we stand in words."""
        if not self.ours:
            return NOT_MEASURED
        if self.best is None:
            return NOT_CHOSEN
        if self.ahead is None:
            return "nothing published"
        return "ahead" if self.ahead else "behind"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain values; errors are fractions."""
        benchmark = self.benchmark
        best, rival = benchmark.best, benchmark.rival
        return {
            **benchmark.model_dump(mode="json"),
            "published_best": best and best.error,
            "published_fno": rival and rival.error,
            "ours": {
                name: {"mean": one.mean, "sd": one.deviation, "seeds": one.seeds}
                | {"validation": self.validation.get(name)}
                | dict(self.seconds[name])
                for name, one in self.ours.items()
            },
            "best_of_ours": self.best,
            "ratio_to_best": self.ratio_to(best),
            "ratio_to_fno": self.ratio_to(rival),
            "verdict": self.verdict,
        }


def standings(records: Iterable[Mapping[str, Any]]) -> list[Standing]:
    """Return where we stand on all benchmarks, from the records of the study at paper scale.

    Other records have no part in it. A benchmark without measured cells has a standing too.
    """
    return standings_of(
        cell
        for record in records
        if record["study"] == STUDY and record["scale"] == "paper"
        for cell in record["cells"]
    )


def measured_standings(records: Iterable[Mapping[str, Any]]) -> list[Standing]:
    """Return where we stand on all benchmarks; nothing if the study has not run at paper scale."""
    found = standings(records)
    return found if any(one.ours for one in found) else []


def standings_of(cells: Iterable[CellRecord]) -> list[Standing]:
    """Return where we stand on all benchmarks, from the recorded cells of the study."""
    listed = list(cells)
    return [_standing(benchmark, listed) for benchmark in leaderboard().benchmarks]


def _standing(benchmark: Benchmark, cells: Iterable[CellRecord]) -> Standing:
    found: dict[str, list[CellRecord]] = {name: [] for name in OURS.values()}
    for cell in cells:
        if all(cell[k] == getattr(benchmark, k) for k in ("problem", "resolution", "training")):
            found.setdefault(our_name(cell), []).append(cell)
    ours = _spreads(found, benchmark.quantity)
    validation = _spreads({name: found[name] for name in ours}, benchmark.chosen_by)
    return Standing(
        benchmark,
        ours,
        {name: one.mean for name, one in validation.items()},
        {name: _seconds(found[name]) for name in ours},
    )


def _spreads(found: Mapping[str, Iterable[CellRecord]], quantity: str) -> dict[str, Spread]:
    """Return the mean and the deviation over seeds by method, of those that have the quantity."""
    values = {name: values_by_seed(cells, quantity).values() for name, cells in found.items()}
    return {name: spread(some) for name, some in values.items() if some}


def table_rows(found: Iterable[Standing]) -> list[list[str]]:
    """Return standings as rows under `HEADINGS`: errors in percent, means ± deviations."""
    return [_row(one) for one in found]


def _row(one: Standing) -> list[str]:
    ratio = one.ratio_to(one.benchmark.best)
    return [
        one.benchmark.name,
        _published(one.benchmark.best),
        _published(one.benchmark.rival),
        _measured(one),
        "" if ratio is None else f"{ratio:.2f}" if ratio >= _SMALL else short_number(ratio, 1),
        one.verdict,
    ]


def _published(one: PublishedError | None) -> str:
    return "" if one is None else f"{one.percent} ({one.method})"


def _measured(one: Standing) -> str:
    if one.best is None:
        return ""
    best = one.ours[one.best]
    apart = "" if best.deviation is None else f" ± {short_number(100 * best.deviation, 2)}"
    return f"{short_number(100 * best.mean)}{apart} ({one.best.removeprefix('our ')})"


def summary(found: Iterable[Standing]) -> str:
    """Return in a sentence on how many benchmarks we are ahead of all published errors."""
    listed = list(found)
    judged = [one for one in listed if one.ahead is not None]
    ahead = sum(one.ahead is True for one in judged)
    missing = sum(not one.ours for one in listed)
    if missing == len(listed):
        return "None of our errors is measured yet."
    words = f"Ahead of all published errors on {ahead} of {len(judged)} benchmarks"
    verb = "is" if missing == 1 else "are"
    return f"{words}; {missing} {verb} {NOT_MEASURED}." if missing else f"{words}."


def our_name(cell: CellRecord) -> str:
    """Return the name of our method in a cell: of its predictor, if the case names one."""
    own = cell["settings"].get("predictor") or cell["method"]
    return OURS.get(own, f"our {own}")


def _seconds(cells: Iterable[CellRecord]) -> dict[str, float]:
    """Return the mean seconds of a method's data, fit and prediction of a field, if known."""
    listed = list(cells)
    names = ("data_seconds", "fit_seconds", "field_seconds")
    values = {name: values_by_seed(listed, name).values() for name in names}
    return {name: spread(found).mean for name, found in values.items() if found}
