"""The driver of every fit: of one surrogate or of several, whose networks are trained together."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleWarning
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.samples import Source
from twoscale.files import Checkpoints, WorkFolder, working
from twoscale.files.checksums import tensor_digest
from twoscale.networks import DenseNetwork
from twoscale.operators.fitting import FitOptions, FitRecord, train_members
from twoscale.operators.operators import FieldOperator
from twoscale.operators.spec import SurrogateSpec
from twoscale.predictors.base import check_weights
from twoscale.predictors.symmetry_evidence import SymmetryEvidence
from twoscale.problems import Problem
from twoscale.runtime import processes
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.progress import Clock, add_seconds, now, reset_peak_memory
from twoscale.runtime.stages import CALIBRATION
from twoscale.surrogate.artifact import environment
from twoscale.surrogate.options import declared_processes
from twoscale.surrogate.prediction import batched
from twoscale.training import Task
from twoscale.trust import Trust

_SMALL = 256  # codes of up to this size may be padded: they hardly decide the time of a step


@dataclass(frozen=True)
class FittedState:
    """All that a fit makes and measures: what a surrogate holds, saves, loads and fine-tunes.

    The attributes of `Surrogate` with an underscore at their end read it, and say what it holds.
    """

    operator: FieldOperator
    spaces: tuple[Space, Space]  # of inputs and outputs
    ranks: tuple[int, int]
    training_samples: int
    timings: dict[str, float] = field(default_factory=dict)
    peak_device_gigabytes: float | None = None
    trained_together: int = 1
    chosen: dict[str, Any] = field(default_factory=dict)
    history: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: dict[str, float | None] = field(default_factory=dict)
    finetuning: dict[str, Any] | None = None
    trust: Trust | None = None

    def measured(self, operator: FieldOperator, record: FitRecord) -> FittedState:
        """Return the same with a newly fitted operator, and what its fit has measured."""
        check_weights(operator)
        record.end_part()
        return replace(
            self,
            operator=operator,
            timings=add_seconds(self.timings, record.clock.seconds),
            peak_device_gigabytes=record.peak_gigabytes,
            history=record.histories,
            errors={},
        )


@dataclass(frozen=True)
class Fit:
    """A fit that is wanted.

    Parameters
    ----------
    spec
        The parts of the surrogate.
    read
        Returns the pairs to fit on; it is called when they are needed.
    options
        The seed, and how the fit is done.
    device
        Where the fit takes place.
    problem
        The equation, if it is known.
    batch_size
        Fields that are predicted at a time, for the calibration; by default as many as fit a chunk.
    learns_trust
        Whether the range of the inputs is learned and, with calibration pairs, a band. True by
        default.
    label
        What is fitted, for the log.
    """

    spec: SurrogateSpec
    read: Callable[[], SplitData]
    options: FitOptions
    device: torch.device
    problem: Problem | None = None
    batch_size: int | None = None
    learns_trust: bool = True
    label: object = ""


Finished = Callable[[int, FittedState], None]
"""Called with the place of each fit that is ready, and what it made."""

Failed = Callable[[int, Exception], None]
"""Called with the place and the error of a fit that failed."""


def run_fits(fits: Sequence[Fit], finished: Finished, failed: Failed | None = None) -> None:
    """Do some fits, with their networks trained together where they can.

    Networks with the same hidden layers, batches and number of samples are trained as one batched
    network; any other is trained alone, at once. Neighbours with the same data (`options.data`)
    share what is fitted on them (`options.fitted`, one dictionary for all). With `failed` an error
    ends one fit; by default it is raised.
    """
    _Driver(fits, finished, failed).run()


def run_fit(fit: Fit) -> FittedState:
    """Return what one fit makes."""
    states: list[FittedState] = []
    run_fits([fit], lambda _, state: states.append(state))
    return states[0]


@dataclass
class _Running:
    """A fit in progress: its operator, its pairs on the device, and what it has measured."""

    place: int
    operator: FieldOperator
    data: SplitData | None  # none while the network waits for its training
    state: FittedState
    # For a calibration: pairs that take no part in the fit, and those that choose weights.
    apart: tuple[Pairs, Pairs] | None
    record: FitRecord = field(default_factory=FitRecord)
    seconds: float = 0.0  # of the range of inputs


@dataclass(frozen=True)
class _Waiting:
    """A fit whose network waits for its training, with the weights before it."""

    running: _Running
    task: Task
    start: dict[str, Tensor]

    @property
    def kind(self) -> Hashable:
        """Return what networks must have in common to be trained together at little waste."""
        task, sizes = self.task, (self.task.training.inputs, self.task.training.targets)
        plan = replace(task.plan, learning_rate=1.0, weight_decay=0.0, patience=1)
        hidden = tuple(len(values) for values in self.start.values())[:-2]
        magnitudes = [round(math.log(max(codes.shape[1], _SMALL), 4)) for codes in sizes]
        return hidden, len(task.training), task.training.inputs.device, plan, *magnitudes


class _Driver:
    """Some fits, with those that wait for their training."""

    def __init__(self, fits: Sequence[Fit], finished: Finished, failed: Failed | None) -> None:
        self.fits = fits
        self.finished = finished
        self.failed = failed
        self.waiting: dict[Hashable, list[_Waiting]] = {}
        self._range: tuple[Hashable, Trust, float] | None = None  # learned last, and its seconds

    def run(self) -> None:
        """Do all fits: representations one by one, then the networks that waited."""
        for place, fit in enumerate(self.fits):
            if place and fit.options.data != self.fits[place - 1].options.data:
                fit.options.fitted.clear()
            self._attempt(place, self._begin)
        while self.waiting:
            _, group = self.waiting.popitem()
            for one in self._trained(group):
                self._attempt(one.running.place, partial(self._resume, running=one.running))

    def _attempt(self, place: int, work: Callable[[int], None]) -> None:
        """Do some work on a fit; report its failure, or raise it if nobody listens."""
        try:
            work(place)
        except Exception as error:
            if self.failed is None:
                raise
            self.failed(place, error)

    def _begin(self, place: int) -> None:
        """Fit the representations; let a network on codes wait, or complete the fit."""
        fit = self.fits[place]
        running, data = self._opened(place)
        if fit.learns_trust:
            trust, running.seconds = self._learned_range(fit, data.training.inputs)
            running.state = replace(running.state, trust=trust)
        reset_peak_memory()
        task = running.operator.prepare(data, fit.options, running.record)
        if task is not None and len(self.fits) > 1 and isinstance(task.network, DenseNetwork):
            running.record.end_part()
            running.data = None
            start = {name: value.clone() for name, value in task.network.state_dict().items()}
            one = _Waiting(running, task, start)
            self.waiting.setdefault(one.kind, []).append(one)
            return
        if task is not None:
            train_members([task], [(fit.options, running.record)])
        self._complete(running)

    def _opened(self, place: int) -> tuple[_Running, SplitData]:
        """Return a fit that is ready to be done: everything checked, fields on the device."""
        fit = self.fits[place]
        given = fit.read()
        training = given.training
        LOGGER.info("fitting %r on %s, %d pairs", fit.label, fit.device, len(training))
        declared_processes()  # raises if the variable is wrong: before the work, not after it
        if fit.problem is not None:
            fit.problem.check_spaces(*training.spaces)
        operator = fit.spec.operator()
        operator.check(*training.spaces, len(training))
        # Where several processes train together, each keeps its part of the training fields only.
        shared = fit.spec.data_parallel and processes.count() > 1
        data = SplitData(
            training.on(fit.device, resident=not shared), given.validation.on(fit.device)
        )
        ranks = (training.inputs.rank, training.outputs.rank)
        state = FittedState(operator, training.spaces, ranks, len(training))
        # Pairs that are not needed for a calibration must not stay in memory.
        apart = None if given.calibration is None else (given.calibration, given.validation)
        return _Running(place, operator, data, state, apart), data

    def _learned_range(self, fit: Fit, inputs: Source) -> tuple[Trust, float]:
        """Return the range of training inputs and its seconds; the same data share it."""
        name = (fit.options.data, fit.options.seed, len(inputs))
        if self._range is None or self._range[0] != name:
            start = now()
            trust = Trust.of_inputs(inputs)
            self._range = name, trust, now() - start
        return self._range[1:]

    def _trained(self, group: list[_Waiting]) -> list[_Waiting]:
        """Train some networks together; return those that did not fail."""
        reset_peak_memory()  # of what was fitted in between
        fits = [(self.fits[one.running.place].options, one.running.record) for one in group]
        try:
            train_members([one.task for one in group], fits)
            return group
        except Exception as error:
            if self.failed is None:
                raise
            if len(group) == 1:
                self.failed(group[0].running.place, error)
                return []
        # One of them diverged, or they are too many for the device: train each by itself. This is
        # outside of the handler, where the error no longer keeps tensors on the device.
        for one in group:
            one.task.network.load_state_dict(one.start)
        return [ready for one in group for ready in self._trained([one])]

    def _resume(self, place: int, *, running: _Running) -> None:
        """Complete a fit whose network is trained, with its fields if it needs them again."""
        reset_peak_memory()  # of those finished before
        if running.operator.completes_on_fields:
            running.data = self._opened(place)[1]
        self._complete(running)

    def _complete(self, running: _Running) -> None:
        fit, operator, record = self.fits[running.place], running.operator, running.record
        operator.complete(running.data, fit.options, record)
        if fit.learns_trust:
            record.clock.add(CALIBRATION.name, running.seconds)
        members = (history.get("members", 1) for history in record.histories.values())
        state = replace(
            running.state.measured(operator.to(fit.device), record),
            trained_together=max(members, default=1),
            chosen=dict(operator.code_operator.predictor.chosen),
        )
        LOGGER.info("fitted in %.1f s", sum(state.timings.values()))
        if fit.learns_trust and running.apart is not None:
            state = calibrated(
                state, *running.apart, problem=fit.problem, device=fit.device, batch=fit.batch_size
            )
        self.finished(running.place, state)


def with_trust(state: FittedState, data: SplitData, **options: Any) -> FittedState:
    """Return a state that knows the range of its inputs and, with calibration pairs, a band.

    Options are those of `calibrated`.
    """
    if state.trust is None:
        clock = Clock()
        inputs = data.training.inputs.to(options["device"], resident=False)
        with clock.stage(CALIBRATION.name):
            trust = Trust.of_inputs(inputs)
        state = replace(state, trust=trust, timings=add_seconds(state.timings, clock.seconds))
    if data.calibration is None:
        return state
    return calibrated(state, data.calibration, data.validation, **options)


def calibrated(
    state: FittedState,
    calibration: Pairs,
    choice: Pairs | None = None,
    *,
    problem: Problem | None,
    device: torch.device,
    batch: int | None = None,
) -> FittedState:
    """Return a state whose trust has a band, by the errors of pairs that took no part in the fit.

    Pairs of `choice` may have taken part in the choice of weights; those of the band must not.
    """
    clock = Clock()
    with clock.stage(CALIBRATION.name):
        predict = batched(state.operator, state.spaces, device, batch)
        apart = calibration.on(device)
        trust = state.trust or Trust.of_inputs(apart.inputs)
        seen = None if choice is None else choice.on(device)
        trust = trust.calibrate(state.operator, problem, predict, apart, seen)
    return replace(state, trust=trust, timings=add_seconds(state.timings, clock.seconds))


def warn_of_symmetries(name: str, training: Pairs, *, stacklevel: int = 3) -> None:
    """Warn if the training pairs speak clearly against the symmetries that multiply them."""
    if name == "none":
        return
    sides = (training.inputs.fields, training.outputs.fields)
    if against := SymmetryEvidence(sides, training.spaces).against(name):
        warnings.warn(
            f"the data speak against symmetries={name}: {against}; fit with symmetries=none and "
            "compare, or look for a mistake in the data",
            TwoscaleWarning,
            stacklevel=stacklevel,
        )


def kept_checkpoints(
    work: WorkFolder,
    asked: dict[str, Any],
    *,
    device: torch.device,
    resume: bool = True,
    any_threads: bool = False,
) -> Checkpoints:
    """Return the checkpoints of a request in a work folder.

    Checkpoints of another request, device or library version are removed, and so are those of
    another number of threads, unless `any_threads` may go on. Without `resume` all are.
    """
    made_by = environment(device)
    if any_threads:
        del made_by["threads"]
    request = {**asked, "environment": made_by}
    if not (resume and work.continues(request)):
        work.restart(request)
    return Checkpoints(work.checkpoints)


@contextmanager
def checkpoints_beside(
    place: str | Path | None, spec: SurrogateSpec, seed: int, data: SplitData, device: torch.device
) -> Iterator[Checkpoints | None]:
    """Yield the checkpoints of a fit on some fields beside a path; they are removed in the end."""
    if place is None:
        yield None
        return
    path = Path(place).resolve()
    sides = [side for pairs in (data.training, data.validation) for side in vars(pairs).values()]
    fields = [_digest(side) for side in sides]
    request = {"parts": spec.describe(), "seed": seed, "fields": fields}
    with working(path, subject=f"fitting with the checkpoints of {path}") as work:
        yield kept_checkpoints(work, request, device=device)


def _digest(source: Source) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for batch in source.batches.chunks():
        for values in batch.tensors:
            digest.update(tensor_digest(values.cpu()).encode())
    return digest.hexdigest()
