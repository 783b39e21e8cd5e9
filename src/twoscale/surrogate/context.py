"""What accompanies a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from twoscale.clock import Clock
from twoscale.progress import Progress
from twoscale.representation import Representation
from twoscale.source import FieldSource
from twoscale.training import Task, train_together


@dataclass(frozen=True)
class FieldPairs:
    """Input and solution fields of the same samples, each a chunked source."""

    inputs: FieldSource
    outputs: FieldSource


SharedFits = dict[tuple[str, str, int, int], tuple[dict[str, Tensor], dict[str, float]]]
"""Representations fitted on the same fields: name, what it is, number of fields (their images
included) and seed, to state and seconds."""


@dataclass
class FitContext:
    """Seed, stage timings, progress, and the loss histories that training leaves.

    `shared` holds what other surrogates have fitted on the same fields already.
    """

    seed: int = 0
    clock: Clock = field(default_factory=Clock)
    progress: Progress | None = None
    histories: dict[str, dict[str, Any]] = field(default_factory=dict)
    shared: SharedFits = field(default_factory=dict)

    def fit_representation(
        self, representation: Representation, fields: FieldSource, *, seed: int, name: str
    ) -> None:
        """Fit a representation, or take over an equal one; either costs what fitting it cost."""
        key = (name, repr(representation), fields.shape[0], seed)
        if key in self.shared:
            state, seconds = self.shared[key]
            representation.restore(state)
        else:
            clock = Clock()
            representation.fit(fields, seed=seed, clock=clock, name=name)
            seconds = clock.seconds
            self.shared[key] = (representation.state_dict(), seconds)
        for stage, taken in seconds.items():
            self.clock.add(stage, taken)

    def report(self, stage: str, done: int, total: int, remark: str = "") -> None:
        if self.progress:
            self.progress(stage, done, total, remark)


def train_members(
    tasks: Sequence[Task], contexts: Sequence[FitContext], *, stage: str = "training", **hooks: Any
) -> None:
    """Train networks in place, side by side, timed and recorded as `stage` of each one's fit.

    Of the time that several take together each is charged an equal share.
    """
    clock = Clock()
    with clock.stage(stage):
        histories = train_together(tasks, progress=contexts[0].progress, name=stage, **hooks)
    for context, history in zip(contexts, histories, strict=True):
        context.clock.add(stage, clock.seconds[stage] / len(tasks))
        context.histories[stage] = {**history.as_dict(), "members": len(tasks)}
