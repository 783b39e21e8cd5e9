"""How long a candidate should take, estimated from those that were tried."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from twoscale.math.pca import OVERSAMPLING, POWER_ITERATIONS, RANK_GROWTH
from twoscale.networks.field_encoder import usual_cut
from twoscale.predictors.base import EIGEN, Sizes
from twoscale.search.space import Candidate, SearchSpace
from twoscale.search.trials import Search, Trial

_QR = 20  # times its products: it runs on one thread
_OVERHEAD = 1e9  # of any fit, however small
_PASSES = 500  # products in the time of all passes over a value: fields are read, cut and compared
CAUTION = 1.2  # times the estimate, which is exceeded in half of all cases
_CODE_GROWTH = 1.8  # times the length, roughly, from one code to the next


class Pace(NamedTuple):
    """The best trial of a predictor that is probed, and the seconds its fit took."""

    trial: Trial
    fixed: float  # besides epochs
    epoch: float  # each

    @property
    def training(self) -> float:
        """Return the seconds of all epochs."""
        assert self.trial.outcome is not None
        return self.epoch * (self.trial.outcome.epochs or 0.0)


def training_pace(found: Search, predictor: str | None = None) -> Pace | None:
    """Return how fast the best trial of a probed predictor was, of any by default."""
    seen = [
        one
        for one in found.trials
        if one.outcome
        and one.outcome.epoch_seconds
        and predictor in (None, one.candidate.predictor)
    ]
    if not seen:
        return None
    trial = min(seen, key=lambda trial: trial.error)
    assert trial.outcome is not None
    pace = Pace(trial, 0.0, trial.outcome.epoch_seconds or 0.0)
    return pace._replace(fixed=max(0.0, trial.seconds - pace.training))


def expected_seconds(
    candidate: Candidate, found: Search, space: SearchSpace, validation: int, *, anew: bool = False
) -> float:
    """Return the seconds a candidate should take.

    Time is proportional to work. The seconds per multiplication are those of all trials with the
    same predictor, or of all trials if the predictor is new. With `anew` no representation that is
    fitted already is used.
    """
    pace = training_pace(found, candidate.predictor)
    if pace is not None and candidate.epochs and not anew:
        epochs = candidate.epochs * candidate.members / pace.trial.candidate.members
        return CAUTION * pace.fixed + CAUTION * pace.epoch * epochs
    fitted = [(trial, place) for place, trial in enumerate(found.trials) if trial.outcome]
    of_codes = [one for one in fitted if not one[0].candidate.reads_fields]
    alike = [one for one in fitted if one[0].candidate.predictor == candidate.predictor]
    seconds = total = 0.0
    for trial, place in alike or of_codes or fitted:
        sizes = _sizes(trial, trial.candidate, found.trials[:place], space, validation)
        seconds += trial.seconds
        total += representation_work(sizes) + trial.candidate.cost.work(sizes)
    known = min(of_codes or fitted, key=lambda one: one[0].error)[0]
    sizes = _sizes(known, candidate, () if anew else found.trials, space, validation)
    besides, own = representation_work(sizes), candidate.cost.work(sizes)
    faster = candidate.cost.gpu_speed if space.accelerated and not alike else 1.0
    each = CAUTION * seconds / total
    return each * besides + each * own / faster


def _sizes(
    known: Trial, candidate: Candidate, before: Sequence[Trial], space: SearchSpace, validation: int
) -> Sizes:
    """Return the sizes of a candidate after some trials, extrapolated from a `known` trial."""
    assert known.outcome is not None
    base, outcome, kind = known.candidate, known.outcome, candidate.growth
    nodes, input_nodes = space.values, space.input_values
    lost = (1 - base.input_variance) / (1 - candidate.input_variance)
    grown = candidate.code - base.code if candidate.chain == base.chain else 0
    longer = _CODE_GROWTH**grown
    read = candidate.reads_fields
    input_code = min(prod(space.inputs.shape), max(1.0, outcome.input_code * lost))
    output_code = min(nodes, candidate.size or outcome.output_code * longer)
    earlier = [trial.candidate for trial in before]
    probe = space.probe_settings(candidate.predictor)
    return Sizes(
        samples=space.samples,
        images=_images(candidate, space),
        learned=min(candidate.samples or space.samples, space.samples),
        validation=validation,
        nodes=nodes,
        patch_nodes=nodes if kind.one_block else kind.patch_factor * space.patch_nodes,
        coarse_nodes=kind.first_values(space.outputs),
        input_nodes=input_nodes,
        input_patch_nodes=input_nodes if kind.one_block else space.input_patch_nodes,
        input_code=0 if read else round(input_code),
        output_code=0 if kind.whole else round(output_code),
        randomized=space.solver(candidate.chain) == "randomized",
        new_input=not read and all(candidate.input_part != one.input_part for one in earlier),
        new_output=not kind.whole
        and all(candidate.output_part != one.output_part for one in earlier),
        tuned=bool(candidate.tuned),
        epochs=(candidate.epochs or 0) * candidate.members,
        cells=round(prod(side / (probe.get("cut") or usual_cut(side)) for side in space.shape)),
        width=probe.get("width", 0),
        sides=sum(space.shape),
    )


def _images(candidate: Candidate, space: SearchSpace) -> int:
    """Return the images of a field that are learned from; a network draws one of them."""
    drawn = candidate.growth.whole and candidate.probed
    return 1 if drawn or candidate.symmetries == "none" else space.images


def representation_work(sizes: Sizes) -> float:
    """Return the work of a fit without its predictor."""
    fields = sizes.images * sizes.samples
    input_nodes = sizes.nodes if sizes.input_nodes is None else sizes.input_nodes
    input_patch = sizes.input_patch_nodes or sizes.patch_nodes
    inputs = _components(sizes, input_nodes, input_patch, sizes.input_code)
    outputs = _components(sizes, sizes.nodes, sizes.patch_nodes, sizes.output_code)
    coarse = _components(sizes, sizes.coarse_nodes, sizes.coarse_nodes, sizes.output_code)
    fits = sizes.new_input * inputs + sizes.new_output * (outputs + coarse)
    products = input_patch * sizes.input_code + 4 * sizes.patch_nodes * sizes.output_code
    codes = 2.0 * fields * products
    nearest = 2.0 * fields * sizes.output_code**2 + EIGEN * sizes.output_code**3
    passes = float(_PASSES) * fields * (sizes.nodes + input_nodes)
    return _OVERHEAD + fits + codes + nearest + passes


def _components(sizes: Sizes, nodes: int, features: int, code: int) -> float:
    """Return the work of the PCA of `nodes` in blocks of `features`, whose codes are `code` long.

    By covariance it is the covariances and their eigenvectors. The randomised PCA multiplies with
    as many directions as it keeps, and finds their bases. It starts with few directions and takes
    more until they suffice; all attempts together cost a multiple of the last one.
    """
    if not nodes:  # parameters alone have no PCA
        return 0.0
    fields, blocks = sizes.images * sizes.samples, nodes / features
    if not sizes.randomized:
        return 2.0 * fields * nodes * features + EIGEN * blocks * features**3
    width = min(code / blocks + OVERSAMPLING, features, fields)
    passes = (1 + POWER_ITERATIONS) * RANK_GROWTH / (RANK_GROWTH - 1)
    return passes * nodes * width * (4.0 * fields + 2.0 * _QR * width)
