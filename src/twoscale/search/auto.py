"""The function that searches for the best surrogate of some fields, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from twoscale.domain.symmetries import SYMMETRIES
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.samples import Fields
from twoscale.fields.source import in_memory
from twoscale.fields.workers import Tasks
from twoscale.methods.recipes import resolve
from twoscale.predictors.symmetry_evidence import SymmetryEvidence
from twoscale.problems import Problem
from twoscale.representation.transformed import worthwhile
from twoscale.runtime.processes import refuse_several
from twoscale.runtime.progress import Progress, ShowProgress, now, parse_duration, reporting
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.runtime.texts import duration_text, percent
from twoscale.runtime.threads import worthwhile_threads
from twoscale.search.advice import PERFECT, Findings, limits, shares_text
from twoscale.search.fitting import FieldFitter
from twoscale.search.journal import Journal
from twoscale.search.on_workers import FitterOnWorkers
from twoscale.search.policy import DEFAULT_BUDGET, INTERRUPTED, NO_TIME, Report, search
from twoscale.search.space import SearchSpace
from twoscale.search.trials import CAPTION, HEADINGS, Outcome, Search, Trial, as_record, table_rows
from twoscale.surrogate import Surrogate
from twoscale.surrogate.display import card_html, table_html
from twoscale.surrogate.inputs import Calibration, InputReader, Validation
from twoscale.surrogate.options import problem_symmetries, shared_device


@dataclass(frozen=True)
class Found:
    """The result of a search: a fitted surrogate like any other, and how it was found.

    Attributes
    ----------
    surrogate
        The fitted surrogate of least validation error.
    search
        All trials, with their errors and seconds.
    record
        Trials, choice and explanation as plain values, as a run folder stores them.
    """

    surrogate: Surrogate
    search: Search
    record: dict[str, Any]

    @property
    def explanation(self) -> list[str]:
        """Return, in sentences, where the remaining error comes from and what would help."""
        return self.record["explanation"]

    def __repr__(self) -> str:
        best = self.search.best
        error = "" if best is None else f", mean validation error {percent(best.error)}"
        tried, seconds = len(self.search.trials), duration_text(self.search.seconds)
        return f"Found({self.surrogate!r}{error}, {tried} tried in {seconds})"

    def _repr_html_(self) -> str:
        table = table_html(table_rows(self.record), HEADINGS)
        sentences = "".join(f"<p>{escape(sentence)}</p>" for sentence in self.explanation)
        caption = f"<p>{CAPTION}; * is the chosen one.</p>"
        return card_html(repr(self), caption, table, sentences)


def fit_auto(
    inputs: Fields | None,
    outputs: Fields,
    *,
    parameters: Any = None,
    validation: Validation = None,
    calibration: Calibration = None,
    budget: float | str = DEFAULT_BUDGET,
    seed: int = 0,
    device: str = "auto",
    problem: str | Problem | None = None,
    periodic: bool | tuple[bool, bool] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    progress: ShowProgress = None,
    clock: Callable[[], float] = now,
    start: float | None = None,
    afterwards: Callable[[Surrogate], float] | None = None,
    journal_folder: Path | None = None,
    scratch: Scratch = IN_MEMORY,
    workers: Tasks | None = None,
    **settings: Any,
) -> Found:
    """Search within a time budget; return the surrogate with the smallest validation error.

    This is the mean relative L2 error of the validation fields, `mean_relative_l2` of `evaluate`.
    An interruption ends the search with the best surrogate so far.

    Parameters
    ----------
    inputs, outputs, parameters, validation, calibration, input_names, output_names, progress
        As for `Surrogate.fit`.
    budget
        Seconds, or a text such as "90s", "2min" or "1h"; 120 s by default.
    seed, device, problem, periodic
        As for `Surrogate`. With `workers` "auto" is the CPU.
    clock
        A function that returns the time in seconds.
    start
        The time of that clock at which the budget begins; now by default.
    afterwards
        A function that estimates, with a fitted surrogate, how many seconds of the budget are
        needed after the search. By default none are.
    journal_folder
        A folder in which the search is noted. A search that was killed goes on from there, if the
        call is the same. By default nothing is kept.
    scratch
        As for `Surrogate.fit`.
    workers
        Other processes that fit candidates, one each at a time; see `twoscale.cluster`. Each loads
        the fields by itself. By default candidates are fitted here, one after the other.
    settings
        Settings that hold for all candidates that have them. `symmetries` are only declared: the
        search tries candidates with and without them, if the data do not speak against them.

    Returns
    -------
    Found
        The fitted surrogate, all trials, and an explanation of the error that is left.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((60, 8, 8))
    >>> found = fit_auto(x, x.cumsum(axis=2), budget="1s", predictor="affine")
    >>> found.surrogate.predict(x[:3]).shape
    (3, 8, 8)
    """
    refuse_several("a search runs")
    device = shared_device(workers, device)
    seconds = parse_duration(budget)
    begun = clock() if start is None else start
    options: dict[str, Any] = {
        "seed": seed,
        "device": device,
        "problem": problem,
        "periodic": periodic,
    }
    plain = Surrogate(**options)  # raises if one of them is wrong
    reader = InputReader(plain.periodic, input_names, output_names)
    declared = declared_symmetries(settings, None if inputs is None else plain.problem)
    data = reader.split(inputs, outputs, parameters, validation, calibration, seed=plain.seed)
    training, held_out = (one.on(plain.device) for one in (data.training, data.validation))
    space = SearchSpace(
        training.inputs.space,
        training.outputs.space,
        len(training.inputs),
        declared,
        dict(settings),
        accelerated=plain.device.type == "cuda",
        stored=not (workers or in_memory(training.inputs.fields) or scratch.on_disk),
        transforms=() if "input_transform" in settings else worthwhile(training.inputs.fields),
        refused=refused_symmetries(declared, training),
    )
    asked: dict[str, Any] = {"afterwards": afterwards, "scratch": scratch}
    fitter = FieldFitter(space, training, held_out, options, **asked)
    if workers is not None:
        asked |= {"tasks": workers, "memory": scratch.memory}
        fitter = FitterOnWorkers(space, training, held_out, options, **asked)
    journal = _opened(journal_folder, fitter, device=device, problem=plain.problem)
    before = journal.elapsed if journal else 0.0

    def elapsed() -> float:
        return before + clock() - begun

    with worthwhile_threads(), reporting(progress, "search", over="seconds") as reported:
        fitter.clock, fitter.progress = elapsed, _ticking(reported, journal, elapsed)
        found = search(
            space,
            fitter,
            budget=seconds,
            clock=elapsed,
            report=_reporter(reported, elapsed),
            journal=journal,
        )
    assert fitter.best is not None
    if calibration is not False:
        fitter.best.learn_trust(SplitData(training, held_out, data.calibration))
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


def refused_symmetries(declared: str, training: Pairs) -> str:
    """Return why declared symmetries are not used, or "" if the data do not speak against them."""
    if declared == "none":
        return ""
    inputs, outputs = training.inputs, training.outputs
    found = SymmetryEvidence((inputs.fields, outputs.fields), (inputs.space, outputs.space))
    evidence = found.against(declared)
    return evidence and f"The data speak against symmetries={declared}: {evidence}."


def _opened(folder: Path | None, fitter: FieldFitter, **options: Any) -> Journal | None:
    """Return the journal in a folder, with the search that was left there, if any.

    The fitter takes over its best surrogate. Options are those of `Surrogate.load`.
    """
    if folder is None:
        return None
    journal = Journal(folder, lambda: fitter.best)
    fitter.checkpoints = journal.training()
    best = journal.resume(**options)
    if best is not None:
        fitter.keep(best, min(trial.error for trial in journal.trials))
    return journal


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
        so_far = f", best {percent(best.outcome.error)}" if best and best.outcome else ""
        remark = f"{len(found.trials)} tried{so_far}; now {current}"
        progress("seconds", min(int(elapsed()), int(found.budget)), int(found.budget), remark)

    return report


def explain(found: Search, space: SearchSpace) -> list[str]:
    """Return sentences on the choice, the shares of its error, and what would make it smaller."""
    best = found.best
    if best is None or best.outcome is None:
        return []
    choice = _choice(found, best, best.outcome)
    if best.error <= PERFECT:
        return [choice, "That is the limit of single precision: nothing is left to learn."]
    suggestions = limits(_findings(found, best, best.outcome, space))
    refused = [f"{space.refused} They were not used."] if space.refused else []
    return [choice, _shares(best.outcome), *refused, *(one.text for one in suggestions)]


def _choice(found: Search, best: Trial, outcome: Outcome) -> str:
    count = len(found.trials)
    others = "the only candidate" if count == 1 else f"the best of {count} candidates"
    time = f"in {duration_text(found.seconds)} of {duration_text(found.budget)}"
    pooled = "" if outcome.mre is None else f" (MRE {percent(outcome.mre)})"
    return (
        f"{best.candidate.label} was {others}: mean relative L2 error {percent(outcome.error)}"
        f"{pooled} on validation fields, {time}; {found.stopped}."
    )


def _shares(outcome: Outcome) -> str:
    return (
        f"Oracle error (of the nearest fields that the code can express): "
        f"{percent(outcome.oracle)}; error on training fields: "
        f"{percent(outcome.training_error)}. {shares_text(outcome.shares)}"
    )


def _findings(found: Search, best: Trial, outcome: Outcome, space: SearchSpace) -> Findings:
    candidate = best.candidate
    return Findings(
        error=outcome.error,
        training_error=outcome.training_error,
        oracle=outcome.oracle,
        method=candidate.chain,
        settings=resolve(candidate.chain, space.settings(candidate)),
        inputs=space.inputs,
        outputs=space.outputs,
        output_code=outcome.output_code,
        symmetries=space.declared,
        half_error=found.half_error,
        accelerated=space.accelerated,
        searched=True,
        short_of_time=found.stopped.startswith(NO_TIME),
        interrupted=found.stopped == INTERRUPTED,
        tried_longer=any(
            trial.outcome is not None
            and trial.candidate.chain == candidate.chain
            and trial.outcome.output_code > outcome.output_code
            for trial in found.trials
        ),
        tried_predictors=[one.candidate.predictor for one in found.trials if one.outcome],
    )
