"""What a search has learned about the data, in sentences: where the error sits, what would help."""

from __future__ import annotations

from collections.abc import Iterator

from twoscale.fields.symmetries import symmetry_group
from twoscale.methods.recipes import resolve
from twoscale.runtime.timing import duration_text
from twoscale.search.candidates import SIZED, Candidate, SearchSpace
from twoscale.search.policy import INTERRUPTED, NO_TIME
from twoscale.search.trials import PERFECT, Outcome, Search, Trial

_NOTABLE = 0.1
_WORTH = 0.9  # twice the samples are worth naming if the error falls below this part


def explain(found: Search, space: SearchSpace) -> list[str]:
    """Return sentences on the choice, the parts of its error, and what would make it smaller."""
    best = found.best
    if best is None or best.outcome is None:
        return []
    choice = _choice(found, best, best.outcome)
    if best.error <= PERFECT:
        return [choice, "That is as exact as single precision can tell: nothing is left to learn."]
    return [choice, _parts(best.outcome), *_advice(found, best, space)]


def _choice(found: Search, best: Trial, outcome: Outcome) -> str:
    count = len(found.trials)
    others = "the only candidate" if count == 1 else f"the best of {count} candidates"
    return (
        f"{best.candidate.label} was {others}: validation error {_percent(outcome.error)}, "
        f"in {duration_text(found.seconds)} of {duration_text(found.budget)}; {found.stopped}."
    )


def _parts(outcome: Outcome) -> str:
    shares = outcome.shares
    meanings = {
        "representation": "the code cannot express it",
        "predictor": "not learned even of the training fields",
        "data": "learned of the training fields, not of others",
    }
    ordered = sorted(shares, key=lambda name: -shares[name])
    parts = [f"{name} {100 * shares[name]:.0f} % ({meanings[name]})" for name in ordered]
    return (
        f"Oracle error (the nearest fields the code can express): {_percent(outcome.oracle)}; "
        f"on training fields: {_percent(outcome.training_error)}. "
        f"Of the squared error: {', '.join(parts)}."
    )


def _advice(found: Search, best: Trial, space: SearchSpace) -> Iterator[str]:
    """Yield what would help: time, if it was short; then, the largest part of the error first."""
    assert best.outcome is not None
    if found.stopped.startswith(NO_TIME):
        yield "A longer budget may help."
    elif found.stopped == INTERRUPTED:
        yield "A search that is not interrupted may find a better one."
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
        yield "The representation limits it, but longer codes were tried and were no better."
        return
    beyond = _beyond(candidate, outcome, space)
    settings = " ".join(f"--set {name}={value}" for name, value in beyond)
    yield (
        f"A longer code than {outcome.output_code} would help, the representation limits it: "
        f"{settings}."
    )


def _beyond(
    candidate: Candidate, outcome: Outcome, space: SearchSpace
) -> Iterator[tuple[str, str]]:
    """Yield the settings of a code that is longer than a candidate's."""
    settings = resolve(candidate.chain, space.settings(candidate))
    if candidate.chain in SIZED or settings["code_size"] is not None:
        yield "code_size", str(min(2 * outcome.output_code, space.values))
        return
    yield "coarse_components", str(2 * settings["coarse_components"])
    lost = 1 - settings["residual_variance"]
    yield "residual_variance", f"{1 - lost / 10:.12g}"


def _other_predictor(
    found: Search, candidate: Candidate, outcome: Outcome, space: SearchSpace
) -> Iterator[str]:
    others = any(trial.candidate.predictor != candidate.predictor for trial in found.trials)
    if candidate.predictor != "affine":
        where = "trained for longer" if space.accelerated else "trained on a GPU"
        yield f"A predictor that can learn more would help: a larger network, {where}."
    elif others:
        yield "More of the input would help: those predictors that are not linear were no better."
    else:
        yield "A predictor that is not linear would help, or one that sees more of the input."


def _more_samples(
    found: Search, candidate: Candidate, outcome: Outcome, space: SearchSpace
) -> Iterator[str]:
    yield _by_half(found.half_error, outcome)
    if space.declared == "none":
        yield _symmetries(space)


def _symmetries(space: SearchSpace) -> str:
    """Return what to say if the problem has symmetries, and what that makes of a sample."""
    square, mirrors = (
        len(symmetry_group(name, space.inputs.grid, space.outputs.grid))
        for name in ("square", "mirrors")
    )
    if square == mirrors:
        return (
            "If a mirrored input has the mirrored solution, say so by symmetries=mirrors: "
            f"each sample is then {mirrors}."
        )
    return (
        "If a turned or mirrored input has the turned or mirrored solution, say so by "
        f"symmetries=square or symmetries=mirrors: each sample is then {square} or {mirrors}."
    )


def _by_half(half_error: float | None, outcome: Outcome) -> str:
    """Return what twice the samples should bring, judged by what half of them lose.

    Only what is above the oracle error can be learned from samples.
    """
    if not half_error:
        return "More samples would help: what is learned does not carry over entirely."
    fixed = outcome.oracle**2
    learnable, by_half = max(0.0, outcome.error**2 - fixed), half_error**2 - fixed
    told = f"with half of the samples the error is {_percent(half_error)}"
    lost = learnable / by_half if by_half > learnable else 1.0
    doubled = (fixed + learnable * lost) ** 0.5
    if doubled > _WORTH * outcome.error:
        return f"More samples would help little: {told}."
    return (
        f"More samples would help: {told}, so twice as many should give about {_percent(doubled)}."
    )


def _percent(error: float) -> str:
    return f"{100 * error:.3g} %"
