"""What a fit is asked for, what it measures, and its two kinds of work: PCA and training."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from twoscale.errors import TwoscaleWarning
from twoscale.fields.samples import Source
from twoscale.fields.source import FirstFields, gather
from twoscale.files import Checkpoints
from twoscale.parts import describe
from twoscale.representation import Representation
from twoscale.runtime import processes
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.precision import check_variation
from twoscale.runtime.progress import Clock, Progress, device_peak_gigabytes, reset_peak_memory
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.runtime.stages import TRAINING
from twoscale.training import Deadline, History, Task, TimeLimit, mean_loss, train_together


@dataclass(frozen=True)
class FittedRepresentation:
    """The state of a fitted representation, and what the fit cost."""

    state: dict[str, Tensor]
    seconds: dict[str, float]
    peak_gigabytes: float | None


FittedRepresentations = dict[tuple[str, str, str, int, int], FittedRepresentation]
"""Representations fitted on the same fields, by side, description, space, number of fields (their
images included) and seed."""


@dataclass(frozen=True)
class FitOptions:
    """How a fit is done.

    Parameters
    ----------
    seed
        The seed of everything random.
    progress
        Called as progress(stage, done, total, remark).
    checkpoints
        Keep results that took long, for a later process that continues the fit.
    data, name
        Identify the training fields, and the fit: data, parts and seed. Checkpoints need them.
    deadline
        The time by which each training ends; by default there is none.
    scratch
        Makes tensors as long as the data.
    fitted
        Representations that other fits have made of the same fields; this one adds its own.
    """

    seed: int = 0
    progress: Progress | None = None
    checkpoints: Checkpoints | None = None
    data: str = ""
    name: str = ""
    deadline: Deadline | None = None
    scratch: Scratch = IN_MEMORY
    fitted: FittedRepresentations = field(default_factory=dict)

    def report(self, stage: str, done: int, total: int, remark: str = "") -> None:
        if self.progress:
            self.progress(stage, done, total, remark)


@dataclass
class FitRecord:
    """What a fit has measured so far: seconds of its stages, loss histories, peak of GPU memory.

    The device's counter of memory is reset for each part of a fit, so that fits which alternate do
    not count each other's memory.
    """

    clock: Clock = field(default_factory=Clock)
    histories: dict[str, dict[str, Any]] = field(default_factory=dict)
    peak_gigabytes: float | None = None

    def end_part(self) -> float | None:
        """Return the peak of GPU memory since the last reset; count it, and reset."""
        peak = device_peak_gigabytes()
        self.count_peak(peak)
        reset_peak_memory()
        return peak

    def count_peak(self, gigabytes: float | None) -> None:
        """Raise the fit's peak of memory to at least `gigabytes`."""
        if gigabytes is not None:
            self.peak_gigabytes = max(gigabytes, self.peak_gigabytes or 0.0)


def fit_representation(
    representation: Representation,
    source: Source,
    options: FitOptions,
    record: FitRecord,
    *,
    name: str,
    warns: bool = True,
) -> None:
    """Fit the representation of inputs or outputs, or take an equal one that is fitted already.

    With `warns` the user is warned of fields that hardly vary.
    """
    seed = options.seed + (name == "output")
    if not representation.compresses:
        _fit(representation, source, seed, record.clock, name, warns=warns)
        return
    key = (name, repr(describe(representation)), repr(source.space), len(source), seed)
    checkpoint = options.checkpoints and options.checkpoints.named(repr((options.data, *key)))
    known = options.fitted.get(key)
    if known is None and checkpoint and (saved := checkpoint.load()):
        known = FittedRepresentation(saved.tensors, saved.facts["stages"], saved.facts["peak"])
    if known is not None:
        device = gather(FirstFields(source.fields, 1)).device  # checkpoints are read into memory
        state = {name: tensor.to(device) for name, tensor in known.state.items()}
        representation.restore(state, source.space)
    else:
        record.end_part()
        clock = Clock()
        _fit(representation, source, seed, clock, name, warns=warns)
        peak = record.end_part()
        known = FittedRepresentation(representation.state_dict(), clock.seconds, peak)
        if checkpoint and checkpoint.worthwhile():
            checkpoint.save(known.state, {"stages": known.seconds, "peak": peak})
    options.fitted[key] = known
    LOGGER.info(
        "%s representation: %d numbers per field, in %.2f s",
        name,
        representation.code_size,
        sum(known.seconds.values()),
    )
    for stage, taken in known.seconds.items():
        record.clock.add(stage, taken)
    record.count_peak(known.peak_gigabytes)


def _fit(
    representation: Representation,
    source: Source,
    seed: int,
    clock: Clock,
    name: str,
    *,
    warns: bool,
) -> None:
    representation.fit(source.fields, space=source.space, seed=seed, clock=clock, name=name)
    level = representation.mean_and_spread
    if warns and level is not None:
        check_variation(*level, f"training {name}")


def share_fitted(
    fitted: nn.Module, source: Source, restore: Callable[[dict[str, Tensor]], object]
) -> None:
    """Give all processes what the first one has fitted on some fields.

    The others `restore` its state on the device of the fields.
    """
    state: dict[str, Tensor] = {}
    if processes.is_first():
        state = {name: one.cpu() for name, one in fitted.state_dict().items()}
    state = processes.from_first(state)
    if not processes.is_first():
        device = next(source.fields.chunks()).device
        restore({name: one.to(device) for name, one in state.items()})
        fitted.to(device)  # networks are made on the CPU


def train_members(
    tasks: Sequence[Task],
    fits: Sequence[tuple[FitOptions, FitRecord]],
    *,
    stage: str = TRAINING.name,
    **hooks: Any,
) -> None:
    """Train networks in place, side by side, timed and recorded as `stage` of each one's fit.

    The time is divided equally among the networks; the peak of memory counts for each.
    """
    options = fits[0][0]
    clock, limit = Clock(), TimeLimit(options.deadline)
    with clock.stage(stage):
        starts = [None if "begin_epoch" in hooks else _untrained_loss(task) for task in tasks]
        if limit.deadline is not None:
            with limit.validating():  # once more: the first one may have started libraries
                _untrained_loss(tasks[0])
        histories = train_together(
            tasks,
            progress=options.progress,
            name=stage,
            checkpoints=options.checkpoints,
            keys=[repr((stage, one.name)) for one, _ in fits],
            limit=limit,
            **hooks,
        )
    peak = device_peak_gigabytes()
    seconds = clock.seconds[stage] + max(history.earlier_seconds for history in histories)
    for (_, record), history, start in zip(fits, histories, starts, strict=True):
        LOGGER.info(
            "%s: %d epochs in %.2f s, least validation loss %.3g",
            stage,
            len(history.validation_loss),
            seconds / len(tasks),
            min(history.validation_loss, default=math.nan),
        )
        _warn_of_divergence(history, start, stage)
        record.clock.add(stage, seconds / len(tasks))
        record.count_peak(peak)
        record.histories[stage] = {**history.as_dict(), "members": len(tasks)}


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
