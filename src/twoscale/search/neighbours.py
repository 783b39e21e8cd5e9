"""The steps from a candidate to those near it: what may be better, for which reason."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from twoscale.predictors.kernel import TUNING_SAMPLES
from twoscale.search.candidates import CODES, INPUT_VARIANCES, SIZED, Candidate, SearchSpace
from twoscale.search.kinds import KINDS
from twoscale.search.trials import PERFECT, Outcome, Search

LONGER = 4  # times as long, to be worth another training
_MOST_EPOCHS = 300
_AFFINE_VARIANCES = (0.95, 0.99, 0.999, 0.9999)
_MATTERS = 0.1  # of the squared error: a smaller part is not worth a candidate of its own
_FINE = 0.1  # what a step that only adjusts is hoped to remove of its share
_CLEARLY = 2.0  # times the least error: a candidate that lost clearly
_MOST_LOST = 5.0  # times: no candidate counts as worse, nor does one that failed
_HOPELESS = 0.01  # of the share: such a candidate is not tried


@dataclass(frozen=True)
class Step:
    """A candidate to try next, and what is hoped of it."""

    candidate: Candidate
    reason: str
    share: float  # of the squared error that it may remove


def steps(found: Search, space: SearchSpace) -> Iterator[Step]:
    """Yield what may improve on the best trial, with the share of its error it may remove.

    What is hoped of a candidate shrinks with every one of its kind that has clearly lost.
    """
    best = found.best
    if best is None or best.outcome is None or best.error <= PERFECT:
        return
    for step in _hoped(found, best.candidate, best.outcome, space):
        chance = _chance(found, step.candidate)
        if chance > _HOPELESS:
            yield replace(step, share=chance * step.share)


def _hoped(found: Search, best: Candidate, outcome: Outcome, space: SearchSpace) -> Iterator[Step]:
    shares = outcome.shares
    representation, data = shares["representation"], shares["data"]
    if representation > _MATTERS:
        for one in longer_codes(space, best, outcome, found.lengths):
            yield Step(one, "+ code", representation)
    learnable = 1 - representation
    if learnable < _MATTERS:
        return
    main = best.predictor == "affine"  # what a linear map does not see it cannot make up for
    for one in more_input(best):
        yield Step(one, "+ input", learnable * (1.0 if main else _FINE))
    for one in other_predictors(space, best):
        yield Step(one, "predictor", learnable)
    if data > _MATTERS:
        for one in less_input(best):
            yield Step(one, "- input", data * _FINE / 2)
        for one in more_data(space, best, outcome.tuned):
            yield Step(one, "+ fields", data)


def _chance(found: Search, candidate: Candidate) -> float:
    """Return by how much the trials of a candidate's kind have lost, as parts of squared errors.

    Each is compared with the best one before it. A short training is expected to lose.
    """
    chance, least = 1.0, math.inf
    for trial in found.trials:
        worse = min(_MOST_LOST, trial.error / least) if least < math.inf else 0.0
        if worse > _CLEARLY and trial.candidate.kind == candidate.kind and not candidate.epochs:
            chance /= worse**2
        least = min(least, trial.error)
    return chance


def longer_codes(
    space: SearchSpace, best: Candidate, outcome: Outcome, lengths: Mapping[tuple[str, int], int]
) -> Iterator[Candidate]:
    """Yield neighbours that can express more: a longer code, another chain of at least this length.

    `lengths` are the known lengths of chains' codes.
    """
    if space.code_given:
        yield from (replace(best, chain=one) for one in space.chains if one != best.chain)
        return
    nodes = space.values
    size = outcome.output_code
    longer = min(best.code + 1, len(CODES) - 1)
    if best.chain in SIZED:
        if max(size, best.size or 0) < nodes and size >= (best.size or 0):
            yield replace(best, size=min(2 * size, nodes), code=longer)
    elif longer > best.code:
        yield replace(best, code=longer)
    for chain in space.chains:
        if chain == best.chain:
            continue
        if chain in SIZED:
            yield replace(best, chain=chain, size=min(size, nodes))
            continue
        for code in range(best.code, len(CODES)):
            if lengths.get((chain, code), size) >= size:
                yield replace(best, chain=chain, code=code, size=None)
                break


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


def other_predictors(space: SearchSpace, best: Candidate) -> Iterator[Candidate]:
    """Yield the neighbours with a predictor that comes after the best one's."""
    if "predictor" in space.given:
        return
    for name, kind in KINDS.items():
        if best.predictor not in kind.after:
            continue
        if name == "encoder":
            if space.takes(name, best.chain) and not space.stored:
                yield space.encoded(best)
        else:
            few = TUNING_SAMPLES if name == "kernel" and space.samples > TUNING_SAMPLES else None
            yield replace(best, predictor=name, samples=few, tuned=())


def longer_training(
    space: SearchSpace, probe: Candidate, best: Candidate, epochs: float
) -> Iterator[Candidate]:
    """Yield an encoder of longer codes than the best one's, trained for so many epochs, or more.

    `probe` is an encoder that was trained shortly. Unless it is the best one itself, a training
    must be much longer to be of use. What then limits it would be the code, which costs little.
    """
    assert probe.epochs is not None
    least = probe.epochs + 1 if probe == best else LONGER * probe.epochs
    if least <= _MOST_EPOCHS and "epochs" not in space.given:
        longer = min(_MOST_EPOCHS, max(least, int(epochs)))
        nodes = space.values
        yield replace(
            probe,
            chain=best.chain,
            code=min(best.code + 1, len(CODES) - 1),
            size=best.size and min(2 * best.size, nodes),
            epochs=longer,
        )


def more_data(
    space: SearchSpace, best: Candidate, tuned: tuple[tuple[str, Any], ...]
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
