"""One pass over a dataset: the numbers that the checks look at, collected chunk by chunk."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch

from twoscale.data.check.fingerprints import Fingerprints
from twoscale.data.description import SIDES
from twoscale.data.places import UnreachableStorageError
from twoscale.data.store import Dataset
from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.problems import Problem
from twoscale.runtime.memory import is_out_of_memory
from twoscale.runtime.progress import Progress

_KEPT_VALUES = 2**15  # of each channel, for quantiles
_SUBSET = 256  # samples that the variety is judged by
_VALUES = 2**23  # numbers of them that are kept at most
_SHARE = 0.99  # of the variance
TINY = 1e-6  # of the largest deviation: a node that deviates less is constant


@dataclass
class AxisDifferences:
    """Sums of squared differences along one axis of the fields of a channel."""

    neighbours: float = 0.0  # of neighbouring nodes
    bends: float = 0.0  # second differences inside
    wrapped_bends: float = 0.0  # second differences across the two ends, as if they were neighbours
    ends: float = 0.0  # of the first and the last node

    def see(self, values: np.ndarray) -> None:
        """Take note of values (lines, nodes); every sum is one of means over a line."""
        steps = np.diff(values, axis=1)
        self.neighbours += float(np.square(steps).mean(axis=1).sum())
        if values.shape[1] > 3:
            self.bends += float(np.square(np.diff(steps, axis=1)).mean(axis=1).sum())
            end = values[:, 0] - values[:, -1]  # the step across the ends
            across = np.stack([end - steps[:, -1], steps[:, 0] - end])
            self.wrapped_bends += float(np.square(across).mean(axis=0).sum())
            self.ends += float(np.square(end).sum())


@dataclass
class Channel:
    """What was seen of one channel: fields (height, width) of all samples, or a parameter."""

    label: str  # such as "input 'a'"
    side: str  # input, output or parameters
    shape: tuple[int, int]
    samples: int  # of the dataset
    bad: list[int] = field(default_factory=list)  # samples with values that are not finite
    constant: list[int] = field(default_factory=list)  # samples whose field is constant
    low: float = math.inf
    high: float = -math.inf
    count: int = 0  # finite samples
    axes: tuple[AxisDifferences, AxisDifferences] = field(
        default_factory=lambda: (AxisDifferences(), AxisDifferences())
    )
    steps: float = 0.0  # squared differences of consecutive samples, means over the nodes
    pairs: int = 0  # of consecutive samples
    values: list[np.ndarray] = field(default_factory=list)  # some, for quantiles

    @property
    def nodes(self) -> int:
        return math.prod(self.shape)

    def see(self, start: int, values: np.ndarray) -> None:
        """Take note of the fields (batch, height, width) that start at a sample."""
        finite = np.isfinite(values).all(axis=(1, 2))
        self.bad += [start + int(i) for i in np.flatnonzero(~finite)]
        if not finite.any():
            return
        low, high = values.min(axis=(1, 2)), values.max(axis=(1, 2))
        if self.nodes > 1:
            self.constant += [start + int(i) for i in np.flatnonzero(finite & (low == high))]
        self.low = min(self.low, float(low[finite].min()))
        self.high = max(self.high, float(high[finite].max()))
        sound = values[finite].astype(np.float64)
        self._add_moments(sound)
        self._add_differences(sound)
        stride = max(1, self.samples * self.nodes // _KEPT_VALUES)
        self.values.append(sound.ravel()[::stride])

    def _add_moments(self, values: np.ndarray) -> None:
        if not self.count:
            # Sums of what fields are apart from the first one: an offset does not swamp them.
            self.first = values[0]
            self.sum, self.squares = np.zeros_like(self.first), np.zeros_like(self.first)
        apart = values - self.first
        self.count += len(values)
        self.sum += apart.sum(axis=0)
        self.squares += np.square(apart).sum(axis=0)

    def _add_differences(self, values: np.ndarray) -> None:
        if len(values) > 1:
            self.steps += float(np.square(np.diff(values, axis=0)).mean(axis=(1, 2)).sum())
            self.pairs += len(values) - 1
        height, width = self.shape
        if height > 1:
            self.axes[0].see(values.transpose(0, 2, 1).reshape(-1, height))
        if width > 1:
            self.axes[1].see(values.reshape(-1, width))

    @property
    def mean(self) -> np.ndarray:
        """Return the mean field (height, width)."""
        return self.first + self.sum / self.count

    @property
    def variance(self) -> np.ndarray:
        """Return the variance at each node, (height, width)."""
        return np.maximum(self.squares / self.count - (self.sum / self.count) ** 2, 0.0)

    @property
    def size(self) -> float:
        """Return the mean square of the deviations from the mean over samples and nodes."""
        return float(self.variance.mean() + self.mean.var())

    @property
    def never_changes(self) -> np.ndarray:
        """Return for each node (height, width) whether it is the same in all samples."""
        deviation = np.sqrt(self.variance)
        return deviation <= TINY * deviation.max()

    def lines(self, axis: int) -> float:
        """Return how many lines of nodes along an axis were seen."""
        return self.count * self.nodes / self.shape[axis]

    def roughness(self, axis: int) -> float:
        """Return how much neighbours along an axis differ: 0 if not at all, 1 if independent."""
        neighbours = self.axes[axis].neighbours / self.lines(axis)
        return neighbours / (2 * self.size) if self.size else 0.0

    @property
    def restlessness(self) -> float:
        """Return how much consecutive samples differ: 0 if not at all, 1 if independent."""
        spread = float(self.variance.mean())
        return self.steps / self.pairs / (2 * spread) if self.pairs and spread else 1.0


class Transposition:
    """Sums of products of the first input and output channel, at the same node and transposed."""

    count = 0

    def see(self, inputs: np.ndarray, outputs: np.ndarray) -> None:
        """Take note of fields (batch, channels, nodes, nodes) on the same square grid."""
        x, u = (values[:, 0].astype(np.float64) for values in (inputs, outputs))
        if not (np.isfinite(x).all() and np.isfinite(u).all()):
            return
        if not self.count:
            self.origin = (x[0], u[0])
            self.sums = np.zeros((6, *x.shape[1:]))
        x, u = x - self.origin[0], u - self.origin[1]
        turned = x.transpose(0, 2, 1)
        parts = (x, u, x * x, u * u, x * u, turned * u)
        self.sums += np.stack([part.sum(axis=0) for part in parts])
        self.count += len(x)

    def correlations(self) -> tuple[float, float]:
        """Return squared correlations of inputs and outputs, at the same and transposed nodes.

        Only nodes away from the diagonal count: near it both are the same nodes.
        """
        if self.count < 2:
            return 0.0, 0.0
        x, u, xx, uu, xu, turned = self.sums / self.count
        size = float((xx - x * x).mean() * (uu - u * u).mean())
        if size <= 0:
            return 0.0, 0.0
        rows, columns = np.indices(x.shape)
        apart = abs(rows - columns) > len(x) // 3
        direct, other = (
            float(np.square(one[apart]).mean()) / size for one in (xu - x * u, turned - x.T * u)
        )
        return direct, other


class Variety:
    """Some outputs, evenly spread over the dataset, to see how many numbers describe them."""

    def __init__(self, samples: int, values: int) -> None:
        self.samples = samples
        kept = max(2, min(_SUBSET, _VALUES // values))
        self.stride = max(1, -(-samples // kept))
        self.rows: list[np.ndarray] = []

    def see(self, start: int, outputs: np.ndarray) -> None:
        """Take note of outputs (batch, channels, height, width)."""
        first = -start % self.stride
        self.rows += [row.astype(np.float64) for row in outputs[first :: self.stride]]

    @property
    def numbers(self) -> int | None:
        """Return how many PCA coordinates hold 99 % of the variance of the outputs seen.

        Each channel counts alike. None of fewer than two outputs.
        """
        finite = [row for row in self.rows if np.isfinite(row).all()]
        if len(finite) < 2:
            return None
        fields = np.stack(finite)
        apart = fields - fields.mean(axis=0)
        size = np.square(apart).mean(axis=(0, 2, 3), keepdims=True)
        flat = (apart / np.sqrt(np.where(size > 0, size, 1.0))).reshape(len(fields), -1)
        spectrum = np.linalg.eigvalsh(flat @ flat.T)[::-1].clip(0)
        if not spectrum.sum():
            return 0
        return int(np.searchsorted(np.cumsum(spectrum), _SHARE * spectrum.sum())) + 1


class DatasetStatistics:
    """What one pass over a dataset sees; every stored byte is read once, a chunk at a time."""

    def __init__(self, dataset: Dataset, progress: Progress | None = None) -> None:
        self.dataset = dataset
        self.problem = dataset.problem
        self.channels = {name: _channels(dataset, name) for name in dataset.arrays}
        self.variety = Variety(dataset.samples, math.prod(dataset.output_space.shape))
        self.fingerprints = Fingerprints()
        self.transposition = Transposition()
        self.damaged: list[str] = []
        self.distance = 0.0  # of the first output of each chunk to a fresh solution, at most
        solves = self.problem is not None and self.problem.solves(dataset.output_space.grid)
        self.solved = self.problem if solves and "parameters" not in dataset.arrays else None
        for part in slices(dataset.samples, dataset.chunk):
            self._see(part)
            if progress:
                progress("samples", part.stop, dataset.samples, "")

    @property
    def every(self) -> list[Channel]:
        """Return the channels of all arrays."""
        return [one for channels in self.channels.values() for one in channels]

    @property
    def seen(self) -> list[Channel]:
        """Return the channels with any finite sample."""
        return [one for one in self.every if one.count]

    @property
    def fields(self) -> list[Channel]:
        """Return the channels of fields with any finite sample."""
        return [one for one in self.seen if one.side != "parameters"]

    @property
    def varied(self) -> list[Channel]:
        """Return the channels with several finite samples."""
        return [one for one in self.every if one.count > 1]

    @property
    def periodic(self) -> tuple[bool, bool]:
        """Return whether rows and columns are declared to wrap."""
        rows, columns = self.dataset.output_space.grid.plane.periodic
        return rows, columns

    def _see(self, part: slice) -> None:
        arrays = {}
        for name in self.dataset.arrays:
            values = self._read(name, part)
            if values is not None:
                arrays[name] = four_axes(self.dataset, name, values)
                for place, channel in enumerate(self.channels[name]):
                    channel.see(part.start, arrays[name][:, place])
        if len(arrays) < len(self.dataset.arrays):
            return
        self.variety.see(part.start, arrays["output"])
        self.fingerprints.see(part.start, arrays)
        height, width = self.dataset.output_space.grid.shape
        grids = {values.shape[2:] for name, values in arrays.items() if name != "parameters"}
        if "input" in arrays and grids == {(height, height)} and height == width > 1:
            self.transposition.see(arrays["input"], arrays["output"])
        if self.solved is not None:
            self.distance = max(self.distance, _distance_to_solution(self.solved, arrays))

    def _read(self, name: str, part: slice) -> np.ndarray | None:
        """Return a chunk, noting it as damaged if it cannot be read or has changed."""
        values = None
        try:
            values = self.dataset.read(name, part.start, part.stop, verify=False)
            intact = self.dataset.intact(name, part.start, values)
        except UnreachableStorageError:
            raise
        except TwoscaleError:
            intact = False
        if not intact:
            self.damaged.append(f"{name} {part.start} to {part.stop - 1}")
        return values


def four_axes(dataset: Dataset, name: str, values: np.ndarray) -> np.ndarray:
    """Return values of an array as (batch, channels, height, width)."""
    return values.reshape(-1, *(*dataset.inner_shape(name), 1, 1)[:3])


def _channels(dataset: Dataset, name: str) -> list[Channel]:
    """Return the channels of an array, nothing seen yet; a single one is called like the array."""
    inputs, outputs = dataset.input_space, dataset.output_space
    shape = (*dataset.inner_shape(name), 1, 1)[:3]
    if name == "parameters":
        labels = [f"parameter '{one}'" for one in inputs.parameter_names]
    else:
        names = (outputs if name == "output" else inputs).channel_names[: shape[0]]
        labels = [name] if len(names) == 1 else [f"{name} '{one}'" for one in names]
    return [Channel(label, name, (shape[1], shape[2]), dataset.samples) for label in labels]


def _distance_to_solution(problem: Problem, arrays: Mapping[str, np.ndarray]) -> float:
    """Return the relative distance of a chunk's first output to a fresh solution."""
    inputs, outputs = (torch.from_numpy(arrays[name][:1]).double() for name in SIDES)
    if not (bool(torch.isfinite(inputs).all()) and bool(torch.isfinite(outputs).all())):
        return 0.0
    try:
        solved = problem.solve(inputs[:, 0] if inputs.shape[1] == 1 else inputs)
    except (ValueError, RuntimeError, IndexError) as error:  # no solution for such an input
        if is_out_of_memory(error):
            raise
        return float("inf")
    if solved.numel() != outputs.numel():
        return float("inf")
    return float((solved.reshape(outputs.shape) - outputs).norm() / solved.norm())
