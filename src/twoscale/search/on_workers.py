"""Candidates as tasks of other processes, which read the same fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twoscale.errors import TwoscaleError, WorkersError
from twoscale.fields.pairs import Pairs
from twoscale.fields.workers import Tasks
from twoscale.runtime.memory import available_memory
from twoscale.runtime.progress import now
from twoscale.runtime.scratch import Scratch
from twoscale.runtime.tasks import caller
from twoscale.search.fitting import Attempt, FieldFitter, Following
from twoscale.search.journal import Files, from_files, to_files
from twoscale.search.space import Candidate, SearchSpace
from twoscale.search.trials import Outcome, Trial


@dataclass(frozen=True)
class FitRequest:
    """A candidate that a worker shall fit, with a training of so many seconds at most.

    The surrogate travels back if its error is below `least`. With `half` it learns from half of
    the samples, and only its error is wanted.
    """

    trial: Trial
    seconds: float | None
    least: float = 0.0
    half: bool = False


FitResult = tuple[Outcome | float, Files | None]
"""The outcome of a candidate, perhaps with the surrogate; or the error with half of the samples."""


class FitCandidates:
    """Fits candidates in another process, which reads the fields by itself.

    They are loaded there with the first candidate, if they take less than half of its `memory`,
    and otherwise read on each pass. Representations that candidates share are fitted once in each
    process.
    """

    def __init__(
        self,
        space: SearchSpace,
        training: Pairs,
        validation: Pairs,
        options: Mapping[str, Any],
        memory: int,
    ) -> None:
        self.arguments = (space, training, validation, dict(options), memory)
        self.caller = caller()

    def __reduce__(self) -> Any:
        """Return how another process makes the same, without the fields loaded here."""
        return FitCandidates, self.arguments

    @cached_property
    def fitter(self) -> FieldFitter:
        """Return what fits candidates in this process."""
        space, training, validation, options, memory = self.arguments
        if sum(map(_bytes, (training, validation))) <= memory // 2:
            training, validation = training.loaded(), validation.loaded()
        return FieldFitter(space, training, validation, options, progress=self._go_on)

    def __call__(self, request: FitRequest) -> FitResult | TwoscaleError:
        """Return what a fit gives, or the error of a candidate that cannot be fitted."""
        self.caller = caller()  # kept, as only this thread knows it
        end = None if request.seconds is None else now() + request.seconds
        memory = self.arguments[-1]
        with TemporaryDirectory() as folder:
            self.fitter.scratch = Scratch(Path(folder), memory)
            try:
                if request.half:
                    return self.fitter.half_error(request.trial.candidate, end), None
                surrogate, outcome = self.fitter.measured(request.trial.candidate, end)
            except TwoscaleError as error:
                return _without_frames(error)
            return outcome, to_files(surrogate) if outcome.error < request.least else None

    def _go_on(self, stage: str, done: int, total: int, remark: str) -> None:
        """End a fit whose outcome nobody waits for; any thread of the fit may call this."""
        self.caller.check()


def _without_frames(error: TwoscaleError) -> TwoscaleError:
    """Return an error that keeps no fields or weights of the failed fit in memory."""
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)


def _bytes(pair: Pairs) -> int:
    return sum(4 * prod(side.fields.shape) for side in (pair.inputs, pair.outputs))


def memory_of_each(tasks: Tasks, memory: int | None) -> int:
    """Return the bytes that each worker may use; by default they share a machine like this one."""
    return memory or available_memory() // tasks.most_per_machine


class FitterOnWorkers(FieldFitter):
    """Has candidates fitted by other processes, as many at a time as there are."""

    def __init__(self, *arguments: Any, tasks: Tasks, memory: int | None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.tasks = tasks
        self.work = FitCandidates(
            self.space,
            self.training,
            self.validation,
            self.options,
            memory_of_each(tasks, memory),
        )
        self.requested = self.finished = 0

    def attempts(self, following: Following) -> Iterator[Attempt]:
        """Fit several candidates at a time; see `FieldFitter`."""

        def requests() -> FitRequest | None:
            trial = following()
            return None if trial is None else self._request(trial)

        for request, result in self._results(requests):
            if isinstance(result, TwoscaleError):
                yield request.trial, result
                continue
            outcome, files = result
            assert isinstance(outcome, Outcome)
            if files is not None:
                wanted = {name: self.options[name] for name in ("device", "problem")}
                self.keep(from_files(files, **wanted), outcome.error)
            yield request.trial, outcome

    def half_error(self, candidate: Candidate, deadline: float | None = None) -> float:
        """Return the validation error of a candidate that learns from half of the samples."""
        requests = [self._request(Trial(candidate, "", deadline=deadline), half=True)]
        ((_, result),) = self._results(lambda: requests.pop() if requests else None)
        if isinstance(result, WorkersError):  # of this candidate only
            raise TwoscaleError(str(result))
        if isinstance(result, TwoscaleError):
            raise result
        error, _ = result
        assert isinstance(error, float)
        return error

    def _request(self, trial: Trial, *, half: bool = False) -> FitRequest:
        self.requested += 1
        seconds = None if trial.deadline is None else trial.deadline - self.clock()
        return FitRequest(trial, seconds, self.least, half)

    def _results(
        self, following: Callable[[], FitRequest | None]
    ) -> Iterator[tuple[FitRequest, FitResult | TwoscaleError]]:
        """Yield requests with their results; that of one that workers died of is an error."""
        for found in self.tasks.as_finished(self.work, following, self._tick):
            self.finished += 1
            yield found

    def _tick(self) -> None:
        """Tell that time goes by while workers fit candidates."""
        if self.progress:
            running = f"{self.requested - self.finished} at a time"
            self.progress("candidates", self.finished, self.requested, running)
