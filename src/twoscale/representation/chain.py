"""Representations in series: each stage represents what the earlier ones left over."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.domain.patches import PatchLayout
from twoscale.domain.space import Domain, Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import FieldSource, map_fields
from twoscale.math.pca import RankRule
from twoscale.parts import PARTS
from twoscale.representation.base import Representation, residual_map, subset
from twoscale.representation.block_pca import BlockPCA
from twoscale.representation.budget import Budget
from twoscale.runtime.progress import Clock
from twoscale.runtime.stages import PCA, PCA_OVERHEAD, PCA_SIDES


class Chain(Representation):
    """Named stages, fitted one after the other; decoding adds them up.

    z_1 = E_1(u), z_2 = E_2(u - D_1(z_1)), ...; u is approximated by D_1(z_1) + D_2(z_2) + ...

    Parameters
    ----------
    stages
        Representations by name, in the order they are fitted in.
    code_size
        Modes kept in all: those of the largest energy. All stages must then be PCAs. The rule of a
        stage limits what it keeps. By default each stage follows its own rule.

    Attributes
    ----------
    stages
        The fitted stages by name.
    space, layout, ranks, code_size, explained_variance
        The space of the fields, the finest patches, the modes kept by each stage, the length of the
        code, and the share of variance that each stage keeps.

    Examples
    --------
    >>> from twoscale import PatchPCA, RestrictedPCA
    >>> Chain({"coarse": RestrictedPCA(8), "patches": PatchPCA(0.9, patches=(2, 2))})
    Chain({'coarse': RestrictedPCA(8), 'patches': PatchPCA(0.9, patches=(2, 2))})
    """

    name = "chain"
    title = "stages, each of what the earlier ones left over"

    def __init__(
        self, stages: Mapping[str, Representation], *, code_size: int | None = None
    ) -> None:
        super().__init__()
        try:
            if not isinstance(stages, Mapping):
                raise TypeError(f"got {type(stages).__name__}")
            self.stages = nn.ModuleDict(stages)
        except (KeyError, TypeError) as error:
            raise TwoscaleError(
                f"a chain is a dictionary of names and representations: {error}"
            ) from error
        self.shared_size = code_size
        if code_size is not None and not all(isinstance(s, BlockPCA) for s in stages.values()):
            raise TwoscaleError(
                "a code size can be shared among PCAs only: give each stage a rule of its own"
            )

    def supports(self, domain: Domain) -> bool:
        return all(stage.supports(domain) for _, stage in self._named())

    def _named(self) -> list[tuple[str, Representation]]:
        return [(name, stage) for name, stage in self.stages.items()]  # type: ignore[misc]

    def _pcas(self) -> list[tuple[str, BlockPCA]]:
        return [(name, stage) for name, stage in self._named() if isinstance(stage, BlockPCA)]

    def check(self, space: Space, samples: int) -> None:
        if not self.stages:
            raise TwoscaleError("a chain needs at least one stage, this one has none")
        for name, stage in self._named():
            try:
                stage.check(space, samples)
            except TwoscaleError as error:
                raise TwoscaleError(f"{name} stage: {error}") from error
        if self.shared_size is not None:
            blocks = sum(stage.block_count(space.grid) for _, stage in self._pcas())
            if self.shared_size < blocks:
                raise TwoscaleError(
                    f"a code of {self.shared_size} is too short for {blocks} blocks, which keep at "
                    f"least one mode each: use a code size of at least {blocks} or fewer patches"
                )

    def _fit(self, source: FieldSource, *, seed: int, clock: Clock, name: str) -> None:
        if self.shared_size is not None:
            budget = Budget(self._pcas(), self.shared_size, self.space)
            budget.fit(source, seed=seed, clock=clock)
            return
        for position, (stage_name, stage) in enumerate(self._named()):
            if position:
                with clock.stage(PCA_OVERHEAD):
                    source = map_fields(source, residual_map(self._named()[position - 1][1]))
                    if isinstance(stage, BlockPCA):
                        stage.ignore_noise(self._named()[0][1])
            stage.space = self.space  # checked for all stages
            stage._fit(source, seed=seed + position, clock=clock, name=stage_name)

    def encode(self, fields: Tensor) -> Tensor:
        codes = []
        for position, (_, stage) in enumerate(self._named()):
            code = stage.encode(fields)
            codes.append(code)
            if position + 1 < len(self.stages):
                fields = fields - stage.decode(code)
        return torch.cat(codes, 1)

    def decode(self, codes: Tensor) -> Tensor:
        self._check_codes(codes)
        stages = self._named()
        parts = codes.split([stage.code_size for _, stage in stages], 1)
        fields = [stage.decode(part) for (_, stage), part in zip(stages, parts, strict=True)]
        return sum(fields[1:], fields[0])

    def restore(self, tensors: Mapping[str, Tensor], space: Space) -> Self:
        self.space = space
        inside = subset(tensors, "stages")
        for name, stage in self._named():
            stage.restore(subset(inside, name), space)
        return self

    @property
    def block_sizes(self) -> list[int]:
        return [stage.code_size for _, stage in self._named()]

    @property
    def ranks(self) -> dict[str, list[int]]:
        return {
            name: [rank for ranks in stage.ranks.values() for rank in ranks]
            for name, stage in self._named()
        }

    @property
    def explained_variance(self) -> dict[str, float]:
        shares = {name: stage.explained_variance.values() for name, stage in self._named()}
        return {name: sum(values) / len(values) for name, values in shares.items()}

    @property
    def code_spread(self) -> Tensor:
        return torch.cat([stage.code_spread for _, stage in self._named()])

    @property
    def unit(self) -> Tensor:
        return torch.stack([stage.unit for _, stage in self._named()]).amax(0)

    @property
    def mean_and_spread(self) -> tuple[float, float] | None:
        return self._named()[0][1].mean_and_spread

    @property
    def layout(self) -> PatchLayout | None:
        """Return the finest stage's patches."""
        layouts = [stage.layout for _, stage in self._named() if stage.layout is not None]
        return max(layouts, key=lambda layout: layout.count, default=None)


def known_stages() -> dict[str, str]:
    """Return the titles of the stages of all registered representations, by stage name.

    Longer chains come first, so that the stages of one chain are listed in their order.

    >>> list(known_stages())[:3]
    ['coarse', 'middle', 'residual']
    """
    kinds = [part for part in PARTS.values() if issubclass(part, Representation)]
    longest_first = sorted(kinds, key=lambda kind: -len(kind.stage_titles))
    return {name: title for kind in longest_first for name, title in kind.stage_titles.items()}


def stage_solvers(solver: str) -> tuple[str, str]:
    """Return the solvers of a global stage and of local ones; "hybrid" randomises the former."""
    return ("randomized", "full") if solver == "hybrid" else (solver, solver)


def single_solver(solver: str) -> str:
    """Return the solver of a representation without a coarse stage; "hybrid" is "full" there."""
    return "full" if solver == "hybrid" else solver


def stage_rule(variance: float, code_size: int | None) -> RankRule:
    """Return the rule of a stage that keeps a variance, or as much of a shared code as it gets."""
    return RankRule(variance=variance) if code_size is None else RankRule(components=code_size)


def pca_stages() -> tuple[str, ...]:
    """Return the stages of a PCA fit: input, output or the stages of a chain, and the overhead."""
    return (*PCA_SIDES, *(f"{PCA}{stage}" for stage in known_stages()), PCA_OVERHEAD)
