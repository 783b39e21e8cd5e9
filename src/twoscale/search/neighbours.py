"""The steps from a candidate to its neighbours: what may be better, and why."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from twoscale.predictors import get_predictor
from twoscale.predictors.base import PredictorCost
from twoscale.representation.as_method import CODES
from twoscale.search.advice import PERFECT
from twoscale.search.space import (
    INPUT_VARIANCES,
    Candidate,
    SearchSpace,
    growth_of,
    searched_predictors,
)
from twoscale.search.trials import Outcome, Search, Trial

_MOST_EPOCHS = 300
_MOST_MEMBERS = 4
_LINEAR_VARIANCES = (0.95, 0.99, 0.999, 0.9999)
_MATTERS = 0.1  # of the squared error: a smaller share is not worth a candidate
_FINE = 0.1  # of its share: the expected gain of a step that only adjusts
_CLEARLY = 2.0  # times the least error: such a candidate has clearly lost
_MOST_LOST = 5.0  # times the least error: a candidate that lost or failed counts as no worse
_HOPELESS = 0.01  # of its share: a candidate of less expected gain is not tried


def steps(found: Search, space: SearchSpace) -> Iterator[Trial]:
    """Yield what may improve on the best trial, with the share of its error it may remove.

    The share shrinks with every candidate of the same family that has clearly lost.
    """
    best = found.best
    if best is None or best.error <= PERFECT:
        return
    for candidate, outcome in _starts(found):
        for step in _neighbours(found, candidate, outcome, space):
            chance = _chance(found, step.candidate)
            if chance > _HOPELESS:
                yield replace(step, share=chance * step.share)


def _starts(found: Search) -> Iterator[tuple[Candidate, Outcome]]:
    """Yield the best candidate; if it is a closed form of whole fields, also the best other one.

    Such a form has no code that could be longer, and no predictor comes after it.
    """
    fitted = [(one.candidate, one.outcome) for one in found.trials if one.outcome is not None]
    for candidate, outcome in sorted(fitted, key=lambda one: one[1].error):
        yield candidate, outcome
        if candidate.probed or not candidate.reads_fields:
            return


def _neighbours(
    found: Search, best: Candidate, outcome: Outcome, space: SearchSpace
) -> Iterator[Trial]:
    shares = outcome.shares
    representation, data = shares["representation"], shares["data"]
    if representation > _MATTERS:
        for one in longer_codes(space, best, outcome, found.lengths):
            yield Trial(one, "+ code", share=representation)
    learnable = 1 - representation
    matters = learnable >= _MATTERS
    # Before all other predictors.
    untried = list(transformed_inputs(found, space, best)) if matters else []
    tried = {trial.candidate.predictor for trial in found.trials}
    for one in whole_field_predictors(space, best) if not untried else ():
        if one.predictor not in tried:
            yield Trial(one, "predictor", share=1.0)
    if not matters:
        return
    for one in untried:
        yield Trial(one, f"{one.transform} of input", share=learnable)
    input_gain = 1.0 if best.cost.linear else _FINE
    for one in _more_input_that_changes(found, space, best, outcome.input_code):
        yield Trial(one, "+ input", share=learnable * input_gain)
    for one in other_predictors(space, best) if not untried else ():
        yield Trial(one, "predictor", share=learnable)
    if data > _MATTERS:
        for one in less_input(space, best):
            yield Trial(one, "- input", share=data * _FINE / 2)
        for one in more_data(space, best, outcome.tuned):
            yield Trial(one, "+ fields", share=data)


def _more_input_that_changes(
    found: Search, space: SearchSpace, best: Candidate, code: int
) -> Iterator[Candidate]:
    """Yield the neighbour that sees more; the one after it if that had the same input code.

    Of few samples or nodes, two shares of variance may need as many modes.
    """
    same = [
        trial.candidate
        for trial in found.trials
        if trial.outcome is not None and trial.outcome.input_code == code
    ]
    for one in more_input(space, best):
        if one in same:
            yield from _more_input_that_changes(found, space, one, code)
        else:
            yield one


def _chance(found: Search, candidate: Candidate) -> float:
    """Return the factor of a candidate's expected gain that its family's losses leave.

    A trial whose error is r times that of the best one before it, with r above 2, divides the
    expected gain by r². A short training is expected to lose and divides nothing.
    """
    chance, least = 1.0, math.inf
    for trial in found.trials:
        worse = min(_MOST_LOST, trial.error / least) if least < math.inf else 0.0
        alike = trial.candidate.family == candidate.family
        if worse > _CLEARLY and alike and not candidate.probed:
            chance /= worse**2
        least = min(least, trial.error)
    return chance


def longer_codes(
    space: SearchSpace, best: Candidate, outcome: Outcome, lengths: Mapping[tuple[str, int], int]
) -> Iterator[Candidate]:
    """Yield neighbours that can express more: a longer code, or another chain of this length.

    `lengths` are the known lengths of codes, by chain and place in `CODES`.
    """
    if best.growth.whole:
        return
    if space.code_given:
        yield from (replace(best, chain=one) for one in space.chains if one != best.chain)
        return
    nodes = space.values
    size = outcome.output_code
    longer = min(best.code + 1, len(CODES) - 1)
    if best.growth.sized:
        if max(size, best.size or 0) < nodes and size >= (best.size or 0):
            yield replace(best, size=min(2 * size, nodes), code=longer)
    elif longer > best.code:
        yield replace(best, code=longer)
    for chain in space.chains:
        if chain == best.chain:
            continue
        if growth_of(chain).sized:
            yield replace(best, chain=chain, size=min(size, nodes))
            continue
        for code in range(best.code, len(CODES)):
            if lengths.get((chain, code), size) >= size:
                yield replace(best, chain=chain, code=code, size=None)
                break


def transformed_inputs(found: Search, space: SearchSpace, best: Candidate) -> Iterator[Candidate]:
    """Yield neighbours with a function of the input that no candidate has been tried with.

    They are tried with the first predictor, which is cheap, before any other; later candidates
    keep what was better.
    """
    tried = {trial.candidate.transform for trial in found.trials}
    for name in space.transforms:
        if name not in tried:
            yield replace(best, transform=name)


def more_input(space: SearchSpace, best: Candidate) -> Iterator[Candidate]:
    """Yield the neighbour that sees more of the input; a linear predictor takes larger steps."""
    ladder = _LINEAR_VARIANCES if best.cost.linear else INPUT_VARIANCES
    yield from _seeing(space, best, [one for one in ladder if one > best.input_variance][:1])


def less_input(space: SearchSpace, best: Candidate) -> Iterator[Candidate]:
    """Yield the neighbour that sees less of the input, unless the predictor is linear."""
    ladder = () if best.cost.linear else INPUT_VARIANCES
    yield from _seeing(space, best, [one for one in ladder if one < best.input_variance][-1:])


def _seeing(space: SearchSpace, best: Candidate, variances: Sequence[float]) -> Iterator[Candidate]:
    """Yield the candidate with other shares of the input's variance, if it reads a code of it."""
    if space.input_values and not best.reads_fields:
        yield from (replace(best, input_variance=one) for one in variances)


def other_predictors(space: SearchSpace, best: Candidate) -> Iterator[Candidate]:
    """Yield the neighbours with a predictor of codes that comes after the best one's."""
    for name, kind in _after(space, best, reads_fields=False):
        first = kind.first_samples
        few = first if first and space.samples > first else None
        yield replace(best, predictor=name, samples=few, tuned=())


def whole_field_predictors(space: SearchSpace, best: Candidate) -> Iterator[Candidate]:
    """Yield closed forms and short trainings of whole fields that come after the best one."""
    for name, _ in _after(space, best, reads_fields=True):
        yield space.reading_fields(best, name)


def _after(
    space: SearchSpace, best: Candidate, *, reads_fields: bool
) -> Iterator[tuple[str, PredictorCost]]:
    """Yield the predictors that may improve on the best one, and that may be tried."""
    if "predictor" not in space.given:
        for name, kind in searched_predictors().items():
            reads = get_predictor(name).reads_fields == reads_fields
            if reads and best.predictor in kind.after and space.takes(name, best.chain):
                yield name, kind


def longer_training(
    space: SearchSpace, probe: Candidate, best: Candidate, epochs: float
) -> Iterator[Candidate]:
    """Yield the long training after a short one, of so many epochs at most.

    `probe` is the candidate of the short training. If it has a code, the long training has a longer
    one than the best so far: the code would limit it, and costs little time.
    """
    assert probe.epochs is not None
    if probe.epochs >= _MOST_EPOCHS or "epochs" in space.given:
        return
    longer = replace(probe, epochs=min(_MOST_EPOCHS, max(probe.epochs + 1, math.ceil(epochs))))
    if not probe.growth.whole and not best.growth.whole:
        code, size = min(best.code + 1, len(CODES) - 1), best.size
        double = size and min(2 * size, space.values)
        longer = replace(longer, chain=best.chain, code=code, size=double)
    yield longer


def more_members(space: SearchSpace, trained: Candidate, times: float) -> Iterator[Candidate]:
    """Yield the average of several networks, if none is trained for longer.

    `times` is how many times the training fits into the time left. It is inactive for predictors
    without the setting `members`.
    """
    members = min(_MOST_MEMBERS, int(times * trained.members))
    longest = (trained.epochs or 0) >= _MOST_EPOCHS or "epochs" in space.given
    if longest and members > trained.members and space.averages_members(trained):
        yield replace(trained, members=members)


def more_data(
    space: SearchSpace, best: Candidate, tuned: tuple[tuple[str, Any], ...]
) -> Iterator[Candidate]:
    """Yield the neighbours that learn from more: all samples, their images, both.

    `tuned` are the settings that the predictor has chosen and need not choose again. A network
    that reads fields learns from all of them at once.
    """
    if best.probed:
        return
    if best.samples is not None:
        yield replace(best, samples=None, tuned=tuned)
        if 2 * best.samples < space.samples:
            yield replace(best, samples=2 * best.samples, tuned=tuned)
    if best.symmetries == "none" and space.images > 1:
        turned = space.with_images(best)
        yield replace(turned, tuned=tuned)
        yield replace(turned, samples=None, tuned=tuned)
