"""A code of a given size, shared among the stages and blocks of a chain by energy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.fields.source import FieldSource, map_fields
from twoscale.representation.base import residual_map
from twoscale.representation.block_pca import BlockPCA
from twoscale.runtime.progress import Clock
from twoscale.runtime.stages import PCA_OVERHEAD

Stage = tuple[str, BlockPCA]

_SPARE = 16  # candidates of each block beyond twice its equal share
_GROWTH = 3
_ROUNDING = 1e-13  # energy per node, in the fields' unit: not seen in single precision


class Budget:
    """The fit of PCAs in series so that all together keep `size` modes.

    The modes of all blocks of all stages are ranked by energy (`BlockPCA.energies`) and the first
    `size` are kept, with at least one of every block. A stage's own rule bounds what it may keep.

    A stage sees what the earlier ones leave, which is more after they have been cut. So all stages
    are fitted generously, the first is cut to its share of the ranking, the others are fitted
    again on what it leaves now and share the rest of the code among themselves; and so on. Nothing
    is fitted again after a stage that keeps all it may, or that the later ones do not depend on.

    An early mode's energy is an upper bound of its worth, since later stages could express part of
    it: bound a coarse stage by its rule where that matters.
    """

    def __init__(self, stages: Sequence[Stage], size: int, space: Space) -> None:
        self.stages = stages
        self.size = size
        self.space = space

    def fit(self, source: FieldSource, *, seed: int, clock: Clock) -> None:
        """Fit all stages on a source; stage i is seeded by `seed` + i."""
        left, last = self.size, len(self.stages) - 1
        self._fit_candidates(0, left, source, seed, clock)
        for position, (_, stage) in enumerate(self.stages):
            with clock.stage(PCA_OVERHEAD):
                cut = stage.truncate(self._shares(position, left)[0])
            left -= stage.code_size
            if cut and position < last and self._affected([position]):
                self._fit_candidates(position + 1, left, source, seed, clock)

    def _fit_candidates(
        self, start: int, left: int, source: FieldSource, seed: int, clock: Clock
    ) -> None:
        """Fit the stages from `start` with enough modes that the best `left` are among them."""
        blocks = sum(stage.block_count(self.space.grid) for _, stage in self.stages[start:])
        positions = range(start, len(self.stages))
        bounds = {p: min(left, self.stages[p][1].rule.components or left) for p in positions}
        caps = {p: min(bounds[p], 2 * -(-left // blocks) + _SPARE) for p in positions}
        waiting = list(positions)
        while waiting:
            for p in waiting:
                name, stage = self.stages[p]
                with clock.stage(PCA_OVERHEAD):
                    seen = self._seen_by(p, source)
                if p:
                    stage.ignore_noise(self.stages[0][1])
                rule = replace(stage.rule, components=caps[p])
                stage.fit_by(rule, seen, space=self.space, seed=seed + p, clock=clock, name=name)
            with clock.stage(PCA_OVERHEAD):
                shares = dict(zip(positions, self._shares(start, left), strict=True))
            # A block whose candidates are all wanted may have more that are.
            short = [p for p in positions if max(shares[p]) == caps[p] < bounds[p]]
            caps |= {p: min(bounds[p], _GROWTH * caps[p]) for p in short}
            waiting = sorted({*short, *self._affected(short)})

    def _shares(self, start: int, left: int) -> list[list[int]]:
        unit = self.stages[0][1].unit  # the same for all: energies are compared
        energies = [stage.energies(unit) for _, stage in self.stages[start:]]
        return pooled_ranks(energies, left, least=_ROUNDING * self.space.grid.nodes)

    def _affected(self, changed: Sequence[int]) -> list[int]:
        """Return the stages whose fit depends on any of some that have changed."""
        return [
            p
            for p, (_, stage) in enumerate(self.stages)
            if any(q < p and not stage.unaffected_by(self.stages[q][1]) for q in changed)
        ]

    def _seen_by(self, position: int, source: FieldSource) -> FieldSource:
        """Return what the stages before one leave of the fields, as far as it matters to it."""
        _, stage = self.stages[position]
        for _, earlier in self.stages[:position]:
            if not stage.unaffected_by(earlier):
                source = map_fields(source, residual_map(earlier))
        return source


def pooled_ranks(energies: Sequence[Tensor], size: int, *, least: float = 0.0) -> list[list[int]]:
    """Return the ranks of all blocks of all stages that keep the `size` largest energies.

    `energies` are (blocks, modes) for each stage. Of a block the leading modes are kept, at least
    one: a mode counts no more than any before it. Modes of at most the `least` energy are never
    kept but as the first.

    >>> pooled_ranks([torch.tensor([[9.0, 5.0, 1.0]]), torch.tensor([[4.0, 2.0], [3.0, 0.0]])], 4)
    [[2], [1, 1]]
    """
    ordered = [values.double().cummin(1).values for values in energies]
    for values in ordered:
        values[:, 0] = torch.inf
    everything = torch.cat([values.flatten() for values in ordered])
    best = everything.sort(descending=True, stable=True).indices[:size]
    kept = torch.zeros_like(everything, dtype=torch.bool).index_fill_(0, best, True)
    kept &= everything > least
    parts = kept.split([values.numel() for values in ordered])
    counts = [
        part.reshape(values.shape).sum(1) for part, values in zip(parts, ordered, strict=True)
    ]
    return [[int(rank) for rank in ranks] for ranks in counts]
