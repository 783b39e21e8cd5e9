"""Candidates fitted on fields, and their errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.source import Batch
from twoscale.files import Checkpoints
from twoscale.math.measures import Compared, relative_errors
from twoscale.operators.fitting import FitOptions, FittedRepresentations
from twoscale.representation import Representation
from twoscale.representation.geometry import NearestCodes
from twoscale.runtime.memory import is_out_of_memory
from twoscale.runtime.progress import Progress, now
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.runtime.stages import TRAINING
from twoscale.search.space import Candidate, SearchSpace
from twoscale.search.trials import Outcome, Trial
from twoscale.surrogate import Surrogate
from twoscale.surrogate.driver import run_fit
from twoscale.training import Deadline

Following = Callable[[], Trial | None]
"""Gives the candidate to fit next; None if there is none until another one is ready."""

Attempt = tuple[Trial, Outcome | TwoscaleError]


class FieldFitter:
    """Fits candidates on the same fields, equal representations once, and keeps the best."""

    def __init__(
        self,
        space: SearchSpace,
        training: Pairs,
        validation: Pairs,
        options: Mapping[str, Any],
        clock: Callable[[], float] = now,
        progress: Progress | None = None,
        checkpoints: Checkpoints | None = None,
        afterwards: Callable[[Surrogate], float] | None = None,
        scratch: Scratch = IN_MEMORY,
    ) -> None:
        self.scratch = scratch
        self.checkpoints = checkpoints  # of the candidate that is being fitted
        self.space = space
        self.training = training
        self.validation = validation
        self.validation_samples = len(validation.inputs)
        self.best: Surrogate | None = None
        self.least = math.inf  # the validation error of the best one
        self._representations: FittedRepresentations = {}
        self.options = options  # of every surrogate: seed, device, problem
        self.clock = clock  # deadlines are times of it
        self.progress = progress  # called inside a fit
        self._afterwards = afterwards  # estimates the seconds that are needed after the search
        self._reserve: float | None = None
        _check_not_zero(validation)

    @property
    def reserve(self) -> float:
        """Return the seconds that are needed after the search, estimated with the first fit."""
        if self._reserve is None and self.best is not None:
            self._reserve = self._afterwards(self.best) if self._afterwards else 0.0
        return self._reserve or 0.0

    def attempts(self, following: Following) -> Iterator[Attempt]:
        """Fit the candidates that `following` gives; yield each with its outcome or its error.

        Here one follows the other. Several may be fitted at a time. The end is when none is, and
        None follows.
        """
        while (trial := following()) is not None:
            try:
                yield trial, self.fit(trial.candidate, trial.deadline)
            except TwoscaleError as error:
                yield trial, error

    def fit(self, candidate: Candidate, deadline: float | None = None) -> Outcome:
        """Fit a candidate and measure its errors; its training ends by the deadline."""
        surrogate, outcome = self.measured(candidate, deadline)
        self.keep(surrogate, outcome.error)
        return outcome

    def keep(self, surrogate: Surrogate, error: float) -> None:
        """Keep a surrogate if its validation error is the least so far."""
        if error < self.least:
            assert surrogate.state_ is not None
            surrogate.state_ = replace(surrogate.state_, errors={"validation": error})
            self.least, self.best = error, surrogate

    def measured(self, candidate: Candidate, deadline: float | None) -> tuple[Surrogate, Outcome]:
        """Return a fitted candidate and its errors."""
        with _refused_if_too_large(candidate):
            return self._measured(candidate, deadline)

    def _measured(self, candidate: Candidate, deadline: float | None) -> tuple[Surrogate, Outcome]:
        epochs = _EpochTimes(self.clock, self.progress)
        surrogate = self._fitted(
            candidate, self.training, self._representations, progress=epochs, deadline=deadline
        )
        began = self.clock()
        code_operator = surrogate.operator_.code_operator
        predict = surrogate.predict_batch
        run = _epochs_run(surrogate, probed=candidate.probed)
        errors = _errors(predict, self.validation)
        measured = Outcome(
            error=errors["mean_relative_l2"],
            mre=errors["mre"],
            training_error=_error(predict, self.training.first(self.validation_samples)),
            oracle=self._oracle(code_operator.outputs),
            input_code=code_operator.input_code_size,
            output_code=code_operator.outputs.code_size,
            tuned=_tuned(candidate, surrogate),
            epoch_seconds=epochs.mean(run) if run and candidate.probed else None,
            epochs=run,
        )
        return surrogate, replace(measured, measuring=self.clock() - began)

    def _oracle(self, outputs: Representation) -> float:
        """Return the error of the nearest validation fields that the code can express."""
        if not outputs.compresses:
            return 0.0
        nearest = NearestCodes(outputs)
        truth = Pairs(self.validation.outputs, self.validation.outputs)
        return _error(lambda batch: outputs.decode(nearest(batch.fields)), truth)

    def half_error(self, candidate: Candidate, deadline: float | None = None) -> float:
        """Return the validation error of a candidate that learns from half of the samples."""
        half = self.training.first(self.space.samples // 2)
        with _refused_if_too_large(candidate):
            surrogate = self._fitted(candidate, half, {}, progress=self.progress, deadline=deadline)
            return _error(surrogate.predict_batch, self.validation)

    def _fitted(
        self,
        candidate: Candidate,
        training: Pairs,
        representations: FittedRepresentations,
        progress: Progress | None = None,
        deadline: float | None = None,
    ) -> Surrogate:
        settings = self.space.settings(candidate)
        surrogate = Surrogate(candidate.chain, **self.options, **settings)
        options = FitOptions(
            progress=progress,
            checkpoints=self.checkpoints,
            name=f"{len(training)} {self.space.identity(candidate)}",
            deadline=None if deadline is None else Deadline(deadline, self.clock),
            scratch=self.scratch,
            fitted=representations,
        )
        data = SplitData(training, self.validation)
        state = run_fit(surrogate.wanted_fit(lambda: data, options, learns_trust=False))
        if (cut := state.history.get(TRAINING.name, {}).get("cut_after")) is not None:
            # A fit by these settings is then as long as this one was.
            settings |= {"epochs": math.ceil(cut)}
            surrogate = Surrogate(candidate.chain, **self.options, **settings)
        surrogate.state_ = state
        return surrogate


def _epochs_run(surrogate: Surrogate, *, probed: bool) -> float | None:
    """Return the epochs of a training that was probed or that a deadline ended."""
    history = surrogate.history_.get(TRAINING.name)
    if history is None:
        return None
    return history.get("cut_after") or (len(history["validation_loss"]) if probed else None)


class _EpochTimes:
    """A progress function that measures the seconds of an epoch; it calls `progress` in turn."""

    def __init__(self, clock: Callable[[], float], progress: Progress | None) -> None:
        self.clock = clock
        self.progress = progress
        self.begun = clock()  # the first step
        self.ends: list[float] = []

    def __call__(self, stage: str, done: int, total: int, remark: str) -> None:
        if stage == TRAINING.name and done:
            self.ends.append(self.clock())
        else:
            self.begun = self.clock()
        if self.progress:
            self.progress(stage, done, total, remark)

    def mean(self, run: float) -> float | None:
        """Return the mean seconds of an epoch: of all but the first, or of a part of the first.

        `run` is the number of epochs. There is none if a training was taken from a checkpoint.
        """
        if len(self.ends) > 1:
            return max(1e-6, (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1))
        return max(1e-6, (self.ends[0] - self.begun) / run) if self.ends else None


def _check_not_zero(pairs: Pairs) -> None:
    """Raise if all outputs are zero: there are no errors relative to them."""
    largest = max(float(chunk.abs().max()) for chunk in pairs.outputs.fields.chunks())
    if largest == 0:
        raise TwoscaleError(
            "all validation outputs are zero, so that relative errors have no meaning: "
            "check the data, or name a method"
        )


@contextmanager
def _refused_if_too_large(candidate: Candidate) -> Iterator[None]:
    """Raise a TwoscaleError, which a search skips, if memory or a decomposition fails."""
    try:
        yield
    except Exception as error:
        if not (isinstance(error, torch.linalg.LinAlgError) or is_out_of_memory(error)):
            raise
        raise TwoscaleError(f"{candidate.label} is too large for this machine: {error}") from error


@torch.no_grad()
def _errors(predict: Callable[[Batch], Tensor], pairs: Pairs) -> dict[str, float]:
    """Return both relative L2 errors of predictions, as the metrics count them."""
    return relative_errors(
        Compared(predict(seen).double(), truth.double()) for seen, truth in pairs.chunks()
    )


def _error(predict: Callable[[Batch], Tensor], pairs: Pairs) -> float:
    """Return the mean relative L2 error of predictions, which a search chooses by."""
    return _errors(predict, pairs)["mean_relative_l2"]


def _tuned(candidate: Candidate, surrogate: Surrogate) -> tuple[tuple[str, Any], ...]:
    """Return the settings that a predictor chose, so that others like it need not do so again."""
    return tuple((name, surrogate.chosen_[name]) for name in candidate.cost.tuned)
