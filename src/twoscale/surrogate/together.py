"""Several surrogates fitted at once: their latent networks are trained side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from torch import Tensor

from twoscale.files import Checkpoints
from twoscale.networks import DenseNetwork
from twoscale.operators.context import SharedFits, train_members
from twoscale.runtime.progress import Progress, ShowProgress, reporting
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.runtime.stages import CALIBRATION
from twoscale.runtime.timing import now, reset_peak_memory
from twoscale.surrogate.fitting import Fitting
from twoscale.surrogate.inputs import Door, Pair
from twoscale.surrogate.surrogate import Surrogate
from twoscale.training import Task
from twoscale.trust import Trust

Data = tuple[Any, ...]
"""Inputs, outputs and validation (or None) of one surrogate; parameters may follow."""
GivenData = Data | Callable[[], Data]
Failed = Callable[[int, Exception], None]

_SMALL = 256  # codes of up to this size may be padded: they hardly decide the time of a step


def fit_together(
    surrogates: Sequence[Surrogate],
    data: Iterable[GivenData],
    *,
    same: Sequence[Hashable] | None = None,
    trusted: Sequence[bool] | None = None,
    progress: ShowProgress = None,
    finished: Callable[[int], None] | None = None,
    failed: Failed | None = None,
    checkpoints: Checkpoints | None = None,
    scratch: Scratch = IN_MEMORY,
) -> None:
    """Fit several surrogates, each on its own data and as its `fit` would.

    Networks with the same hidden layers, batches and number of samples are trained as one batched
    network; any other is trained alone.

    Parameters
    ----------
    surrogates
        Surrogates to be fitted: seeds and variants of any methods.
    data
        (inputs, outputs, validation) of each surrogate, where validation is None or as for `fit`;
        parameters may follow. Or functions that return them: then only one surrogate's fields are
        in memory at a time. With validation pairs a surrogate is not calibrated; it knows the range
        of its inputs.
    same
        A name for the data of each surrogate. Neighbours with the same data share equal
        representations. By default all data differ.
    trusted
        Whether each surrogate learns the range of its inputs and, if pairs are held out for that,
        is calibrated. By default all do.
    progress
        True shows a bar; a function is called as progress(stage, done, total, remark). By default
        nothing is shown.
    finished
        Called with the place of each surrogate that is ready.
    failed
        Called with the place and the error of a surrogate that failed; the others go on. By default
        the error is raised.
    checkpoints
        Where the state is kept. A later call goes on with surrogates of the same parts, seed and
        data (by their name in `same`). By default nothing is kept.
    scratch
        As for `Surrogate.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((40, 8, 8))
    >>> seeds = [Surrogate("global", seed=seed, epochs=2) for seed in (0, 1)]
    >>> fit_together(seeds, [(x, x.cumsum(axis=2), None)] * 2, same=["x", "x"])
    >>> seeds[1].predict(x[:3]).shape
    (3, 8, 8)
    """
    names = [repr(one) for one in same or range(len(surrogates))]
    with reporting(progress) as report:
        fits = _Fits(surrogates, report, finished, failed, checkpoints, names, trusted, scratch)
        shared: SharedFits = {}
        for place, given in enumerate(data):
            if same is None or not place or same[place] != same[place - 1]:
                shared = {}
            fits.attempt(place, partial(fits.begin, given=given, shared=shared))
            del given  # before the next one's fields are loaded
        fits.train()


@dataclass(frozen=True)
class _Waiting:
    """A surrogate whose network waits for its training, and how to get its fields again."""

    place: int
    fitting: Fitting
    task: Task
    data: GivenData | None
    start: dict[str, Tensor]

    @classmethod
    def of(cls, place: int, fitting: Fitting, task: Task, data: GivenData) -> Self:
        start = {name: value.clone() for name, value in task.network.state_dict().items()}
        again = data if fitting.operator.completes_on_fields else None
        return cls(place, fitting.without_fields(), task, again, start)

    @property
    def kind(self) -> Hashable:
        """Return what networks must have in common to be trained together at little waste."""
        task, sizes = self.task, (self.task.training.inputs, self.task.training.targets)
        plan = replace(task.plan, learning_rate=1.0, weight_decay=0.0, patience=1)
        hidden = tuple(len(values) for values in self.start.values())[:-2]
        magnitudes = [round(math.log(max(codes.shape[1], _SMALL), 4)) for codes in sizes]
        return hidden, len(task.training), task.training.inputs.device, plan, *magnitudes


class _Fits:
    """The fits of some surrogates, with those that wait for their training."""

    def __init__(
        self,
        surrogates: Sequence[Surrogate],
        progress: Progress | None,
        finished: Callable[[int], None] | None,
        failed: Failed | None,
        checkpoints: Checkpoints | None,
        data: Sequence[str],
        trusted: Sequence[bool] | None,
        scratch: Scratch,
    ) -> None:
        self.scratch = scratch
        self.checkpoints = checkpoints
        self.data = data
        self.surrogates = surrogates
        self.progress = progress
        self.finished = finished
        self.failed = failed
        self.waiting: dict[Hashable, list[_Waiting]] = {}
        self.trusted = trusted
        self.learned: dict[int, tuple[Trust, Pair | None, Pair | None]] = {}
        self._latest: tuple[Hashable, Trust, float] | None = None  # the range learned last

    def attempt(self, place: int, work: Callable[[int], None]) -> None:
        """Do some work on a surrogate; report its failure, or raise it if nobody listens."""
        try:
            work(place)
        except Exception as error:
            if self.failed is None:
                raise
            self.failed(place, error)

    def begin(self, place: int, *, given: GivenData, shared: SharedFits) -> None:
        """Fit the representations; let a network on codes wait, or complete the fit."""
        fitting = self._begin(place, given)
        context = fitting.context
        context.shared = shared
        if self.checkpoints is not None:
            surrogate = self.surrogates[place]
            context.checkpoints, context.data = self.checkpoints, self.data[place]
            context.name = repr((context.data, surrogate.parts.describe(), surrogate.seed))
        task = fitting.operator.prepare(fitting.training, fitting.validation, fitting.context)
        if task is not None and not isinstance(task.network, DenseNetwork):
            train_members([task], [fitting.context])  # it is trained alone, on large data
            task = None
        if task is None:
            self._complete(place, fitting)
            return
        fitting.context.end_part()
        one = _Waiting.of(place, fitting, task, given)
        self.waiting.setdefault(one.kind, []).append(one)

    def _begin(self, place: int, given: GivenData) -> Fitting:
        inputs, outputs, validation, *rest = given() if callable(given) else given
        parameters = rest[0] if rest else None
        surrogate = self.surrogates[place]
        door = Door(surrogate.periodic)
        training, choice, calibration = door.parts(
            inputs, outputs, parameters, validation, None, surrogate.seed
        )
        fitting = surrogate.begin(training, choice, progress=self.progress, scratch=self.scratch)
        if place not in self.learned and (self.trusted is None or self.trusted[place]):
            known = self._range(place, fitting)
            # Pairs that are not needed for a calibration must not stay in memory.
            self.learned[place] = (known, calibration and choice, calibration)
        return fitting

    def _range(self, place: int, fitting: Fitting) -> Trust:
        """Return the range of training inputs; neighbours with the same data share it."""
        name = (self.data[place], self.surrogates[place].seed, fitting.samples)
        if self._latest is None or self._latest[0] != name:
            start = now()
            pairs = fitting.training
            found = Trust.of_inputs(pairs.inputs, pairs.input_space)
            self._latest = (name, found, now() - start)
        fitting.context.clock.add(CALIBRATION.name, self._latest[2])
        return self._latest[1]

    def train(self) -> None:
        """Train the waiting networks, those that can together; complete their surrogates."""
        while self.waiting:
            _, group = self.waiting.popitem()
            for one in self._trained(group):
                self.attempt(one.place, partial(self._finish, one=one))

    def _trained(self, group: list[_Waiting]) -> list[_Waiting]:
        """Train some networks together; return those that did not fail."""
        reset_peak_memory()  # of what was fitted in between
        try:
            train_members([one.task for one in group], [one.fitting.context for one in group])
            return group
        except Exception as error:
            if self.failed is None:
                raise
            if len(group) == 1:
                self.failed(group[0].place, error)
                return []
        # One of them diverged, or they are too many for the device: train each by itself. This is
        # outside of the handler, where the error no longer keeps tensors on the device.
        for one in group:
            one.task.network.load_state_dict(one.start)
        return [ready for one in group for ready in self._trained([one])]

    def _finish(self, place: int, *, one: _Waiting) -> None:
        fitting = one.fitting
        reset_peak_memory()  # of those finished before
        if one.data is not None:
            again = self._begin(place, one.data)
            fitting = replace(fitting, training=again.training, validation=again.validation)
        self._complete(place, fitting)

    def _complete(self, place: int, fitting: Fitting) -> None:
        fitting.operator.complete(fitting.training, fitting.validation, fitting.context)
        surrogate = self.surrogates[place].finish(fitting)
        if place in self.learned:
            surrogate.learn_band(*self.learned.pop(place))
        if self.finished:
            self.finished(place)
