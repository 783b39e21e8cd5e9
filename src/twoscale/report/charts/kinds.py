"""The kinds of charts a study can ask for, and how one is drawn."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.report.charts import audits, bars, fields, lines, pairs, points
from twoscale.report.charts.style import chart_style
from twoscale.report.related import COMMON, chosen_cases
from twoscale.report.results import StudyResult


@dataclass(frozen=True)
class Kind:
    """A kind of chart: the function that draws it, its default title and caption."""

    function: Callable[..., Figure]
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
    def _parameters(self) -> dict[str, inspect.Parameter]:
        found = inspect.signature(self.function).parameters
        return {name: one for name, one in found.items() if one.kind is one.KEYWORD_ONLY}


_MOST = 100  # entries of an option
_DEVIATION = "Bars are one standard deviation over seeds."
_SHARES = "†: a shared time, not to be compared with others."

KINDS = {
    "quality-cost": Kind(
        partial(points.trade_off, x="total", y="mre"),
        "Quality and cost",
        "Relative error against total time, both logarithmic: lower left is better. The dashed "
        f"line joins the cases that no other beats in both. {_DEVIATION}",
    ),
    "pareto": Kind(
        points.trade_off,
        "Trade-off",
        "Each point is a case; lower left is better. The dashed line joins the cases that no "
        f"other beats in both. {_DEVIATION}",
    ),
    "frontier": Kind(
        points.frontier,
        "Frontier",
        "Error as learned (filled, solid) and of the representation alone (hollow, dashed) against "
        "the size of the code, the time of the PCA fit and the memory.",
    ),
    "stage-costs": Kind(
        bars.stage_costs,
        "Where the time goes",
        "Mean seconds of each stage. A fine-tuned case includes the run it started from. "
        f"{_SHARES}",
    ),
    "pca-breakdown": Kind(
        bars.pca_breakdown, "Where the PCA fit's time goes", "Mean seconds of each part of the fit."
    ),
    "bars": Kind(
        bars.bars,
        "Side by side",
        "Quantities of the same cases side by side; dots where the axis is logarithmic or does not "
        f"start at zero. {_DEVIATION}",
    ),
    "common-seams": Kind(
        bars.common_seams,
        "The same seams for all",
        "Errors of the jumps in value and slope across the borders of non-overlapping patches, "
        "whatever patches the method uses itself.",
    ),
    "effects": Kind(
        bars.effects,
        "Effects against the base",
        "Paired change of each quantity from the base case, mean over seeds in percent; negative "
        f"is lower. {_DEVIATION}",
    ),
    "speed-ups": Kind(
        bars.speed_ups,
        "Speed-ups against the base",
        f"How many times as fast as the base case, seed by seed. {_DEVIATION}",
    ),
    "loss-weights": Kind(
        bars.loss_weights,
        "Calibrated weights",
        "The weight of each term of the fine-tuning objective, one dot per seed.",
    ),
    "oracle-learned": Kind(
        pairs.oracle_against_learned,
        "Representation and learning",
        "Hollow: the error of encoding and decoding the true field, which no predictor can "
        "undercut by much. Filled: the error as learned. The number is their ratio.",
    ),
    "interaction": Kind(
        pairs.interaction,
        "Representation and fine-tuning",
        "Each representation as trained and after fine-tuning. Parallel lines would mean that "
        f"the two act independently. {_DEVIATION}",
    ),
    "paired-seeds": Kind(
        pairs.paired_seeds,
        "Seed by seed",
        "Each dot is a seed; lines join the same seed within a method.",
    ),
    "equivalence": Kind(
        audits.equivalence,
        "Equivalence audit",
        "Intervals (90 %) of the mean paired change. Shaded: the margin declared beforehand. "
        "Within it: equivalent; across its edge: inconclusive.",
    ),
    "curves": Kind(lines.curves_along, "Curves", f"One line per method. {_DEVIATION}"),
    "trainability": Kind(
        lines.trainability,
        "Representation against trainability",
        "Learned error (filled) and oracle (hollow, dashed); the shaded gap is what training "
        f"leaves. A ring marks the lowest learned error. {_DEVIATION}",
    ),
    "ladder": Kind(
        lines.ladder,
        "Ladder",
        f"Each step as a percentage of its base, seed by seed. {_DEVIATION}",
    ),
    "time-projection": Kind(
        lines.time_projection,
        "Time against resolution",
        "Solid and filled: measured. Dashed, hollow and shaded: no measurement, only a method's "
        "fitted power law continued from its own largest measured grid.",
    ),
    "qualitative": Kind(
        fields.qualitative,
        "One field",
        "The test field with the median error of plain patches: truth, predictions, errors on one "
        "scale with the patch borders. Below: spectra and densities of the whole test set.",
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
