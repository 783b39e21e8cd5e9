"""What a search has found, in sentences: where the error comes from, and what would help."""

from __future__ import annotations

from collections.abc import Iterator

from twoscale.fields.symmetries import symmetry_group
from twoscale.methods.recipes import resolve
from twoscale.runtime.timing import duration_text
from twoscale.search.candidates import Candidate, SearchSpace
from twoscale.search.policy import INTERRUPTED, NO_TIME
from twoscale.search.trials import PERFECT, Outcome, Search, Trial

_NOTABLE = 0.1  # of the squared error: a smaller share gets no advice
_WORTH = 0.9  # of the error: twice the samples help if the error falls below


def explain(found: Search, space: SearchSpace) -> list[str]:
    """Return sentences on the choice, the shares of its error, and what would make it smaller."""
    best = found.best
    if best is None or best.outcome is None:
        return []
    choice = _choice(found, best, best.outcome)
    if best.error <= PERFECT:
        return [choice, "That is the limit of single precision: nothing is left to learn."]
    return [choice, _shares(best.outcome), *_advice(found, best, space)]


def _choice(found: Search, best: Trial, outcome: Outcome) -> str:
    count = len(found.trials)
    others = "the only candidate" if count == 1 else f"the best of {count} candidates"
    return (
        f"{best.candidate.label} was {others}: validation error {_percent(outcome.error)}, "
        f"in {duration_text(found.seconds)} of {duration_text(found.budget)}; {found.stopped}."
    )


def _shares(outcome: Outcome) -> str:
    shares = outcome.shares
    meanings = {
        "representation": "the code cannot express it",
        "predictor": "not learned, not even on training fields",
        "data": "overfitting: learned on training fields only",
    }
    ordered = sorted(shares, key=lambda name: -shares[name])
    parts = [f"{name} {100 * shares[name]:.0f} % ({meanings[name]})" for name in ordered]
    return (
        f"Oracle error (of the nearest fields that the code can express): "
        f"{_percent(outcome.oracle)}; error on training fields: "
        f"{_percent(outcome.training_error)}. Shares of the squared error: {', '.join(parts)}."
    )


def _advice(found: Search, best: Trial, space: SearchSpace) -> Iterator[str]:
    """Yield what would help: time, if it was short; then by share of the error, largest first."""
    assert best.outcome is not None
    if found.stopped.startswith(NO_TIME):
        yield "A longer budget may help."
    elif found.stopped == INTERRUPTED:
        yield "A search without interruption may find a better one."
    shares = best.outcome.shares
    for part in sorted(shares, key=lambda name: -shares[name]):
        if shares[part] > _NOTABLE:
            yield from {
                "representation": _longer_code,
                "predictor": _other_predictor,
                "data": _more_samples,
            }[part](found, best.candidate, best.outcome, space)


def _longer_code(
    found: Search, candidate: Candidate, outcome: Outcome, space: SearchSpace
) -> Iterator[str]:
    if any(
        trial.outcome
        and trial.candidate.chain == candidate.chain
        and trial.outcome.output_code > outcome.output_code
        for trial in found.trials
    ):
        yield "The representation limits the error, but longer codes were no better."
        return
    longer = _longer_settings(candidate, outcome, space)
    settings = ", ".join(f"{name}={value}" for name, value in longer.items())
    yield (
        f"The representation limits the error: a code longer than {outcome.output_code} would "
        f"help; set {settings}."
    )


def _longer_settings(candidate: Candidate, outcome: Outcome, space: SearchSpace) -> dict[str, str]:
    """Return the settings of a code that is longer than a candidate's."""
    settings = resolve(candidate.chain, space.settings(candidate))
    if candidate.chain_kind.sized or settings["code_size"] is not None:
        return {"code_size": str(min(2 * outcome.output_code, space.values))}
    return candidate.chain_kind.longer_settings(settings)


def _other_predictor(
    found: Search, candidate: Candidate, outcome: Outcome, space: SearchSpace
) -> Iterator[str]:
    others = any(trial.candidate.predictor != candidate.predictor for trial in found.trials)
    if not candidate.predictor_kind.linear:
        how = "trained for longer" if space.accelerated else "trained on a GPU"
        yield f"A predictor that can learn more would help: a larger network, {how}."
    elif others:
        yield "More of the input would help: nonlinear predictors were no better."
    else:
        yield "A nonlinear predictor would help, or one that sees more of the input."


def _more_samples(
    found: Search, candidate: Candidate, outcome: Outcome, space: SearchSpace
) -> Iterator[str]:
    yield _twice_the_samples(found.half_error, outcome)
    if space.declared == "none" and space.input_values:
        yield _symmetries(space)


def _symmetries(space: SearchSpace) -> str:
    """Return how symmetries are declared, and how many training fields they make of one."""
    square, mirrors = (
        len(symmetry_group(name, space.inputs.grid, space.outputs.grid))
        for name in ("square", "mirrors")
    )
    if square == mirrors:
        return (
            "If a mirrored input has the mirrored solution, set symmetries=mirrors: "
            f"each sample then counts as {mirrors}."
        )
    return (
        "If a turned or mirrored input has the turned or mirrored solution, set "
        f"symmetries=square or symmetries=mirrors: each sample then counts as {square} or "
        f"{mirrors}."
    )


def _twice_the_samples(half_error: float | None, outcome: Outcome) -> str:
    """Return the error that twice the samples should give, by the error with half of them.

    The squared error above the oracle's falls by the same factor with every doubling:
    doubled² = oracle² + (error² - oracle²)² / (half² - oracle²).
    """
    if not half_error:
        return "More samples would help: the error on training fields is smaller."
    fixed = outcome.oracle**2
    learnable, by_half = max(0.0, outcome.error**2 - fixed), half_error**2 - fixed
    factor = learnable / by_half if by_half > learnable else 1.0
    doubled = (fixed + learnable * factor) ** 0.5
    half = f"with half of the samples the error is {_percent(half_error)}"
    if doubled > _WORTH * outcome.error:
        return f"More samples would help little: {half}."
    return (
        f"More samples would help: {half}, so twice as many should give about {_percent(doubled)}."
    )


def _percent(error: float) -> str:
    return f"{100 * error:.3g} %"
