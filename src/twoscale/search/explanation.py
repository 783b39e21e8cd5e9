"""What a search has learned about the data, in sentences: where the error sits, what would help."""

from __future__ import annotations

from collections.abc import Iterator

from twoscale.search.candidates import Candidate, Space
from twoscale.search.trials import Outcome, Search, Trial

_NOTABLE = 0.1
_WORTH = 0.9  # twice the samples are worth naming if the error falls below this part


def explain(found: Search, space: Space) -> list[str]:
    """Return sentences on the choice, the parts of its error, and what would make it smaller."""
    best = found.best
    if best is None or best.outcome is None:
        return []
    return [_choice(found, best, best.outcome), _parts(best.outcome), *_advice(found, best, space)]


def _choice(found: Search, best: Trial, outcome: Outcome) -> str:
    count = len(found.trials)
    others = "the only candidate" if count == 1 else f"the best of {count} candidates"
    return (
        f"{best.candidate.label} was {others}: validation error {_percent(outcome.error)}, "
        f"in {found.seconds:.0f} s of {found.budget:.0f} s; {found.stopped}."
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


def _advice(found: Search, best: Trial, space: Space) -> Iterator[str]:
    """Yield what would help: time, if it was short; then, the largest part of the error first."""
    assert best.outcome is not None
    if found.stopped.startswith("the next"):
        yield f"A longer budget may help: {found.stopped}."
    shares = best.outcome.shares
    for part in sorted(shares, key=lambda name: -shares[name]):
        if shares[part] > _NOTABLE:
            yield from {
                "representation": _longer_code,
                "predictor": _other_predictor,
                "data": _more_samples,
            }[part](found, best.candidate, best.outcome, space)


def _longer_code(
    found: Search, candidate: Candidate, outcome: Outcome, space: Space
) -> Iterator[str]:
    yield f"A longer code than {outcome.output_code} would help: the representation limits it."


def _other_predictor(
    found: Search, candidate: Candidate, outcome: Outcome, space: Space
) -> Iterator[str]:
    if candidate.predictor == "affine":
        yield "A predictor that is not linear would help, or one that sees more of the input."
    else:
        yield "A predictor that can learn more would help: a larger network, trained on a GPU."


def _more_samples(
    found: Search, candidate: Candidate, outcome: Outcome, space: Space
) -> Iterator[str]:
    yield _by_half(found.half_error, outcome)
    if space.declared == "none":
        yield (
            "If a turned or mirrored input has the turned or mirrored solution, say so by "
            "symmetries=square or symmetries=mirrors: each sample is then eight or four."
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
