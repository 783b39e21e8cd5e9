"""What a search has found, in sentences: where the error comes from, and what would help."""

from __future__ import annotations

from twoscale.methods.recipes import resolve
from twoscale.runtime.texts import duration_text, percent
from twoscale.search.advice import limits
from twoscale.search.findings import PERFECT, Findings, shares_text
from twoscale.search.policy import INTERRUPTED, NO_TIME
from twoscale.search.space import SearchSpace
from twoscale.search.trials import Outcome, Search, Trial


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
