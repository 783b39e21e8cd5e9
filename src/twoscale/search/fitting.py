"""Candidates fitted on fields, and the function that searches for the best of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from twoscale.clock import now, parse_duration
from twoscale.errors import TwoscaleError
from twoscale.fields import ACCURACY, Batch, measure_all
from twoscale.problems import Problem
from twoscale.progress import Progress
from twoscale.search.candidates import Candidate, Space
from twoscale.search.explanation import explain
from twoscale.search.policy import DEFAULT_BUDGET, search
from twoscale.search.record import as_record
from twoscale.search.trials import Outcome, Search
from twoscale.source import FieldSource
from twoscale.surrogate import Surrogate
from twoscale.surrogate.arguments import Fields
from twoscale.surrogate.context import FieldPairs, SharedFits
from twoscale.surrogate.nearest import NearestCodes
from twoscale.surrogate.preparation import both_pairs
from twoscale.symmetries import GROUPS
from twoscale.threads import worthwhile_threads

_SHORT_OF_MEMORY = ("out of memory", "can't allocate memory", "alloc_failed")
_TOO_MUCH = (MemoryError, torch.cuda.OutOfMemoryError, torch.linalg.LinAlgError)


@dataclass(frozen=True)
class Found:
    """What a search has found: a fitted surrogate like any other, and how it was found."""

    surrogate: Surrogate
    search: Search
    record: dict[str, Any]  # trials, choice and explanation, as it is stored

    @property
    def explanation(self) -> list[str]:
        """Return, in sentences, where the remaining error comes from and what would help."""
        return self.record["explanation"]


def fit_auto(
    inputs: Fields,
    outputs: Fields,
    *,
    validation: tuple[Fields, Fields] | None = None,
    budget: float | str = DEFAULT_BUDGET,
    seed: int = 0,
    device: str = "auto",
    problem: str | Problem | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = now,
    start: float | None = None,
    **settings: Any,
) -> Found:
    """Return the surrogate of least validation error that a search finds within a time budget.

    `budget` is in seconds, or a text such as "2min". Settings that are given stay as they are in
    all candidates; `symmetries` are declared by it and tried. Without `validation`, the last tenth
    of a shuffle is held out, as `Surrogate.fit` does. The budget begins at the time `start` of the
    clock, now unless told.
    """
    seconds = parse_duration(budget)
    begun = clock() if start is None else start
    plain = Surrogate(seed=seed, device=device, problem=problem)  # raises if one of them is none
    declared = declared_symmetries(settings, plain.problem)
    training, held_out = both_pairs(inputs, outputs, validation, device=plain.device, seed=seed)
    samples, *shape = training.inputs.shape
    cuda = plain.device.type == "cuda"
    space = Space((shape[0], shape[1]), samples, declared, dict(settings), accelerated=cuda)
    options = {"seed": seed, "device": device, "problem": plain.problem}
    fitter = FieldFitter(space, training, held_out, options, clock)
    with worthwhile_threads():
        found = search(
            space,
            fitter,
            budget=seconds,
            clock=lambda: clock() - begun,
            report=_reporter(progress, lambda: clock() - begun),
        )
    assert fitter.best is not None
    record = as_record(found, space) | {"explanation": explain(found, space)}
    return Found(fitter.best, found, record)


def declared_symmetries(settings: Mapping[str, Any], problem: Problem | None) -> str:
    """Return the symmetries that a search may use: the user's, or the problem's own."""
    given = str(settings.get("symmetries", "problem" if problem else "none"))
    if given == "problem":
        if problem is None:
            raise TwoscaleError(
                "symmetries=problem needs a known problem: name the symmetries of yours instead "
                f"({', '.join(GROUPS)})"
            )
        return problem.symmetric_under
    if given not in GROUPS:
        raise TwoscaleError(f"symmetries must be one of {', '.join(GROUPS)}, got '{given}'")
    return given


class FieldFitter:
    """Fits candidates on the same fields; equal representations once. Keeps the best surrogate."""

    def __init__(
        self,
        space: Space,
        training: FieldPairs,
        validation: FieldPairs,
        options: Mapping[str, Any],
        clock: Callable[[], float] = now,
    ) -> None:
        self.space = space
        self.training = training
        self.validation = validation
        self.validation_samples = validation.inputs.shape[0]
        self.best: Surrogate | None = None
        self._least = float("inf")
        self._shared: SharedFits = {}
        self._options = options  # of every surrogate: seed, device, problem
        self._clock = clock

    def fit(self, candidate: Candidate) -> Outcome:
        """Fit a candidate and judge it on the validation fields."""
        try:
            surrogate, outcome = self._judged(candidate)
        except Exception as error:
            if not _too_much(error):
                raise
            raise TwoscaleError(f"{candidate.label} is too much here: {error}") from error
        if not math.isfinite(outcome.oracle):
            raise TwoscaleError(
                "all validation outputs are zero, so that errors relative to them have no meaning: "
                "check the data, or name a method"
            )
        if outcome.error < self._least:
            self._least, self.best = outcome.error, surrogate
        return outcome

    def _judged(self, candidate: Candidate) -> tuple[Surrogate, Outcome]:
        epochs = _Epochs(self._clock)
        surrogate = self._fitted(candidate, self.training, self._shared, progress=epochs)
        latent = surrogate.operator_.latent
        assert latent is not None
        nearest = NearestCodes(latent.output_representation)
        predict = surrogate.predict
        return surrogate, Outcome(
            error=_error(predict, self.validation),
            training_error=_error(predict, _first(self.training, self.validation_samples)),
            oracle=_error(lambda u: latent.output_representation.decode(nearest(u)), self._truth()),
            input_code=latent.input_representation.code_size,
            output_code=latent.output_representation.code_size,
            tuned=_tuned(candidate, surrogate),
            epoch_seconds=epochs.each if candidate.epochs else None,
        )

    def half_error(self, candidate: Candidate) -> float:
        """Return the validation error of a candidate that learns from half of the samples."""
        half = _first(self.training, self.space.samples // 2)
        return _error(self._fitted(candidate, half, {}).predict, self.validation)

    def _fitted(
        self,
        candidate: Candidate,
        training: FieldPairs,
        shared: SharedFits,
        progress: Progress | None = None,
    ) -> Surrogate:
        settings = self.space.settings(candidate)
        surrogate = Surrogate(candidate.chain, **self._options, **settings)
        pairs = (self.validation.inputs, self.validation.outputs)
        fitting = surrogate.begin(
            training.inputs, training.outputs, validation=pairs, progress=progress
        )
        fitting.context.shared = shared
        fitting.operator.fit(fitting.training, fitting.validation, fitting.context)
        return surrogate.finish(fitting.operator, fitting.shape, fitting.context)

    def _truth(self) -> FieldPairs:
        return FieldPairs(self.validation.outputs, self.validation.outputs)


class _Epochs:
    """Told of a fit's progress, it takes the time of an epoch; the first does not count."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.ends: list[float] = []

    def __call__(self, stage: str, done: int, total: int, remark: str) -> None:
        if stage == "training":
            self.ends.append(self.clock())

    @property
    def each(self) -> float | None:
        """Return the seconds of an epoch, if there were several."""
        if len(self.ends) < 2:
            return None
        return max(1e-6, (self.ends[-1] - self.ends[0]) / (len(self.ends) - 1))


def _too_much(error: BaseException | None) -> bool:
    """Say whether memory was short or a decomposition failed; libraries say it in many ways."""
    while error is not None:
        words = str(error).lower()
        if isinstance(error, _TOO_MUCH) or any(text in words for text in _SHORT_OF_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


class FirstFields:
    """The first fields of another source."""

    def __init__(self, source: FieldSource, samples: int) -> None:
        self.source = source
        self.samples = min(samples, source.shape[0])

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.samples, *self.source.shape[1:]

    def chunks(self) -> Iterator[Tensor]:
        left = self.samples
        for chunk in self.source.chunks():
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    def to(self, device: torch.device) -> FirstFields:
        return FirstFields(self.source.to(device), self.samples)


def _first(pairs: FieldPairs, samples: int) -> FieldPairs:
    return FieldPairs(FirstFields(pairs.inputs, samples), FirstFields(pairs.outputs, samples))


@torch.no_grad()
def _error(predict: Callable[[Tensor], Tensor], pairs: FieldPairs) -> float:
    """Return the relative L2 error of predictions, as the metrics count it."""
    batches = (
        Batch(predict(inputs).double(), truth.double())
        for inputs, truth in zip(pairs.inputs.chunks(), pairs.outputs.chunks(), strict=True)
    )
    return measure_all({"mre": ACCURACY["mre"]}, batches)["mre"]


def _tuned(candidate: Candidate, surrogate: Surrogate) -> tuple[tuple[str, Any], ...]:
    """Return what a kernel chose, as settings: others like it need not look for it again."""
    if candidate.predictor != "kernel":
        return ()
    names = ("kernel", "length_scale", "ridge")
    return tuple((name, surrogate.chosen_[name]) for name in names)


def _reporter(
    progress: Progress | None, elapsed: Callable[[], float]
) -> Callable[[Search, Candidate], None] | None:
    if progress is None:
        return None

    def report(found: Search, candidate: Candidate) -> None:
        best = found.best
        so_far = f", best {100 * best.outcome.error:.3g} %" if best and best.outcome else ""
        remark = f"{len(found.trials)} tried{so_far}; now {candidate.label}"
        progress("seconds", min(int(elapsed()), int(found.budget)), int(found.budget), remark)

    return report
