"""The kinds of charts a study can ask for, and how one is drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.report.axes import chart_style
from twoscale.report.picture import ChartTable
from twoscale_lab.report.charts import (
    audits,
    bars,
    fields,
    leaderboard,
    lines,
    numbers,
    pairs,
    points,
)
from twoscale_lab.report.related import COMMON, chosen_cases
from twoscale_lab.report.results import StudyResult


@dataclass(frozen=True)
class Kind:
    """A kind of chart: the functions that draw it and list its numbers, default title, caption."""

    function: Callable[..., Figure]
    numbers: Callable[..., ChartTable]  # of the same options, all of them
    title: str
    caption: str
    vector: bool = True  # of lines and letters; pictures of fields are shown as pixels

    @property
    def options(self) -> set[str]:
        """Return the names of the options the function takes."""
        return set(self._parameters)

    @property
    def required(self) -> set[str]:
        """Return the names of the options that must be given."""
        return {name for name, one in self._parameters.items() if one.default is one.empty}

    @property
    def defaults(self) -> dict[str, Any]:
        """Return the defaults of the options."""
        return {n: one.default for n, one in self._parameters.items() if n not in self.required}

    @property
    def _parameters(self) -> dict[str, inspect.Parameter]:
        found = inspect.signature(self.function).parameters
        return {name: one for name, one in found.items() if one.kind is one.KEYWORD_ONLY}


_MOST = 100  # entries of an option
_DEVIATION = "Error bars show one standard deviation over seeds."
_SHARES = "†: a shared time. Do not compare it with times without this mark."
_FRONT = (
    "Lower left is better. The dashed line joins the best trade-offs: no other case is better in "
    "both."
)

KINDS = {
    "quality-cost": Kind(
        partial(points.trade_off, x="total", y="mre"),
        numbers.of_points,
        "Error against time",
        f"Relative error against total time. Both axes are logarithmic. {_FRONT} {_DEVIATION}",
    ),
    "pareto": Kind(
        points.trade_off,
        numbers.of_points,
        "Trade-off",
        f"Each point is a case. {_FRONT} {_DEVIATION}",
    ),
    "frontier": Kind(
        points.frontier,
        numbers.of_frontier,
        "Error against size and cost",
        "Filled markers and solid lines show the learned error. Hollow markers and dashed lines "
        "show the error of the representation alone.",
    ),
    "stage-costs": Kind(
        bars.stage_costs,
        numbers.of_stages,
        "Where the time goes",
        "Mean seconds of each stage. A fine-tuned case includes the run that it started from. "
        f"{_SHARES}",
    ),
    "pca-breakdown": Kind(
        bars.pca_breakdown,
        numbers.of_pca,
        "Where the time of the PCA fit goes",
        "Mean seconds of each part of the PCA fit.",
    ),
    "bars": Kind(
        bars.bars,
        numbers.of_bars,
        "Side by side",
        "Each panel shows one quantity of the same cases. Dots replace bars where the axis is "
        f"logarithmic or does not start at zero. {_DEVIATION}",
    ),
    "common-seams": Kind(
        bars.common_seams,
        numbers.of_bars,
        "The same seams for all",
        "Errors of the jumps in value and in slope. All methods are measured on the same seams: "
        f"the borders of patches that do not overlap. {_DEVIATION}",
    ),
    "effects": Kind(
        bars.effects,
        numbers.of_changes,
        "Change from the base",
        "Change of each quantity from the base case in percent, compared seed by seed. Negative "
        f"means lower. {_DEVIATION}",
    ),
    "speed-ups": Kind(
        bars.speed_ups,
        numbers.of_speed_ups,
        "Speed-ups over the base",
        f"How many times as fast as the base case, compared seed by seed. {_DEVIATION}",
    ),
    "loss-weights": Kind(
        bars.loss_weights,
        numbers.of_weights,
        "Calibrated weights",
        "The weight of each term of the fine-tuning objective. Each dot is a seed.",
    ),
    "oracle-learned": Kind(
        pairs.oracle_against_learned,
        numbers.of_gap,
        "Oracle error and learned error",
        "Hollow markers show the oracle error: the true field is encoded and decoded. Filled "
        "markers show the learned error. The number is learned over oracle.",
    ),
    "interaction": Kind(
        pairs.interaction,
        numbers.of_bars,
        "Representation and fine-tuning",
        "Each representation as trained and after fine-tuning. Parallel lines mean that "
        f"fine-tuning helps both alike. {_DEVIATION}",
    ),
    "paired-seeds": Kind(
        pairs.paired_seeds,
        numbers.of_seeds,
        "Seed by seed",
        "Each dot is a seed. Lines join the same seed within a method.",
    ),
    "equivalence": Kind(
        audits.equivalence,
        numbers.of_audits,
        "Equivalence audit",
        "The 90 % interval of the mean change, compared seed by seed. The shaded band is the "
        "margin, which was set in advance. An interval inside the band means equivalent. An "
        "interval across its edge is inconclusive.",
    ),
    "curves": Kind(
        lines.curves_along, numbers.of_curves, "Curves", f"One line per method. {_DEVIATION}"
    ),
    "trainability": Kind(
        lines.trainability,
        numbers.of_gap,
        "What is represented and what is learned",
        "Filled markers show the learned error, hollow markers the oracle error. The shaded gap is "
        f"the error that training leaves. A ring marks the lowest learned error. {_DEVIATION}",
    ),
    "ladder": Kind(
        lines.ladder,
        numbers.of_ladder,
        "Ladder",
        f"Each step as a percentage of its base, compared seed by seed. {_DEVIATION}",
    ),
    "time-projection": Kind(
        lines.time_projection,
        numbers.of_projection,
        "Time against resolution",
        "Filled markers and solid lines were measured. Hollow markers and dashed lines were not: "
        "they continue the power law that was fitted to the measured times of that method.",
    ),
    "leaderboard": Kind(
        leaderboard.standing_of_study,
        leaderboard.numbers_of_study,
        "Where we stand",
        "Each row is a benchmark of other authors. Hollow marks are errors that others published, "
        "with their names in the same order; the dotted line is the best of them. Filled marks are "
        "our measurements, on samples of our own. Further left is better. Rows of CNO are medians "
        f"of relative L1 errors, all others means of relative L2 errors. {_DEVIATION}",
    ),
    "qualitative": Kind(
        fields.qualitative,
        numbers.of_fields,
        "One field",
        "One test field, chosen by the median error of Plain L2L. The first row shows the truth "
        "and the predictions. The second row shows the input and the errors on one colour scale, "
        "with the patch borders. Below are the spectra and densities of the whole test set.",
        vector=False,
    ),
}


def draw(kind: str, study: StudyResult, options: Mapping[str, Any]) -> Figure | None:
    """Return the figure of a kind from a study's cases, or None if it has nothing to show.

    Besides the kind's own options, `rows` names the cases by patterns and `where` by properties;
    a `caption` is not drawn: the page shows it.
    """
    known = check_kind(kind, options)
    part, own = chosen_cases(study, options)
    if not part.cases:
        return None
    with chart_style():
        return known.function(part, **own)


def drawn_numbers(kind: str, study: StudyResult, options: Mapping[str, Any]) -> ChartTable:
    """Return the numbers that `draw` draws with the same arguments."""
    known = check_kind(kind, options)
    part, own = chosen_cases(study, options)
    return known.numbers(part, **(known.defaults | own))


def check_kind(kind: str, options: Mapping[str, Any]) -> Kind:
    """Return the kind of that name if it takes these options, else raise."""
    if kind not in KINDS:
        hint = did_you_mean(kind, KINDS)
        raise TwoscaleError(f"no figure is of kind '{kind}'{hint}: known are {', '.join(KINDS)}")
    unknown = sorted(set(options) - KINDS[kind].options - COMMON)
    if unknown:
        known = ", ".join(sorted(KINDS[kind].options | COMMON))
        raise TwoscaleError(f"figures of kind {kind} take no '{unknown[0]}': they take {known}")
    missing = sorted(KINDS[kind].required - set(options))
    if missing:
        raise TwoscaleError(f"figures of kind {kind} need a {missing[0]}")
    if not isinstance(options.get("caption", ""), str):
        raise TwoscaleError("its caption is not a text")
    for name, value in options.items():
        if isinstance(value, list | dict) and len(value) > _MOST:
            raise TwoscaleError(f"its {name} has more than {_MOST} entries")
    return KINDS[kind]
