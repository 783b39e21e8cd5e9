"""The steps from a candidate to those near it: what may be better, for which reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from twoscale.predictors.kernel import TUNING_SAMPLES
from twoscale.search.candidates import CODES, INPUT_VARIANCES, Candidate, Space
from twoscale.search.kinds import KINDS
from twoscale.search.trials import PERFECT, Trial

LONGER = 4  # times as long, to be worth another training
_MOST_EPOCHS = 300
_AFFINE_VARIANCES = (0.95, 0.99, 0.999, 0.9999)
_MATTERS = 0.1  # of the squared error: a smaller part is not worth a candidate of its own
_FINE = 0.1  # what a step that only adjusts is hoped to remove of its share


@dataclass(frozen=True)
class Step:
    """A candidate to try next, and what is hoped of it."""

    candidate: Candidate
    reason: str
    share: float  # of the squared error that it may remove


def steps(best: Trial, space: Space) -> Iterator[Step]:
    """Yield what may improve on the best trial, with the share of its error it may remove."""
    outcome, candidate = best.outcome, best.candidate
    if outcome is None or outcome.error <= PERFECT:
        return
    shares = outcome.shares
    representation, data = shares["representation"], shares["data"]
    if representation > _MATTERS:
        for one in longer_codes(space, candidate, outcome.output_code):
            yield Step(one, "+ code", representation)
    learnable = 1 - representation
    if learnable < _MATTERS:
        return
    main = candidate.predictor == "affine"  # what a linear map does not see it cannot make up for
    for one in more_input(candidate):
        yield Step(one, "+ input", learnable * (1.0 if main else _FINE))
    for one in other_predictors(space, candidate):
        yield Step(one, "predictor", learnable)
    if data > _MATTERS:
        for one in less_input(candidate):
            yield Step(one, "- input", data * _FINE / 2)
        for one in more_data(space, candidate, outcome.tuned):
            yield Step(one, "+ fields", data)


def longer_codes(space: Space, best: Candidate, output_code: int) -> Iterator[Candidate]:
    """Yield neighbours that can express more: a longer code, another chain of the same length."""
    nodes = space.shape[0] * space.shape[1]
    if best.chain == "conforming":
        if 2 * output_code <= nodes:
            yield replace(best, size=2 * output_code)
    elif best.code + 1 < CODES:
        yield replace(best, code=best.code + 1)
    for chain in space.chains:
        if chain != best.chain:
            size = min(output_code, nodes) if chain == "conforming" else None
            yield replace(best, chain=chain, size=size)


def more_input(best: Candidate) -> Iterator[Candidate]:
    """Yield the neighbour that sees more of the input; in smaller steps where codes are dear."""
    if best.epochs is not None:
        return
    ladder = _AFFINE_VARIANCES if best.predictor == "affine" else INPUT_VARIANCES
    higher = [one for one in ladder if one > best.input_variance]
    if higher:
        yield replace(best, input_variance=higher[0])


def less_input(best: Candidate) -> Iterator[Candidate]:
    """Yield the neighbour that sees less of the input; an affine map regularises by itself."""
    if best.predictor == "affine" or best.epochs is not None:
        return
    lower = [one for one in INPUT_VARIANCES if one < best.input_variance]
    if lower:
        yield replace(best, input_variance=lower[-1])


def other_predictors(space: Space, best: Candidate) -> Iterator[Candidate]:
    """Yield the neighbours with a predictor that comes after the best one's."""
    if "predictor" in space.given:
        return
    for name, kind in KINDS.items():
        if best.predictor not in kind.after:
            continue
        if name == "encoder":
            if space.takes(name, best.chain):
                yield space.encoded(best)
        else:
            few = TUNING_SAMPLES if name == "kernel" and space.samples > TUNING_SAMPLES else None
            yield replace(best, predictor=name, samples=few, tuned=())


def longer_training(
    space: Space, probe: Candidate, best: Candidate, epochs: float
) -> Iterator[Candidate]:
    """Yield the encoder of the best candidate's codes, if so many epochs are many.

    `probe` is an encoder that was trained shortly.
    """
    assert probe.epochs is not None
    longer = min(_MOST_EPOCHS, int(epochs))
    if longer >= LONGER * probe.epochs and "epochs" not in space.given:
        yield replace(probe, chain=best.chain, code=best.code, size=best.size, epochs=longer)


def more_data(
    space: Space, best: Candidate, tuned: tuple[tuple[str, Any], ...]
) -> Iterator[Candidate]:
    """Yield the neighbours that learn from more: all samples, their images, both.

    `tuned` is what the predictor has found out about itself and need not look for again.
    """
    if best.samples is not None:
        yield replace(best, samples=None, tuned=tuned)
        if 2 * best.samples < space.samples:
            yield replace(best, samples=2 * best.samples, tuned=tuned)
    if best.symmetries == "none" and space.images > 1:
        turned = replace(best, symmetries=space.declared)
        yield replace(turned, tuned=tuned)
        yield replace(turned, samples=None, tuned=tuned)
