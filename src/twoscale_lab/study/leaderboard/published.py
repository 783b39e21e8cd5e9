"""The benchmarks of the leaderboard and the errors that others published on them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated

from twoscale.errors import TwoscaleError, missing_extra
from twoscale_lab.study.paper.published import QuantityName, parse
from twoscale_lab.study.protocol import Size, Strict

try:
    from pydantic import Field
    from pydantic import model_validator as check
except ImportError as error:
    raise missing_extra(error.name or "pydantic", "lab") from error

STUDY = "leaderboard"
"""The study that measures our errors on the benchmarks."""

RIVAL = "FNO"
"""The published method that most papers compare with."""

_FILE = "published.yaml"
_MEASURES = {
    "mean_relative_l2": "mean relative L2",
    "median_relative_l1": "median relative L1",
}


class Source(Strict):
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

    sources: dict[str, Source]
    benchmarks: tuple[Benchmark, ...]

    @check(mode="after")
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
