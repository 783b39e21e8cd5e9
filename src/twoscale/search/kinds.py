"""The predictors a search knows: with which settings it fits them, and how much work that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twoscale.linalg.pca import OVERSAMPLING, POWER_ITERATIONS, RANK_GROWTH
from twoscale.methods.recipes import resolve
from twoscale.predictors import affine, kernel

_EIGEN = 25  # n^3 of them: an eigendecomposition, slower than products as it is
_QR = 20  # times the products in it: done by one thread
_CHOLESKY = 1
_OVERHEAD = 1e9  # of any fit, however small
_STEP = 2e7  # what a step of a small network takes in overhead
_EPOCHS = 100
_CELL_WORK = 500  # times the squared width: an encoder's training step on one of its cells
_TUNING = len(kernel.LENGTH_SCALES) + len(kernel.KERNELS) - 1  # decompositions to choose both

_USUAL = resolve("two-scale", {})


@dataclass(frozen=True)
class Sizes:
    """What the work of a fit depends on."""

    samples: int
    images: int  # training fields that symmetries make of one
    learned: int  # samples the predictor learns from
    validation: int
    nodes: int
    patch_nodes: int
    coarse_nodes: int
    input_code: int
    output_code: int
    randomized: bool = False  # components of large blocks are iterated, not decomposed
    new_input: bool = True  # the input's representation is not fitted yet
    new_output: bool = True
    tuned: bool = False  # a kernel that knows its length scale and strength
    epochs: int = 0  # of an encoder
    cells: int = 0  # of its finest level
    width: int = 0  # its channels


@dataclass(frozen=True)
class Kind:
    """A predictor: settings of a fit, its work in multiplications, what it is tried after.

    `pace` is how many times faster its multiplications are on a GPU than those of closed forms, as
    long as it has not been seen at work.
    """

    work: Callable[[Sizes], float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    pace: float = 1.0


def _affine(sizes: Sizes) -> float:
    fields = sizes.images * sizes.samples
    smaller = min(fields, sizes.input_code)
    products = 2.0 * fields * sizes.input_code * (smaller + sizes.output_code)
    judging = 2.0 * affine.STRENGTH_COUNT * sizes.validation * smaller * sizes.output_code
    return products + judging + _EIGEN * smaller**3


def _kernel(sizes: Sizes) -> float:
    samples, images = sizes.learned, sizes.images
    each = _CHOLESKY if sizes.tuned else _EIGEN
    # The group's blocks: one of n rows, four, or (the square's) four and one of 2 n.
    blocks = {1: 1, 4: 4, 8: 12}.get(images, images) * each * samples**3
    tuning = 0 if sizes.tuned else _TUNING * _EIGEN * min(samples, kernel.TUNING_SAMPLES) ** 3
    distances = 4.0 * images * samples**2 * (sizes.input_code + 2 * sizes.output_code)
    judging = 2.0 * kernel.STRENGTH_COUNT * sizes.validation * images * samples * sizes.output_code
    return _affine(sizes) + blocks + tuning + distances + judging


def _network(sizes: Sizes) -> float:
    batch, width = _USUAL["batch_size"], _USUAL["hidden_width"]
    inside = (_USUAL["hidden_layers"] - 1) * width
    steps = _EPOCHS * sizes.images * sizes.samples / batch
    return steps * (_STEP + 6.0 * batch * width * (sizes.input_code + inside + sizes.output_code))


def _affine_network(sizes: Sizes) -> float:
    return _affine(sizes) + _network(sizes)


def _encoder(sizes: Sizes) -> float:
    fields = sizes.epochs * (sizes.samples + sizes.validation / 3)
    return fields * sizes.cells * _CELL_WORK * sizes.width**2


KINDS: dict[str, Kind] = {
    "affine": Kind(_affine),
    "kernel": Kind(_kernel, after=("affine", "affine-mlp")),
    "affine-mlp": Kind(_affine_network, {"epochs": _EPOCHS}, after=("affine",)),
    "mlp": Kind(_network, {"epochs": _EPOCHS}),  # only if asked for: affine-mlp contains it
    "encoder": Kind(_encoder, after=("affine", "affine-mlp", "kernel"), pace=20.0),
    # A predictor that is added here is searched; `after` says which ones it may improve on.
}


def work(predictor: str, sizes: Sizes) -> float:
    """Return the work of a fit in multiplications: representations, transforms, predictor."""
    fields = sizes.images * sizes.samples
    inputs = _components(sizes, sizes.nodes, sizes.patch_nodes, sizes.input_code)
    outputs = _components(sizes, sizes.nodes, sizes.patch_nodes, sizes.output_code)
    coarse = _components(sizes, sizes.coarse_nodes, sizes.coarse_nodes, sizes.output_code)
    fits = sizes.new_input * inputs + sizes.new_output * (outputs + coarse)
    codes = 2.0 * fields * sizes.patch_nodes * (sizes.input_code + 4 * sizes.output_code)
    nearest = 2.0 * fields * sizes.output_code**2 + _EIGEN * sizes.output_code**3
    return _OVERHEAD + fits + codes + nearest + KINDS[predictor].work(sizes)


def _components(sizes: Sizes, nodes: int, features: int, code: int) -> float:
    """Return the work of the PCA of `nodes` in blocks of `features`, whose codes are `code` long.

    Covariances and their eigenvectors; or, randomised, products with as many directions as are
    kept, and their bases. There it begins with few directions, so that all attempts together are
    a multiple of the last.
    """
    fields, blocks = sizes.images * sizes.samples, nodes / features
    if not sizes.randomized:
        return 2.0 * fields * nodes * features + _EIGEN * blocks * features**3
    width = min(code / blocks + OVERSAMPLING, features, fields)
    passes = (1 + POWER_ITERATIONS) * RANK_GROWTH / (RANK_GROWTH - 1)
    return passes * nodes * width * (4.0 * fields + 2.0 * _QR * width)
