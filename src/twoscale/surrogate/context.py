"""What accompanies a fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from twoscale.clock import Clock
from twoscale.progress import Progress
from twoscale.source import FieldSource
from twoscale.training import Pairs, Plan, train


@dataclass(frozen=True)
class FieldPairs:
    """Input and solution fields of the same samples, each a chunked source."""

    inputs: FieldSource
    outputs: FieldSource


@dataclass
class FitContext:
    """Seed, stage timings, progress, and the loss histories that training leaves."""

    seed: int = 0
    clock: Clock = field(default_factory=Clock)
    progress: Progress | None = None
    histories: dict[str, dict[str, Any]] = field(default_factory=dict)

    def report(self, stage: str, done: int, total: int, remark: str = "") -> None:
        if self.progress:
            self.progress(stage, done, total, remark)

    def train(
        self,
        stage: str,
        network: nn.Module,
        training: Pairs,
        validation: Pairs,
        loss: Callable[[Tensor, Tensor], Tensor],
        plan: Plan,
        **hooks: Any,
    ) -> None:
        """Train `network` in place, timed and recorded as `stage`."""
        with self.clock.stage(stage):
            history = train(
                network,
                training,
                validation,
                loss,
                plan,
                seed=self.seed,
                progress=self.progress,
                name=stage,
                **hooks,
            )
        self.histories[stage] = history.as_dict()
