"""Kernel ridge regression between codes, with the symmetries of the data built in.

The kernel is Matern's of order 3/2 or 5/2, of the distance between weighted codes. A coordinate's
weight is the square root of its importance in the affine fit. Without weights the many small
coordinates of a PCA code would dominate the few that matter, with unit variance even more so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any, Self

import torch
from torch import Tensor, nn

from twoscale.domain.symmetries import IDENTITY, Group, irreducible, is_closed, products
from twoscale.errors import TwoscaleError
from twoscale.math.ridge import Modes, geometric_mean, squared_errors
from twoscale.predictors.affine import FieldErrors, Ridge, affine_work, fit_affine
from twoscale.predictors.base import EIGEN, CodePredictor, Objective, Pack, PredictorCost, Sizes
from twoscale.representation import Representation
from twoscale.representation.base import subset
from twoscale.runtime.memory import free_memory, size_text
from twoscale.settings import POSITIVE, choice, real, whole
from twoscale.training import CodePairs

LENGTH_SCALES = (1.0, 2.0, 4.0, 8.0)  # in units of the median distance
STRENGTH_COUNT = 20
TUNING_SAMPLES = 1000
_POWER_ITERATIONS = 500
_TILE = 2**26  # kernel values computed together when predicting
_ZERO = 1e-300  # the least squared distance: the root of zero has no derivative


def _matern_3_2(distance: Tensor) -> Tensor:
    s = math.sqrt(3) * distance
    return (1 + s) * torch.exp(-s)


def _matern_5_2(distance: Tensor) -> Tensor:
    s = math.sqrt(5) * distance
    return (1 + s + s.square() / 3) * torch.exp(-s)


KERNELS: dict[str, Callable[[Tensor], Tensor]] = {
    "matern-5/2": _matern_5_2,
    "matern-3/2": _matern_3_2,
}

_SKEW = 1e-6  # of kernel values that exact symmetry would make equal
_UNEQUAL = 1e-4  # of distances that exact symmetry would make equal; 1e-3 doubles errors
_FEW = 64  # samples whose distances are compared
_CHOLESKY = 1  # times n^3
_TUNING = len(LENGTH_SCALES) + len(KERNELS) - 1  # decompositions to choose both


class KernelRegression(nn.Module):
    """z = offset + sum_j k(|w x - c_j|) a_j, in double precision.

    Coefficients are far larger than the codes they add up to: single precision would lose digits.
    """

    order: Tensor  # (): twice the order of Matern's kernel, 3 or 5
    weights: Tensor  # (inputs,): w
    centres: Tensor  # (centres, inputs): c
    offset: Tensor  # (outputs,)
    _squares: Tensor  # (centres,): |c|^2

    def __init__(
        self, order: Tensor, weights: Tensor, centres: Tensor, offset: Tensor, coefficients: Tensor
    ) -> None:
        super().__init__()
        self.register_buffer("order", order)
        self.register_buffer("weights", weights)
        self.register_buffer("centres", centres)
        self.register_buffer("offset", offset)
        self.coefficients = nn.Parameter(coefficients, requires_grad=False)  # (centres, outputs)
        self.register_buffer("_squares", centres.square().sum(1), persistent=False)
        self._kernel = KERNELS[f"matern-{int(order)}/2"]

    @classmethod
    def restored(cls, tensors: Mapping[str, Tensor]) -> KernelRegression:
        """Return the regression with this saved state."""
        names = ("order", "weights", "centres", "offset", "coefficients")
        if missing := [name for name in names if name not in tensors]:
            raise TwoscaleError(f"the weights lack {missing}: the artifact is damaged")
        if f"matern-{int(tensors['order'])}/2" not in KERNELS:
            raise TwoscaleError("the kernel's order is unknown: the artifact is damaged")
        return cls(*(tensors[name] for name in names))

    def forward(self, codes: Tensor) -> Tensor:
        scaled = codes.to(self.weights.dtype) * self.weights
        rows = max(1, _TILE // len(self.centres))
        # An exported graph has no loop over parts: it takes batches of any size at once.
        whole = torch.compiler.is_compiling() or len(codes) <= rows
        parts = [scaled] if whole else scaled.split(rows)
        sums = [self._kernel(self._distances(part)) @ self.coefficients for part in parts]
        return (torch.cat(sums) + self.offset).to(codes.dtype)

    def _distances(self, scaled: Tensor) -> Tensor:
        """Return the distances (batch, centres) of weighted codes, by one product of matrices.

        That is what `torch.cdist` does for more than 25 centres, whose squares are known here.
        """
        own = scaled.square().sum(1, keepdim=True)
        squares = torch.addmm(self._squares, scaled, self.centres.mT, alpha=-2) + own
        return squares.clamp_min(_ZERO).sqrt()


@dataclass(frozen=True)
class _KernelData:
    """Training and validation codes of a kernel regression, weighted and centred."""

    group: Group
    inputs: Tensor  # (symmetries, samples, inputs), weighted
    targets: Tensor  # (symmetries, samples, outputs), centred
    probes: Tensor  # (validation samples, inputs), weighted
    truth: Tensor  # (validation samples, outputs), centred
    metrics: Sequence[Tensor]  # of channels
    strength: float | None

    def subset(self, samples: int) -> _KernelData:
        """Return the first samples only, without their images."""
        inputs, targets = self.inputs[:1, :samples], self.targets[:1, :samples]
        return replace(self, group=IDENTITY, inputs=inputs, targets=targets)


def fit_kernel(
    training: CodePairs,
    validation: CodePairs,
    metric: Tensor,
    *,
    channels: Sequence[Tensor] = (),
    group: Group = IDENTITY,
    kinds: Sequence[str] = tuple(KERNELS),
    length_scales: Sequence[float] = LENGTH_SCALES,
    strength: float | None = None,
) -> tuple[KernelRegression, dict[str, Any]]:
    """Return the regression, and the kernel, length scale and ridge chosen on validation codes.

    `training` holds the images of all samples under the first symmetry of `group`, then under the
    second, and so on. If codes do not turn with their fields, images are treated as samples of
    their own. Kernel and length scale are chosen on at most a thousand samples, the strength on all
    of them, unless it is given.
    """
    affine = fit_affine(training, validation, metric, channels=channels)
    weights = _weights(affine.importance(metric), training.inputs)
    offset = training.targets.mean(0)
    if not turn_with_fields(training.inputs * weights, group):
        group = IDENTITY
    apart = (len(group), -1)
    images = _KernelData(
        group=group,
        inputs=(training.inputs * weights).unflatten(0, apart),
        targets=(training.targets - offset).unflatten(0, apart),
        probes=validation.inputs * weights,
        truth=validation.targets - offset,
        metrics=channels or [metric],
        strength=strength,
    )
    kind, length = _choose(images, kinds, length_scales)
    _, ridge, coefficients = _solve(images, kind, length)
    regression = KernelRegression(
        torch.tensor(int(kind[len("matern-")])),
        weights / length,
        images.inputs.flatten(0, 1) / length,
        offset,
        coefficients.flatten(0, 1),
    )
    chosen = {"kernel": kind, "length_scale": length, "ridge": ridge}
    return regression, chosen


def kernel_bytes(samples: int, group: Group) -> int:
    """Return the most bytes that a fit on this many samples and all their images needs."""
    largest = max(matrices.shape[1] for matrices in irreducible(group))
    # Values and eigenvectors of all blocks; the block that is decomposed, and room to do so.
    return 8 * samples**2 * (2 * len(group) + 3 * largest**2)


def _weights(importance: Tensor, codes: Tensor) -> Tensor:
    """Return the coordinates' weights, such that the median distance between codes is one."""
    weights = importance.sqrt() if bool(importance.any()) else torch.ones_like(importance)
    sample = codes[:TUNING_SAMPLES] * weights
    distances = torch.pdist(sample) if len(sample) > 1 else sample.new_ones(1)
    return weights / (float(distances.median()) or 1.0)


def _choose(
    images: _KernelData, kinds: Sequence[str], length_scales: Sequence[float]
) -> tuple[str, float]:
    """Return kernel and length scale of the least validation error: first the length is chosen."""
    some = images.subset(TUNING_SAMPLES)

    @cache
    def error(kind: str, length: float) -> float:
        return _solve(some, kind, length)[0]

    first, length = kinds[0], length_scales[0]
    if len(length_scales) > 1:
        length = min(length_scales, key=lambda one: error(first, one))
    return (min(kinds, key=lambda one: error(one, length)) if len(kinds) > 1 else first), length


def _solve(images: _KernelData, kind: str, length: float) -> tuple[float, float, Tensor]:
    """Return squared validation error, strength and coefficients (symmetries, samples, outputs).

    The strength is the given one, or the best; it is relative to the largest eigenvalue.
    """

    def kernel(one: Tensor, other: Tensor) -> Tensor:
        return KERNELS[kind](torch.cdist(one, other) / length)

    blocks = image_blocks(images.inputs, images.group, kernel)
    seen = torch.stack([kernel(images.probes, inputs) for inputs in images.inputs])
    coefficients = _with_given_strength(blocks, images)
    if coefficients is None:
        return _by_eigenvectors(blocks, seen, images)
    rest = torch.einsum("gvn,gnq->vq", seen, coefficients) - images.truth
    error = float(geometric_mean([(rest @ one).square().sum() for one in images.metrics]))
    return error, images.strength or 0.0, coefficients


def _with_given_strength(blocks: Tensor, images: _KernelData) -> Tensor | None:
    """Return the coefficients by Cholesky factors, about 20 times less work than eigenvectors.

    None without a strength, or if it is so small that a block has no Cholesky factor.
    """
    if images.strength is None:
        return None
    shift: float | None = None
    coefficients = torch.zeros_like(images.targets)
    for matrices, block in parts_of(blocks, images.group):
        if shift is None:  # the first is that of symmetric functions, which has the largest value
            shift = images.strength * _largest_eigenvalue(block)
        shifted = block.diagonal_scatter(block.diagonal() + shift)
        factor, failed = torch.linalg.cholesky_ex(shifted)
        if int(failed):
            return None
        for basis in bases(matrices):
            inside = torch.cholesky_solve(transform(images.targets, basis), factor)
            coefficients += transform_back(inside, basis)
    return coefficients


def _largest_eigenvalue(matrix: Tensor) -> float:
    """Return the largest eigenvalue of a matrix without negative entries, by power iteration."""
    vector = torch.ones_like(matrix[0])
    value = previous = 0.0
    for _ in range(_POWER_ITERATIONS):
        vector = matrix @ (vector / vector.norm())
        previous, value = value, float(vector.norm())
        if abs(value - previous) <= 1e-14 * value:
            break
    return value


def _by_eigenvectors(
    blocks: Tensor, seen: Tensor, images: _KernelData
) -> tuple[float, float, Tensor]:
    """Return what `_solve` does: one eigendecomposition per representation for all strengths."""
    parts = decompose(blocks, images.targets, images.group)
    modes = Modes(*(torch.cat([part[k] for part in parts]) for k in (0, 1)))
    probes = torch.cat([transform(seen.mT, basis).mT @ u for _, _, u, basis in parts], 1)
    given = images.strength
    strengths = modes.strengths(STRENGTH_COUNT) if given is None else [given * modes.largest]
    errors = squared_errors(modes, probes, images.truth, strengths, images.metrics)
    best = int(errors.argmin())
    weights = modes.weights(strengths[best]).split([len(part[0]) for part in parts])
    coefficients = torch.zeros_like(images.targets)
    for own, (_, _, u, basis) in zip(weights, parts, strict=True):
        coefficients += transform_back(u @ own, basis)
    return float(errors[best]), strengths[best] / modes.largest, coefficients


def kernel_work(sizes: Sizes) -> float:
    """Return the multiplications of a fit, for a search."""
    samples, images = sizes.learned, sizes.images
    each = _CHOLESKY if sizes.tuned else EIGEN
    # The group's blocks: one of n rows, four, or (the square's) four and one of 2 n.
    blocks = {1: 1, 4: 4, 8: 12}.get(images, images) * each * samples**3
    tuning = 0 if sizes.tuned else _TUNING * EIGEN * min(samples, TUNING_SAMPLES) ** 3
    distances = 4.0 * images * samples**2 * (sizes.input_code + 2 * sizes.output_code)
    judging = 2.0 * STRENGTH_COUNT * sizes.validation * images * samples * sizes.output_code
    return affine_work(sizes) + blocks + tuning + distances + judging


class Kernel(CodePredictor):
    """Kernel ridge regression between codes, in double precision.

    All kernel values between training samples are in memory at once. A fit that would not find
    room says how many samples it has room for. Where their kernel values with all validation
    samples would not fit either, settings are chosen on the first ones.

    Parameters
    ----------
    ridge
        Strength of the regularisation, from 0 to 1: a share of the kernel matrix's largest
        eigenvalue. By default (None) the best of 20 values on the validation fields.
    kernel
        "matern-5/2" or "matern-3/2". By default (None) the better one on the validation fields.
    length_scale
        In units of the median distance between codes. By default (None) the best of 1, 2, 4 and 8
        on the validation fields.
    kernel_samples
        Use the first so many training samples. By default (None) all of them.
    objective
        With "field" it learns the codes of the nearest fields; the other objectives give the same
        map.

    Attributes
    ----------
    regression
        The fitted `KernelRegression`.
    chosen
        "kernel", "length_scale", "ridge" and "validation_error", the relative L2 error of the
        decoded validation fields.

    Examples
    --------
    >>> Kernel(kernel="matern-3/2", kernel_samples=4000)
    Kernel(kernel='matern-3/2', kernel_samples=4000)
    """

    name = "kernel"
    title = "kernel ridge regression"
    closed_form = True
    cost = PredictorCost(
        kernel_work,
        after=("affine", "affine-mlp"),
        first_samples=TUNING_SAMPLES,
        samples_setting="kernel_samples",
        tuned=("kernel", "length_scale", "ridge"),
    )

    def __init__(
        self,
        *,
        ridge: Ridge = None,
        kernel: Annotated[
            str | None, choice("kernel; none: chosen on validation fields", KERNELS)
        ] = None,
        length_scale: Annotated[
            float | None,
            real(
                "length scale of the kernel, in median distances; none: chosen on validation "
                "fields",
                *POSITIVE,
            ),
        ] = None,
        kernel_samples: Annotated[
            int | None, whole("most training fields the kernel uses; none: all")
        ] = None,
        objective: Objective = "block-balanced",
    ) -> None:
        super().__init__(objective=objective)
        self.kinds = tuple(KERNELS) if kernel is None else (kernel,)
        self.length_scales = LENGTH_SCALES if length_scale is None else (length_scale,)
        self.ridge = ridge
        self.kernel_samples = kernel_samples
        self.regression: KernelRegression | None = None

    @property
    def uses_validation(self) -> bool:
        return self.ridge is None or len(self.kinds) > 1 or len(self.length_scales) > 1

    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> None:
        errors = FieldErrors.of(decoder, validation)
        if not is_closed(training.group):  # then images are treated as samples of their own
            training = replace(training, group=IDENTITY)
        codes = self._limited(training)
        few = validation.scratch.rows(len(validation), len(codes.inputs))
        self.regression, self.chosen = fit_kernel(
            codes,
            CodePairs(validation.inputs[:few], validation.targets[:few]).double(),
            errors.metric,
            channels=errors.channels,
            group=training.group,
            kinds=self.kinds,
            length_scales=self.length_scales,
            strength=self.ridge,
        )
        self.chosen["validation_error"] = errors.relative(self, validation)

    def _limited(self, training: CodePairs) -> CodePairs:
        """Return the first `kernel_samples` samples with all their images, if memory allows."""
        images = len(training.group)
        samples = min(len(training) // images, self.kernel_samples or len(training))
        needed = kernel_bytes(samples, training.group)
        free = free_memory(training.inputs.device)
        if not training.inputs.is_cuda:
            free = min(free, training.scratch.memory or free)
        if needed > free:
            fitting = int(samples * (free / needed) ** 0.5)
            raise TwoscaleError(
                f"a kernel on {samples} training fields needs {size_text(needed)} of memory, "
                f"{size_text(free)} are free: set kernel_samples to at most {fitting}, "
                "or use another predictor"
            )
        kept = (
            codes.unflatten(0, (images, -1))[:, :samples].flatten(0, 1)
            for codes in (training.inputs, training.targets)
        )
        return CodePairs(*kept).double()

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.regression = KernelRegression.restored(subset(tensors, "regression"))
        return self

    def for_page(self, pack: Pack) -> dict[str, Any]:
        fitted = self.regression
        assert fitted is not None
        names = ("weights", "centres", "offset", "coefficients")
        numbers = {name: pack(getattr(fitted, name), "exact") for name in names}
        return {"kind": "kernel", "order": int(fitted.order), **numbers}

    def forward(self, codes: Tensor) -> Tensor:
        assert self.regression is not None
        return self.regression(codes)


def turn_with_fields(codes: Tensor, group: Group) -> bool:
    """Say whether codes (symmetries x samples, n) of images are as far apart as those of fields.

    Patches that a symmetry does not map onto patches have codes that are not: an odd number of
    nodes in an even number of patches, for one.
    """
    few = codes.unflatten(0, (len(group), -1))[:, :_FEW].double()
    distances = torch.cdist(few, few)
    return bool((distances - distances[0]).norm() <= _UNEQUAL * distances.norm())


def image_blocks(
    inputs: Tensor, group: Group, kernel: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Return k(x_i, s x_j) for every symmetry s, (symmetries, samples, samples).

    The kernel matrix of all images, k(g x_i, h x_j), depends on the symmetry from g to h only, if
    codes turn with their fields exactly. Where they do so only nearly, because a PCA found its
    directions by iteration or cut a pair of equal ones apart, all images are averaged over: that
    is again a kernel, and exactly symmetric.
    """
    table = products(group)

    def row(first: int) -> Tensor:
        return torch.stack([kernel(inputs[first], inputs[place]) for place in table[first]])

    back = [group.index(symmetry.inverse) for symmetry in group]
    blocks = row(0)
    if float((blocks - blocks[back].mT).abs().max()) > _SKEW:
        for first in range(1, len(group)):
            blocks += row(first)
        blocks /= len(group)
    return 0.5 * (blocks + blocks[back].mT)


def decompose(
    blocks: Tensor, targets: Tensor, group: Group
) -> list[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Return eigenvalues, targets, eigenvectors and functions on the group, part by part.

    The group's Fourier transform turns the kernel matrix of all images into one block
    sum_s R(s) k(x_i, s x_j) per irreducible representation R, of d x samples rows, for each of its
    d rows of functions: for the square four of one and one of two, instead of one of eight.
    """
    parts = []
    for matrices, block in parts_of(blocks, group):
        values, vectors = torch.linalg.eigh(block)
        for basis in bases(matrices):
            projected = vectors.mT @ transform(targets, basis)
            parts.append((values.clamp_min(0), projected, vectors, basis))
    return parts


def parts_of(blocks: Tensor, group: Group) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield each irreducible representation and its block of the kernel matrix of all images."""
    for matrices in irreducible(group):
        matrices = matrices.to(blocks)
        yield matrices, torch.einsum("scb,sij->cibj", matrices, blocks).flatten(2).flatten(0, 1)


def bases(matrices: Tensor) -> list[Tensor]:
    """Return the functions on the group (symmetries, d), one row of d after the other.

    Squared traces add up to the number of symmetries if all rows are different functions, and to
    twice as many if half of the rows have the functions of the others.
    """
    symmetries, size = matrices.shape[:2]
    traces = float(matrices.diagonal(dim1=1, dim2=2).sum(1).square().sum())
    rows = round(size * symmetries / traces)
    return [math.sqrt(size / symmetries) * matrices[:, row] for row in range(rows)]


def transform(values: Tensor, basis: Tensor) -> Tensor:
    """Return sum_g basis[g] values[g] for each column of `basis`, one below the other."""
    return torch.einsum("gb,gnq->bnq", basis, values).flatten(0, 1)


def transform_back(values: Tensor, basis: Tensor) -> Tensor:
    """Return what `transform` turns into values (columns x samples, outputs) of its range."""
    return torch.einsum("gb,bnq->gnq", basis, values.unflatten(0, (basis.shape[1], -1)))
