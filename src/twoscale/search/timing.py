"""How long a candidate should take, judged by those that were tried."""

from __future__ import annotations

import math
from collections.abc import Sequence

from twoscale.networks.cells import usual_cut
from twoscale.search.candidates import Candidate, SearchSpace
from twoscale.search.kinds import KINDS, Sizes, work
from twoscale.search.trials import Search, Trial

CAUTION = 1.2  # expected times are exceeded as often as not
_CODE_GROWTH = 1.8  # of a code from one length to the next, roughly


def encoder_pace(found: Search) -> tuple[Trial, float, float] | None:
    """Return the best encoder so far, what its fit took besides epochs, and what an epoch took."""
    seen = [one for one in found.trials if one.outcome and one.outcome.epoch_seconds]
    if not seen:
        return None
    trial = min(seen, key=lambda trial: trial.error)
    assert trial.outcome is not None
    each = trial.outcome.epoch_seconds or 0.0
    return trial, max(0.0, trial.seconds - each * (trial.candidate.epochs or 0)), each


def expected_seconds(
    candidate: Candidate, found: Search, space: SearchSpace, validation: int
) -> float:
    """Return how long a candidate should take, judged by the trials with the same predictor.

    Time is in proportion to work; the proportion is that of all such trials together, of all trials
    whatsoever where the predictor is new.
    """
    pace = encoder_pace(found) if candidate.epochs else None
    if pace is not None and candidate.epochs:
        _, fixed, each = pace
        return CAUTION * (fixed + each * candidate.epochs)
    done = [(trial, place) for place, trial in enumerate(found.trials) if trial.outcome]
    alike = [one for one in done if one[0].candidate.predictor == candidate.predictor]
    seconds = total = 0.0
    for trial, place in alike or done:
        sizes = _sizes(trial, trial.candidate, found.trials[:place], space, validation)
        seconds += trial.seconds
        total += work(trial.candidate.predictor, sizes)
    best = found.best
    assert best is not None
    sizes = _sizes(best, candidate, found.trials, space, validation)
    faster = KINDS[candidate.predictor].pace if space.accelerated and not alike else 1.0
    return CAUTION * seconds / total * work(candidate.predictor, sizes) / faster


def _sizes(
    known: Trial, candidate: Candidate, before: Sequence[Trial], space: SearchSpace, validation: int
) -> Sizes:
    """Return the sizes of a candidate that comes after some trials, guessed from one near it."""
    assert known.outcome is not None
    base, outcome = known.candidate, known.outcome
    nodes = space.values
    lost = (1 - base.input_variance) / (1 - candidate.input_variance)
    grown = candidate.code - base.code if candidate.chain == base.chain else 0
    longer = _CODE_GROWTH**grown
    earlier = [trial.candidate for trial in before]
    return Sizes(
        samples=space.samples,
        images=space.images if candidate.symmetries != "none" else 1,
        learned=min(candidate.samples or space.samples, space.samples),
        validation=validation,
        nodes=nodes,
        patch_nodes=nodes if candidate.chain == "global" else space.patch_nodes,
        coarse_nodes=space.coarse_nodes,
        input_code=round(min(nodes, max(1.0, outcome.input_code * lost))),
        output_code=round(min(nodes, candidate.size or outcome.output_code * longer)),
        randomized=space.solver(candidate.chain) == "randomized",
        new_input=all(candidate.input_part != one.input_part for one in earlier),
        new_output=all(candidate.output_part != one.output_part for one in earlier),
        tuned=bool(candidate.tuned),
        epochs=candidate.epochs or 0,
        cells=round(math.prod(side / usual_cut(side) for side in space.shape)),
        width=space.encoder["width"],
    )
