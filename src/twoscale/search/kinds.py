"""The predictors a search knows: with which settings it fits them, and how much work that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twoscale.math.pca import OVERSAMPLING, POWER_ITERATIONS, RANK_GROWTH
from twoscale.predictors import MLP, affine, kernel, spectral_filter
from twoscale.predictors.registry import defaults_of, get_predictor

_EIGEN = 25  # times n^3: an eigendecomposition, whose products are slower than others
_QR = 20  # times its products: it runs on one thread
_CHOLESKY = 1
_OVERHEAD = 1e9  # of any fit, however small
_STEP = 2e7  # overhead of one step of a small network
_EPOCHS = 100
_CELL_WORK = 2000  # times the squared width: an encoder's training step on one of its cells
_NODE_WORK = 160  # times the squared width: the same of a network of full resolution, on a node
_MODE_WORK = 6  # times a transform's products: in double precision, with passes over the modes
_MEASURED = 4  # validations beside those of epochs: before the training, and errors after it
_WIDTH = 32  # of a network whose width is not known
_PASSES = 500  # products in the time of all passes over a value: fields are read, cut and compared
_TUNING = len(kernel.LENGTH_SCALES) + len(kernel.KERNELS) - 1  # decompositions to choose both

_MLP = defaults_of(MLP)


@dataclass(frozen=True)
class Sizes:
    """What the work of a fit depends on. Numbers of nodes count every channel."""

    samples: int
    images: int  # training fields that symmetries make of one
    learned: int  # samples the predictor learns from
    validation: int
    nodes: int  # of an output field
    patch_nodes: int  # of one of its patches
    coarse_nodes: int
    input_code: int
    output_code: int
    input_nodes: int | None = None  # by default those of the output
    input_patch_nodes: int | None = None
    randomized: bool = False  # components of large blocks are iterated, not decomposed
    new_input: bool = True  # the input's representation is not fitted yet
    new_output: bool = True
    tuned: bool = False  # the predictor knows the settings it would choose
    epochs: int = 0  # of a predictor that is probed
    cells: int = 0  # of an encoder's finest level
    width: int = 0  # its channels
    sides: int = 0  # nodes along both axes of an output, added up


@dataclass(frozen=True)
class Probe:
    """A short training that tells how long an epoch takes and how far a long training may lead.

    It has at least `epochs`, or `epochs_alone` if no other predictor is tried. On a GPU it sees
    about `fields` fields, and the network has the `large` settings; on a CPU the `small` ones,
    and larger cells if it has `larger_cells`.
    """

    epochs: int
    epochs_alone: int
    fields: int
    small: Mapping[str, Any]
    large: Mapping[str, Any] = field(default_factory=dict)
    larger_cells: bool = False


@dataclass(frozen=True)
class Kind:
    """A predictor as a search knows it.

    Parameters
    ----------
    work
        Multiplications of a fit.
    settings
        Settings of every fit that are not the predictor's defaults.
    after
        Predictors it may improve on: it is tried when one of them is the best so far.
    gpu_speed
        How many times faster its multiplications are on a GPU than those of closed forms. It is
        used until a fit has been timed.
    linear
        Whether it is a linear map. One of codes chooses its own regularisation: it gains most from
        more of the input, and nothing from less.
    first_samples, samples_setting
        How many samples its first fit learns from at most, and the setting that says so.
    chooses
        Settings that a fit chooses, and that later fits take over.
    probe
        A short training before a long one, for a network that reads whole fields.
    """

    work: Callable[[Sizes], float]
    settings: Mapping[str, Any] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    gpu_speed: float = 1.0
    linear: bool = False
    first_samples: int | None = None
    samples_setting: str = ""
    chooses: tuple[str, ...] = ()
    probe: Probe | None = None


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


def _filter(sizes: Sizes) -> float:
    """Return the work of the transforms: two of a field to learn from, three to judge it.

    One that chooses among the four series of a grid tries them on a few fields.
    """
    few = min(sizes.samples, spectral_filter.SERIES_SAMPLES)
    transforms = 2.0 * sizes.images * sizes.samples + 3.0 * sizes.validation + 4 * (2 + 3) * few
    return _MODE_WORK * transforms * sizes.nodes * sizes.sides


def _network(sizes: Sizes) -> float:
    batch, width = _MLP["batch_size"], _MLP["hidden_width"]
    inside = (_MLP["hidden_layers"] - 1) * width
    steps = _EPOCHS * sizes.images * sizes.samples / batch
    return steps * (_STEP + 6.0 * batch * width * (sizes.input_code + inside + sizes.output_code))


def _affine_network(sizes: Sizes) -> float:
    return _affine(sizes) + _network(sizes)


def _encoder(sizes: Sizes) -> float:
    return _seen_fields(sizes) * sizes.cells * _CELL_WORK * sizes.width**2


def _full_resolution(sizes: Sizes) -> float:
    return _seen_fields(sizes) * sizes.nodes * _NODE_WORK * (sizes.width or _WIDTH) ** 2


def _seen_fields(sizes: Sizes) -> float:
    """Return the fields that a network sees; one that is not learned from counts as a third."""
    return sizes.epochs * sizes.samples + (sizes.epochs + _MEASURED) * sizes.validation / 3


KINDS: dict[str, Kind] = {
    "affine": Kind(_affine, linear=True),
    "filter": Kind(_filter, after=("affine", "affine-mlp", "kernel"), linear=True),
    "kernel": Kind(
        _kernel,
        after=("affine", "affine-mlp"),
        first_samples=kernel.TUNING_SAMPLES,
        samples_setting="kernel_samples",
        chooses=("kernel", "length_scale", "ridge"),
    ),
    "affine-mlp": Kind(_affine_network, {"epochs": _EPOCHS}, after=("affine",)),
    "mlp": Kind(_network, {"epochs": _EPOCHS}),  # only if it is named: affine-mlp contains it
    "encoder": Kind(
        _encoder,
        after=("affine", "affine-mlp", "kernel"),
        gpu_speed=80.0,
        probe=Probe(
            3,
            2,
            fields=16_000,
            small={"width": 24, "batch_size": 16},
            large={"cycles": 2},
            larger_cells=True,
        ),
    ),
    "fno": Kind(
        _full_resolution,
        after=("encoder",),
        gpu_speed=80.0,
        probe=Probe(3, 2, fields=16_000, small={"width": 16}),
    ),
    # A predictor that is added here is searched.
}
"""By the name of the predictor; a search starts with the first one."""

FIRST_PREDICTOR = next(iter(KINDS))

_OF_FIELDS = Kind(_full_resolution, gpu_speed=80.0, probe=Probe(3, 2, fields=16_000, small={}))


def kind_of(predictor: str) -> Kind:
    """Return how the search sees a predictor; one of the user's own is judged by its traits."""
    if predictor in KINDS:
        return KINDS[predictor]
    traits = get_predictor(predictor)
    if traits.reads_fields:
        return _OF_FIELDS if traits.trains_epochs else Kind(_filter)
    return Kind(_network if traits.trains_epochs else _affine)


def work(predictor: str, sizes: Sizes) -> float:
    """Return the work of a fit in multiplications: representations, transforms, predictor."""
    return representation_work(sizes) + kind_of(predictor).work(sizes)


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
    nearest = 2.0 * fields * sizes.output_code**2 + _EIGEN * sizes.output_code**3
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
        return 2.0 * fields * nodes * features + _EIGEN * blocks * features**3
    width = min(code / blocks + OVERSAMPLING, features, fields)
    passes = (1 + POWER_ITERATIONS) * RANK_GROWTH / (RANK_GROWTH - 1)
    return passes * nodes * width * (4.0 * fields + 2.0 * _QR * width)
