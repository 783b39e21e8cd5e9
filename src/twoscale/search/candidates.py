"""A surrogate that a search could fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from twoscale.predictors import get_predictor
from twoscale.search.chains import CHAINS, FIRST_CHAIN, ChainKind
from twoscale.search.kinds import FIRST_PREDICTOR, Kind, kind_of

INPUT_VARIANCES = (0.9, 0.95, 0.97, 0.99, 0.999, 0.9999)
_FIRST_VARIANCE = 0.95


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
    def chain_kind(self) -> ChainKind:
        return CHAINS[self.chain]

    @property
    def predictor_kind(self) -> Kind:
        return kind_of(self.predictor)

    @property
    def reads_fields(self) -> bool:
        """Say whether its predictor reads fields; otherwise it reads codes."""
        return get_predictor(self.predictor).reads_fields

    @property
    def probed(self) -> bool:
        """Say whether a short training comes before a long one."""
        return self.predictor_kind.probe is not None

    @property
    def input_part(self) -> tuple[Any, ...]:
        """Return what decides the input's representation."""
        if self.reads_fields:
            return "field", self.transform
        return self.chain_kind.one_block, self.input_variance, self.symmetries, self.transform

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
