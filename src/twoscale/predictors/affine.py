"""The affine map between codes, in closed form, and what predictors of codes have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import hypot, prod
from typing import Annotated, Any, Self

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.math.ridge import (
    Modes,
    linear_modes,
    linear_modes_of_parts,
    squared_errors_of_parts,
)
from twoscale.networks import DenseNetwork
from twoscale.predictors.base import (
    EIGEN,
    CodePredictor,
    Objective,
    Pack,
    PredictorCost,
    Sizes,
    load_weights,
)
from twoscale.representation import Representation
from twoscale.representation.geometry import channel_metrics, decoder_isometry
from twoscale.settings import real
from twoscale.training import CodePairs

STRENGTH_COUNT = 40

Ridge = Annotated[
    float | None,
    real(
        "ridge strength, relative to the largest eigenvalue; none: chosen on validation fields",
        0.0,
        1.0,
        "a fraction from 0 to 1",
    ),
]


def affine_work(sizes: Sizes) -> float:
    """Return the multiplications of a fit, for a search."""
    fields = sizes.images * sizes.samples
    smaller = min(fields, sizes.input_code)
    products = 2.0 * fields * sizes.input_code * (smaller + sizes.output_code)
    judging = 2.0 * STRENGTH_COUNT * sizes.validation * smaller * sizes.output_code
    return products + judging + EIGEN * smaller**3


@dataclass(frozen=True)
class AffineFit:
    """z = weight x + bias, with the strengths that were tried and their errors."""

    weight: Tensor  # (outputs, inputs), float64
    bias: Tensor  # (outputs,)
    strength: float  # relative to the largest eigenvalue of the inputs' Gram matrix
    strengths: list[float]  # all that were tried, relative as well
    errors: Tensor  # (strengths,): squared errors on the validation codes

    def network(self) -> DenseNetwork:
        """Return the map as a network without hidden layers, in single precision."""
        outputs, inputs = self.weight.shape
        network = DenseNetwork((inputs, outputs)).to(self.weight.device)
        (layer,) = network.linear
        with torch.no_grad():
            layer.weight.copy_(self.weight)
            layer.bias.copy_(self.bias)
        return network

    def importance(self, metric: Tensor) -> Tensor:
        """Return the norm, in the metric, of the change per unit of each input (inputs,)."""
        return (metric.mT @ self.weight).norm(dim=0)


def fit_affine(
    training: CodePairs,
    validation: CodePairs,
    metric: Tensor,
    *,
    channels: Sequence[Tensor] = (),
    strength: float | None = None,
) -> AffineFit:
    """Return the ridge regression with an intercept, the same strength for all outputs.

    Without `strength` the best of a grid on the validation codes is taken. The error of a code is
    ||e @ metric||^2; with the metrics of several `channels` it is the geometric mean of theirs. One
    eigendecomposition serves the whole grid. Codes on disk are read part by part, twice.
    """
    training, validation = _converted(training), _converted(validation)
    centre, offset = _means(training)
    directions, modes = _modes(training, centre, offset)
    strengths = modes.strengths(STRENGTH_COUNT) if strength is None else [strength * modes.largest]
    held_out = (
        ((part.inputs - centre) @ directions, part.targets - offset) for part in _parts(validation)
    )
    errors = squared_errors_of_parts(modes, held_out, strengths, channels or [metric])
    chosen = strengths[int(errors.argmin())]
    weight = (directions @ modes.weights(chosen)).mT
    return AffineFit(
        weight=weight,
        bias=offset - weight @ centre,
        strength=chosen / modes.largest,
        strengths=[one / modes.largest for one in strengths],
        errors=errors,
    )


def _converted(pairs: CodePairs) -> CodePairs:
    """Return codes in double precision if they are in memory, and as they are if on disk."""
    return pairs if len(list(pairs.parts())) > 1 else pairs.double()


def _parts(pairs: CodePairs) -> Iterator[CodePairs]:
    """Yield codes in double precision, those on disk part by part."""
    for part in pairs.parts():
        yield CodePairs(pairs.inputs[part], pairs.targets[part]).double()


def _means(pairs: CodePairs) -> tuple[Tensor, Tensor]:
    means = [
        [len(part) / len(pairs) * codes.mean(0) for codes in (part.inputs, part.targets)]
        for part in _parts(pairs)
    ]
    inputs, targets = (reduce(torch.add, side) for side in zip(*means, strict=True))
    return inputs, targets


def _modes(pairs: CodePairs, centre: Tensor, offset: Tensor) -> tuple[Tensor, Modes]:
    """Return the modes of centred codes; those longer than there are samples are read at once."""
    centred = ((part.inputs - centre, part.targets - offset) for part in _parts(pairs))
    samples, features = pairs.inputs.shape
    if features <= samples:
        return linear_modes_of_parts(centred)
    inputs, targets = zip(*centred, strict=True)
    return linear_modes(torch.cat(inputs), torch.cat(targets))


@dataclass(frozen=True)
class FieldErrors:
    """Errors of the decoded fields, computed from codes without decoding them."""

    metric: Tensor  # (code, coordinates): ||e @ metric|| is the norm of the field error of e
    channels: tuple[Tensor, ...]  # the same for each channel, where there are several
    size: float  # norm of all validation fields; both in the decoder's unit

    @classmethod
    def of(cls, decoder: Representation, validation: CodePairs) -> FieldErrors:
        metric = decoder_isometry(decoder).to_coordinates
        norms = []
        for part in validation.parts(prod(decoder.space.shape)):
            with torch.no_grad():
                fields = decoder.decode(validation.targets[part]).double() / decoder.unit
            norms.append(float(fields.norm()))
        return cls(metric, channel_metrics(decoder), hypot(*norms) or 1.0)

    @torch.no_grad()
    def relative(self, predict: Callable[[Tensor], Tensor], pairs: CodePairs) -> float:
        """Return the relative L2 error of the decoded fields of predicted codes."""
        norms = []
        for part in pairs.parts():
            error = (predict(pairs.inputs[part]) - pairs.targets[part]).double()
            norms.append(float((error @ self.metric).norm()))
        return hypot(*norms) / self.size


class NetworkPredictor(CodePredictor):
    """A predictor that is one dense network, trained or in closed form."""

    def __init__(self, *, hidden: tuple[int, ...] = (), objective: str) -> None:
        super().__init__(objective=objective)
        self.hidden = hidden
        self.network: DenseNetwork | None = None

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.network = shaped_like(tensors, self.hidden)
        load_weights(self, tensors)
        return self

    @property
    def trained(self) -> DenseNetwork:
        assert self.network is not None
        return self.network

    def for_page(self, pack: Pack) -> dict[str, Any]:
        return {"kind": "sum", "networks": [self.trained.for_page(pack)]}

    def forward(self, codes: Tensor) -> Tensor:
        return self.trained(codes)


def shaped_like(tensors: Mapping[str, Tensor], hidden: tuple[int, ...]) -> DenseNetwork:
    """Return a network with these hidden layers and the outer sizes of the weights `network.*`."""
    # By name: files hold tensors in any order.
    first = tensors.get("network.0.weight")
    last = tensors.get(f"network.{2 * len(hidden)}.weight")
    ends = (1, 1) if first is None or last is None else (first.shape[-1], len(last))
    sizes = (ends[0], *hidden, ends[1])
    for place, shape in enumerate(pairwise(sizes)):  # checked before anything is allocated
        found = tensors.get(f"network.{2 * place}.weight")
        if found is None or found.shape != shape[::-1] or not found.numel():
            raise TwoscaleError("the weights do not fit the model: the artifact is damaged")
    return DenseNetwork(sizes)


class Affine(NetworkPredictor):
    """The affine map between codes, by ridge regression in double precision.

    Parameters
    ----------
    ridge
        Strength of the regularisation, from 0 to 1: a share of the largest eigenvalue of the
        inputs' Gram matrix. By default (None) the best of 40 values on the validation fields.
    objective
        With "field" it learns the codes of the nearest fields; the other objectives give the same
        map.

    Attributes
    ----------
    network
        The fitted map: a `DenseNetwork` without hidden layers, float32.
    chosen
        "ridge" and "validation_error", the relative L2 error of the decoded validation fields.

    Examples
    --------
    >>> Affine(ridge=1e-6)
    Affine(ridge=1e-06)
    """

    name = "affine"
    title = "ridge regression"
    closed_form = True
    cost = PredictorCost(affine_work, linear=True)

    def __init__(self, *, ridge: Ridge = None, objective: Objective = "block-balanced") -> None:
        super().__init__(objective=objective)
        self.ridge = ridge

    @property
    def uses_validation(self) -> bool:
        return self.ridge is None

    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> None:
        errors = FieldErrors.of(decoder, validation)
        fit = fit_affine(
            training,
            validation,
            errors.metric,
            channels=errors.channels,
            strength=self.ridge,
        )
        self.network = fit.network()
        error = errors.relative(self, validation)
        self.chosen = {"ridge": fit.strength, "validation_error": error}
