"""The state of a fit in progress: seed, timings, memory, histories, shared results."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleWarning
from twoscale.fields.source import FieldSource, first_fields
from twoscale.files import Checkpoints
from twoscale.parts import describe
from twoscale.representation import Representation
from twoscale.representation.base import space_of
from twoscale.runtime import processes
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.precision import check_variation
from twoscale.runtime.progress import Progress
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.runtime.stages import TRAINING
from twoscale.runtime.timing import (
    Clock,
    device_peak_gigabytes,
    reset_peak_memory,
)
from twoscale.training import Deadline, History, Task, TimeLimit, mean_loss, train_together


@dataclass(frozen=True)
class FieldPairs:
    """Input and solution fields of the same samples, each a chunked source."""

    inputs: FieldSource
    outputs: FieldSource
    spaces: tuple[Space, Space] | None = None  # of both; by default of ordinary grids

    @property
    def input_space(self) -> Space:
        return space_of(self.inputs, self.spaces and self.spaces[0])

    @property
    def output_space(self) -> Space:
        return space_of(self.outputs, self.spaces and self.spaces[1])


@dataclass(frozen=True)
class SharedFit:
    """A fitted representation that others may take over, and what fitting it cost."""

    state: dict[str, Tensor]
    seconds: dict[str, float]
    peak_gigabytes: float | None


SharedFits = dict[tuple[str, str, str, int, int], SharedFit]
"""Representations fitted on the same fields, by side, description, space, number of fields (their
images included) and seed."""


@dataclass
class FitContext:
    """Seed, stage timings, peak memory, progress, and the loss histories that training leaves.

    `shared` holds representations that other surrogates have fitted on the same fields.
    `peak_gigabytes` is the peak of GPU memory in the finished parts of this fit. The device's
    counter is reset for each part, so that fits which alternate do not count each other's memory.
    `checkpoints` keep results that took long, for a later process that continues the fit. Each
    training ends by the `deadline`, if there is one. `scratch` makes tensors as long as the data.
    """

    seed: int = 0
    clock: Clock = field(default_factory=Clock)
    progress: Progress | None = None
    histories: dict[str, dict[str, Any]] = field(default_factory=dict)
    shared: SharedFits = field(default_factory=dict)
    peak_gigabytes: float | None = None
    checkpoints: Checkpoints | None = None
    data: str = ""  # identifies the training fields, for checkpoints of representations
    name: str = ""  # identifies data, parts and seed, for checkpoints of networks
    deadline: Deadline | None = None
    scratch: Scratch = IN_MEMORY

    def fit_representation(
        self,
        representation: Representation,
        fields: FieldSource,
        space: Space,
        *,
        seed: int,
        name: str,
    ) -> None:
        """Fit a representation, or take an equal one from `shared`, with its time and memory."""
        key = (name, repr(describe(representation)), repr(space), fields.shape[0], seed)
        checkpoint = self.checkpoints and self.checkpoints.named(repr((self.data, *key)))
        if key not in self.shared and checkpoint and (saved := checkpoint.load()):
            self.shared[key] = SharedFit(saved.tensors, saved.facts["stages"], saved.facts["peak"])
        if key in self.shared:
            representation.restore(self.shared[key].state, space)
        else:
            self.end_part()
            clock = Clock()
            representation.fit(fields, space=space, seed=seed, clock=clock, name=name)
            if (level := representation.mean_and_spread) is not None:
                check_variation(*level, f"training {name}")
            peak = self.end_part()
            fit = self.shared[key] = SharedFit(representation.state_dict(), clock.seconds, peak)
            if checkpoint and checkpoint.worthwhile():
                checkpoint.save(fit.state, {"stages": fit.seconds, "peak": peak})
        LOGGER.info(
            "%s representation: %d numbers per field, in %.2f s",
            name,
            representation.code_size,
            sum(self.shared[key].seconds.values()),
        )
        for stage, taken in self.shared[key].seconds.items():
            self.clock.add(stage, taken)
        self.count_peak(self.shared[key].peak_gigabytes)

    def end_part(self) -> float | None:
        """Return the peak of GPU memory since the last reset; add it to this fit's, and reset."""
        peak = device_peak_gigabytes()
        self.count_peak(peak)
        reset_peak_memory()
        return peak

    def count_peak(self, gigabytes: float | None) -> None:
        """Raise the fit's peak of memory to at least `gigabytes`."""
        if gigabytes is not None:
            self.peak_gigabytes = max(gigabytes, self.peak_gigabytes or 0.0)

    def report(self, stage: str, done: int, total: int, remark: str = "") -> None:
        if self.progress:
            self.progress(stage, done, total, remark)


def share_fitted(
    fitted: nn.Module, fields: FieldSource, restore: Callable[[dict[str, Tensor]], object]
) -> None:
    """Give all processes what the first one has fitted on some fields.

    The others `restore` its state on the device of the fields.
    """
    state: dict[str, Tensor] = {}
    if processes.is_first():
        state = {name: one.cpu() for name, one in fitted.state_dict().items()}
    state = processes.from_first(state)
    if not processes.is_first():
        device = first_fields(fields, 1).device
        restore({name: one.to(device) for name, one in state.items()})
        fitted.to(device)  # networks are made on the CPU


def train_members(
    tasks: Sequence[Task],
    contexts: Sequence[FitContext],
    *,
    stage: str = TRAINING.name,
    **hooks: Any,
) -> None:
    """Train networks in place, side by side, timed and recorded as `stage` of each one's fit.

    The time is divided equally among the networks; the peak of memory counts for each.
    """
    clock, limit = Clock(), TimeLimit(contexts[0].deadline)
    with clock.stage(stage):
        starts = [None if "begin_epoch" in hooks else _untrained_loss(task) for task in tasks]
        if limit.deadline is not None:
            with limit.validating():  # once more: the first one may have started libraries
                _untrained_loss(tasks[0])
        histories = train_together(
            tasks,
            progress=contexts[0].progress,
            name=stage,
            checkpoints=contexts[0].checkpoints,
            keys=[repr((stage, context.name)) for context in contexts],
            limit=limit,
            **hooks,
        )
    peak = device_peak_gigabytes()
    seconds = clock.seconds[stage] + max(history.earlier_seconds for history in histories)
    for context, history, start in zip(contexts, histories, starts, strict=True):
        LOGGER.info(
            "%s: %d epochs in %.2f s, least validation loss %.3g",
            stage,
            len(history.validation_loss),
            seconds / len(tasks),
            min(history.validation_loss, default=math.nan),
        )
        _warn_of_divergence(history, start, stage)
        context.clock.add(stage, seconds / len(tasks))
        context.count_peak(peak)
        context.histories[stage] = {**history.as_dict(), "members": len(tasks)}


def _untrained_loss(task: Task) -> float:
    """Return the validation loss before the first step."""
    if task.validate:
        return float(task.validate())
    return float(mean_loss(task.network, task.loss, task.validation, task.plan.evaluation_batch))


def _warn_of_divergence(history: History, start: float | None, stage: str) -> None:
    risen = history.divergence(start)
    if risen is not None:
        warnings.warn(
            f"{stage} diverged: the validation loss rose from {risen.start:.2g} to "
            f"{risen.highest:.2g} from epoch {risen.epoch} on and did not come back; the best "
            f"weights are kept, those of epoch {history.best_epoch + 1}, but try a smaller "
            "learning_rate",
            TwoscaleWarning,
            stacklevel=2,
        )
