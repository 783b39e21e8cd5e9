"""A surrogate that a search could fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twoscale.methods.recipes import METHODS
from twoscale.methods.roles import PROPOSED
from twoscale.predictors import MLP, Affine, SpectralFilter, get_predictor, predictors
from twoscale.predictors.cost import PredictorCost
from twoscale.predictors.field_predictor import FieldPredictor
from twoscale.representation.as_method import CodeGrowth

FIRST_PREDICTOR = Affine.name
"""The predictor a search starts with."""

FIRST_CHAIN = PROPOSED
"""The method a search starts with, if it has all given settings."""

INPUT_VARIANCES = (0.9, 0.95, 0.97, 0.99, 0.999, 0.9999)
VARIANCES = ("output_variance", "middle_variance", "residual_variance", "variance")
"""Settings that decide by a share of variance how long a code is."""

_FIRST_VARIANCE = 0.95


def chains() -> dict[str, CodeGrowth]:
    """Return how the codes of the methods grow that are searched, the first one first."""
    known = {name: method.growth for name, method in METHODS.items() if method.growth is not None}
    return {FIRST_CHAIN: known.pop(FIRST_CHAIN), **known}


def searched_predictors() -> dict[str, PredictorCost]:
    """Return what the predictors cost that are searched: those that say it themselves."""
    return {name: cost_of(name) for name, one in predictors().items() if "cost" in vars(one)}


def cost_of(predictor: str) -> PredictorCost:
    """Return what a predictor costs; one that does not say it itself is judged by its traits."""
    kind = get_predictor(predictor)
    if "cost" in vars(kind) and kind.cost is not None:
        return kind.cost
    if kind.reads_fields and kind.trains_epochs:
        return FieldPredictor.cost
    if kind.reads_fields:
        return PredictorCost(SpectralFilter.cost.work)
    return PredictorCost((MLP if kind.trains_epochs else Affine).cost.work)


@dataclass(frozen=True)
class Candidate:
    """A surrogate that could be fitted; `SearchSpace.settings` returns its settings."""

    chain: str = FIRST_CHAIN
    input_variance: float = _FIRST_VARIANCE
    code: int = 0  # place in `CODES`, from short to long
    size: int | None = None  # modes of a sized chain
    predictor: str = FIRST_PREDICTOR
    symmetries: str = "none"
    transform: str = "none"  # of the input
    samples: int | None = None  # the predictor learns from at most; None: from all
    epochs: int | None = None  # of a predictor that is probed, or before a deadline
    members: int = 1  # networks whose predictions are averaged
    tuned: tuple[tuple[str, Any], ...] = ()  # settings that an earlier fit chose

    @property
    def growth(self) -> CodeGrowth:
        """Return how the code of its method grows."""
        growth = METHODS[self.chain].growth
        assert growth is not None
        return growth

    @property
    def cost(self) -> PredictorCost:
        """Return what its predictor costs."""
        return cost_of(self.predictor)

    @property
    def reads_fields(self) -> bool:
        """Say whether its predictor reads fields; otherwise it reads codes."""
        return get_predictor(self.predictor).reads_fields

    @property
    def probed(self) -> bool:
        """Say whether a short training comes before a long one."""
        return self.cost.probe is not None

    @property
    def input_part(self) -> tuple[Any, ...]:
        """Return what decides the input's representation."""
        if self.reads_fields:
            return "field", self.transform
        return self.growth.one_block, self.input_variance, self.symmetries, self.transform

    @property
    def output_part(self) -> tuple[Any, ...]:
        """Return what decides the output's representation."""
        return self.chain, self.size or self.code, self.symmetries

    @property
    def family(self) -> tuple[Any, ...]:
        """Return what it has in common with candidates that differ in numbers only."""
        return self.chain, self.predictor, self.symmetries, self.transform

    @property
    def label(self) -> str:
        """Return the candidate in a few words."""
        limit = self.samples or self.epochs
        few = "" if limit is None else f"({limit})"
        few += "" if self.members == 1 else f" x{self.members}"
        turned = "" if self.symmetries == "none" else " sym"
        transformed = "" if self.transform == "none" else f" {self.transform}"
        return f"{self.chain} {self.predictor}{few}{turned}{transformed}"
