"""The function that searches for the best surrogate of some fields, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.fields.samples import Fields
from twoscale.fields.source import in_memory
from twoscale.fields.symmetries import SYMMETRIES
from twoscale.problems import Problem
from twoscale.runtime.progress import Progress
from twoscale.runtime.threads import worthwhile_threads
from twoscale.runtime.timing import now, parse_duration
from twoscale.search.candidates import SearchSpace
from twoscale.search.explanation import explain
from twoscale.search.fitting import FieldFitter
from twoscale.search.journal import Journal, Resumed
from twoscale.search.policy import DEFAULT_BUDGET, Report, search
from twoscale.search.record import as_record
from twoscale.search.trials import Search
from twoscale.surrogate import Surrogate
from twoscale.surrogate.inputs import Door, Validation
from twoscale.surrogate.options import problem_symmetries


@dataclass(frozen=True)
class Found:
    """The result of a search: a fitted surrogate like any other, and how it was found."""

    surrogate: Surrogate
    search: Search
    record: dict[str, Any]  # trials, choice and explanation, as it is stored

    @property
    def explanation(self) -> list[str]:
        """Return, in sentences, where the remaining error comes from and what would help."""
        return self.record["explanation"]


def fit_auto(
    inputs: Fields | None,
    outputs: Fields,
    *,
    parameters: Any = None,
    validation: Validation = None,
    budget: float | str = DEFAULT_BUDGET,
    seed: int = 0,
    device: str = "auto",
    problem: str | Problem | None = None,
    periodic: bool | tuple[bool, bool] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    progress: Progress | None = None,
    clock: Callable[[], float] = now,
    start: float | None = None,
    journal_folder: Path | None = None,
    **settings: Any,
) -> Found:
    """Return the surrogate of least validation error that a search finds within a time budget.

    Fields, `parameters` and names are those of `Surrogate.fit`; seed, device, problem and
    `periodic` those of `Surrogate`. `budget` is in seconds, or a text such as "2min". Other
    settings are the same in all candidates that have them; only `symmetries` is a declaration: the
    search tries with and without them. Without `validation`, the last tenth of a shuffle is held
    out, as `Surrogate.fit` does. The budget starts at the time `start` of the clock, now by
    default. An interruption ends the search with the best surrogate so far. A search that was
    killed goes on from its `journal_folder`, if the call is the same.
    """
    seconds = parse_duration(budget)
    begun = clock() if start is None else start
    options: dict[str, Any] = {
        "seed": seed,
        "device": device,
        "problem": problem,
        "periodic": periodic,
    }
    plain = Surrogate(**options)  # raises if one of them is wrong
    door = Door(plain.periodic, input_names, output_names)
    declared = declared_symmetries(settings, None if inputs is None else plain.problem)
    pairs = door.both(inputs, outputs, parameters, validation, plain.seed)
    training, held_out = (pair.on(plain.device) for pair in pairs)
    space = SearchSpace(
        training.inputs.space,
        training.outputs.space,
        len(training.inputs),
        declared,
        dict(settings),
        accelerated=plain.device.type == "cuda",
        stored=not in_memory(training.inputs.source),
    )
    fitter = FieldFitter(space, training, held_out, options, clock, None)
    journal, resumed = _opened(journal_folder, fitter, device=device, problem=plain.problem)
    before = resumed.elapsed if resumed else 0.0

    def elapsed() -> float:
        return before + clock() - begun

    fitter.progress = _ticking(progress, journal, elapsed)
    with worthwhile_threads():
        found = search(
            space,
            fitter,
            budget=seconds,
            clock=elapsed,
            report=_reporter(progress, elapsed),
            journal=journal,
            resumed=resumed,
        )
    assert fitter.best is not None
    record = as_record(found, space) | {"explanation": explain(found, space)}
    return Found(fitter.best, found, record)


def declared_symmetries(settings: Mapping[str, Any], problem: Problem | None) -> str:
    """Return the symmetries that a search may use: the user's, or those of the problem."""
    given = str(settings.get("symmetries", "problem" if problem else "none"))
    if given == "problem":
        return problem_symmetries(problem)
    if given not in SYMMETRIES:
        raise TwoscaleError(f"symmetries must be one of {', '.join(SYMMETRIES)}, got '{given}'")
    return given


def _opened(
    folder: Path | None, fitter: FieldFitter, **options: Any
) -> tuple[Journal | None, Resumed | None]:
    """Return the journal in a folder and the search that was left there, if any.

    The fitter takes over its best surrogate. Options are those of `Surrogate.load`.
    """
    if folder is None:
        return None, None
    journal = Journal(folder, lambda: fitter.best)
    fitter.checkpoints = journal.training()
    resumed = journal.resume(**options)
    if resumed is not None and resumed.best is not None:
        fitter.resume(resumed.best, min(trial.error for trial in resumed.trials))
    return journal, resumed


def _ticking(
    progress: Progress | None, journal: Journal | None, elapsed: Callable[[], float]
) -> Progress | None:
    """Return a progress function that also notes the time in the journal."""
    if journal is None:
        return progress

    def tick(stage: str, done: int, total: int, remark: str) -> None:
        journal.tick(elapsed())
        if progress:
            progress(stage, done, total, remark)

    return tick


def _reporter(progress: Progress | None, elapsed: Callable[[], float]) -> Report | None:
    if progress is None:
        return None

    def report(found: Search, current: str) -> None:
        best = found.best
        so_far = f", best {100 * best.outcome.error:.3g} %" if best and best.outcome else ""
        remark = f"{len(found.trials)} tried{so_far}; now {current}"
        progress("seconds", min(int(elapsed()), int(found.budget)), int(found.budget), remark)

    return report
