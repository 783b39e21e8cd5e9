"""How long a candidate should take, estimated from those that were tried."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from twoscale.networks.cells import usual_cut
from twoscale.search.candidates import Candidate, SearchSpace
from twoscale.search.kinds import Sizes, work
from twoscale.search.trials import Search, Trial

CAUTION = 1.2  # times the estimate, which is exceeded in half of all cases
_CODE_GROWTH = 1.8  # times the length, roughly, from one code to the next


class Pace(NamedTuple):
    """The best trial of a predictor that is probed, and the seconds its fit took."""

    trial: Trial
    fixed: float  # besides epochs
    epoch: float  # each


def training_pace(found: Search) -> Pace | None:
    """Return how fast the best trial that counted epochs was, if there is one."""
    seen = [one for one in found.trials if one.outcome and one.outcome.epoch_seconds]
    if not seen:
        return None
    trial = min(seen, key=lambda trial: trial.error)
    assert trial.outcome is not None
    epoch = trial.outcome.epoch_seconds or 0.0
    fixed = trial.seconds - epoch * (trial.candidate.epochs or 0)
    return Pace(trial, max(0.0, fixed), epoch)


def expected_seconds(
    candidate: Candidate, found: Search, space: SearchSpace, validation: int
) -> float:
    """Return the seconds a candidate should take.

    Time is proportional to work. The seconds per multiplication are those of all trials with the
    same predictor, or of all trials if the predictor is new.
    """
    pace = training_pace(found) if candidate.epochs else None
    if pace is not None and candidate.epochs:
        return CAUTION * (pace.fixed + pace.epoch * candidate.epochs)
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
    faster = candidate.predictor_kind.gpu_speed if space.accelerated and not alike else 1.0
    return CAUTION * seconds / total * work(candidate.predictor, sizes) / faster


def _sizes(
    known: Trial, candidate: Candidate, before: Sequence[Trial], space: SearchSpace, validation: int
) -> Sizes:
    """Return the sizes of a candidate after some trials, extrapolated from a `known` trial."""
    assert known.outcome is not None
    base, outcome = known.candidate, known.outcome
    nodes, input_nodes = space.values, space.input_values
    one_block = candidate.chain_kind.one_block
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
        patch_nodes=nodes if one_block else space.patch_nodes,
        coarse_nodes=candidate.chain_kind.first_values(space.outputs),
        input_nodes=input_nodes,
        input_patch_nodes=input_nodes if one_block else space.input_patch_nodes,
        input_code=round(min(prod(space.inputs.shape), max(1.0, outcome.input_code * lost))),
        output_code=round(min(nodes, candidate.size or outcome.output_code * longer)),
        randomized=space.solver(candidate.chain) == "randomized",
        new_input=all(candidate.input_part != one.input_part for one in earlier),
        new_output=all(candidate.output_part != one.output_part for one in earlier),
        tuned=bool(candidate.tuned),
        epochs=candidate.epochs or 0,
        cells=round(prod(side / usual_cut(side) for side in space.shape)),
        width=space.probe_settings(candidate.predictor).get("width", 0),
    )
