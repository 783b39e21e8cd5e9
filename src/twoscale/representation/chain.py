"""Representations in series: each stage represents what the earlier ones left over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.clock import Clock
from twoscale.errors import TwoscaleError
from twoscale.linalg.pca import RankRule
from twoscale.patches import PatchLayout
from twoscale.representation.base import Representation, subset
from twoscale.representation.block_pca import PatchPCA, RestrictedPCA
from twoscale.source import FieldSource, as_source, map_fields


class Chain(Representation):
    """Named stages, fitted one after the other; decoding adds them up.

    z_1 = E_1(u), z_2 = E_2(u - D_1(z_1)), ...; u is approximated by D_1(z_1) + D_2(z_2) + ...
    """

    def __init__(self, stages: Mapping[str, Representation]) -> None:
        super().__init__()
        self.stages = nn.ModuleDict(stages)

    def _named(self) -> list[tuple[str, Representation]]:
        return [(name, stage) for name, stage in self.stages.items()]  # type: ignore[misc]

    def check(self, shape: tuple[int, int], samples: int) -> None:
        for _, stage in self._named():
            stage.check(shape, samples)

    def fit(
        self,
        fields: Tensor | FieldSource,
        *,
        seed: int = 0,
        clock: Clock | None = None,
        name: str = "output",
    ) -> Self:
        clock = clock or Clock()
        source = as_source(fields)
        self.check(source.shape[1:], source.shape[0])
        for position, (stage_name, stage) in enumerate(self._named()):
            if position:
                with clock.stage("pca_overhead"):
                    source = map_fields(source, _left_over(self._named()[position - 1][1]))
            stage.fit(source, seed=seed + position, clock=clock, name=stage_name)
        return self

    def encode(self, fields: Tensor) -> Tensor:
        codes = []
        for position, (_, stage) in enumerate(self._named()):
            code = stage.encode(fields)
            codes.append(code)
            if position + 1 < len(self.stages):
                fields = fields - stage.decode(code)
        return torch.cat(codes, 1)

    def decode(self, codes: Tensor) -> Tensor:
        if codes.shape[1:] != (self.code_size,):
            raise TwoscaleError(
                f"codes of this representation have {self.code_size} entries, "
                f"these have shape {tuple(codes.shape)}"
            )
        parts = codes.split([stage.code_size for _, stage in self._named()], 1)
        fields = [stage.decode(part) for (_, stage), part in zip(self._named(), parts, strict=True)]
        return sum(fields[1:], fields[0])

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        inside = subset(tensors, "stages")
        for name, stage in self._named():
            stage.restore(subset(inside, name))
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
    def layout(self) -> PatchLayout | None:
        """Return the finest stage's patches."""
        layouts = [stage.layout for _, stage in self._named() if stage.layout is not None]
        return layouts[-1] if layouts else None


def _left_over(stage: Representation) -> Callable[[Tensor], Tensor]:
    return lambda fields: fields - stage.reconstruct(fields)


class TwoScale(Chain):
    """The paper's representation: one coarse global PCA, then local PCAs of the residual.

    `solver` applies to all stages; "hybrid" randomises the coarse solve only. `few_features` is
    the paper's rule for the coarse grid: fewer nodes than training fields.
    """

    def __init__(
        self,
        *,
        patches: tuple[int, int] = (4, 4),
        coarse_factor: int = 4,
        coarse_components: int | None = 10,
        coarse_variance: float | None = None,
        few_features: bool = True,
        residual_variance: float = 0.995,
        solver: str = "randomized",
    ) -> None:
        coarse = RestrictedPCA(
            RankRule(variance=coarse_variance, components=coarse_components),
            factor=coarse_factor,
            few_features=few_features,
            solver="randomized" if solver == "hybrid" else solver,
        )
        residual = PatchPCA(
            RankRule(variance=residual_variance), patches=patches, solver=_local_solver(solver)
        )
        super().__init__({"coarse": coarse, "residual": residual})


class ThreeScale(Chain):
    """A level between the two of `TwoScale`: PCAs of what the coarse one leaves on larger patches.

    The last one is left little to do: it keeps less of that than `TwoScale` would.
    """

    def __init__(
        self,
        *,
        patches: tuple[int, int] = (4, 4),
        coarse_factor: int = 4,
        coarse_components: int | None = 10,
        coarse_variance: float | None = None,
        few_features: bool = True,
        middle_patches: tuple[int, int] = (2, 2),
        middle_variance: float = 0.99,
        residual_variance: float = 0.8,
        solver: str = "randomized",
    ) -> None:
        outer = TwoScale(
            patches=patches,
            coarse_factor=coarse_factor,
            coarse_components=coarse_components,
            coarse_variance=coarse_variance,
            few_features=few_features,
            residual_variance=residual_variance,
            solver=solver,
        )
        middle = PatchPCA(
            RankRule(variance=middle_variance), patches=middle_patches, solver=_local_solver(solver)
        )
        (coarse, first), (residual, last) = outer._named()
        super().__init__({coarse: first, "middle": middle, residual: last})


def _local_solver(solver: str) -> str:
    return "full" if solver == "hybrid" else solver
