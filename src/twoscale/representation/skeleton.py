"""The node lines between patches, and fields that are harmonic off them or vanish on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor, nn
from torch.nn import functional

from twoscale.domain.cuts import Axis, Cuts
from twoscale.domain.patches import PatchLayout
from twoscale.errors import TwoscaleError
from twoscale.math.transforms import sine_matrix


class Skeleton(nn.Module):
    """The first row and column of every patch of a tiling, and the last ones of the grid.

    Along a periodic axis there is no last line: the first line of the first patch closes the last
    patch. An axis of a single node has no lines.

    With T the trace on these lines and E the extension of a trace whose five-point Laplacian is
    zero at every node inside a patch, any field is u = E T u + b. The bubble b vanishes on the
    skeleton, so that patches are independent of each other; T E is the identity.

    The extension is solved in the sine basis of each patch. Matrices and fields have rows and
    columns for the lines too, which are zero: patches at the far edges, which have one node less
    inside, need nothing special. `spacing` is that of rows and columns.
    """

    places: Tensor  # (size,): flat node numbers, inner lines first, then the grid's boundary
    sources: Tensor  # (height x width,): its inverse; `size` where a node is on no line
    row_lines: Tensor
    column_lines: Tensor
    row_sines: Tensor  # (row patches, side, side): DST-I inside each patch
    column_sines: Tensor  # (column patches, side, side)
    row_loads: Tensor  # (height, row lines): sine coefficients of what a line adds beside it
    column_loads: Tensor  # (column lines, width)
    inverse: Tensor  # (height, width): 1 / eigenvalues of the Laplacian, zero on the lines

    def __init__(self, layout: PatchLayout, spacing: Sequence[float]) -> None:
        super().__init__()
        _check_patches(layout)
        self.layout = layout
        self.spacing = spacing
        rows, columns = _Axis.of(layout.rows, spacing[0]), _Axis.of(layout.columns, spacing[1])
        eigenvalues = rows.eigenvalues[:, None] + columns.eigenvalues
        inside = rows.inside[:, None] & columns.inside
        places = _places(inside, rows.ends[:, None] | columns.ends)
        sources = torch.full((inside.numel(),), len(places))
        sources[places] = torch.arange(len(places))
        buffers = {
            "places": places,
            "sources": sources,
            "row_lines": rows.lines,
            "column_lines": columns.lines,
            "row_sines": rows.sines,
            "column_sines": columns.sines,
            "row_loads": rows.loads,
            "column_loads": columns.loads.T.contiguous(),
            "inverse": torch.where(inside, 1.0 / eigenvalues, 0.0),
        }
        for name, values in buffers.items():
            self.register_buffer(name, values, persistent=False)

    @classmethod
    def of_grid(cls, layout: PatchLayout) -> Skeleton:
        """Return the skeleton of patches of the unit square."""
        return cls(layout, [cuts.axis.spacing for cuts in (layout.rows, layout.columns)])

    @property
    def size(self) -> int:
        return len(self.places)

    def trace(self, fields: Tensor) -> Tensor:
        """Return the values (..., size) of fields (..., height, width) on the lines."""
        return fields.flatten(-2).index_select(-1, self.places)

    def extend(self, traces: Tensor) -> Tensor:
        """Return the discrete-harmonic fields (..., height, width) of traces (..., size)."""
        shape = self.layout.shape
        if torch.compiler.is_compiling():  # a copy to places would fix the size of the batch
            frames = functional.pad(traces, (0, 1)).index_select(-1, self.sources)
        else:  # few nodes are on lines, so that writing them alone is faster
            frames = traces.new_zeros(*traces.shape[:-1], shape[0] * shape[1])
            frames = frames.index_copy(-1, self.places, traces)
        frames = frames.reshape(-1, *shape)
        rows = self._along_rows(frames[:, self.row_lines])
        columns = self._along_columns(frames[:, :, self.column_lines])
        loads = self.row_loads @ rows + columns @ self.column_loads
        inside = self._along_columns(self._along_rows(loads * self.inverse))
        return (frames - inside).reshape(*traces.shape[:-1], *shape)

    def bubbles(self, fields: Tensor) -> Tensor:
        """Return u - E T u, which is exactly zero on the lines."""
        return fields - self.extend(self.trace(fields))

    @property
    def _firsts(self) -> tuple[int, int]:
        """Return how many lines each patch begins with along both axes."""
        height, width = self.layout.shape
        return int(height > 1), int(width > 1)

    def tiles(self, fields: Tensor) -> Tensor:
        """Return (batch, patches, channels, n, m): what follows the first lines of each patch.

        At the far edges that is what is inside and the last line of the grid. Smaller patches are
        filled up with zeros.
        """
        tiles = self.layout.extract(fields)
        tiles = tiles.reshape(*tiles.shape[:2], fields.shape[1], *self.layout.patch)
        rows, columns = self._firsts
        return tiles[..., rows:, columns:]

    def join(self, tiles: Tensor) -> Tensor:
        """Return the fields that have these `tiles`, and zero on the first lines of patches."""
        rows, columns = self._firsts
        return self.layout.assemble(functional.pad(tiles, (columns, 0, rows, 0)).flatten(2))

    def _along_rows(self, fields: Tensor) -> Tensor:
        """Return the sine transform along the rows (batch, any, width) of all patches."""
        cuts, sines = self.layout.columns, self.column_sines
        if cuts.stride is not None:
            parts = fields.unflatten(2, sines.shape[:2])
            return torch.einsum("bhqk,qkl->bhql", parts, sines).flatten(2)
        pairs = zip(fields.split(cuts.sides, 2), _unpadded(sines, cuts), strict=True)
        return torch.cat([part @ matrix for part, matrix in pairs], 2)

    def _along_columns(self, fields: Tensor) -> Tensor:
        """Return the sine transform along the columns (batch, height, any) of all patches."""
        cuts, sines = self.layout.rows, self.row_sines
        if cuts.stride is not None:
            return (sines @ fields.unflatten(1, sines.shape[:2])).flatten(1, 2)
        pairs = zip(fields.split(cuts.sides, 1), _unpadded(sines, cuts), strict=True)
        return torch.cat([matrix @ part for part, matrix in pairs], 1)


def _check_patches(layout: PatchLayout) -> None:
    if layout.overlaps:
        raise TwoscaleError("a skeleton lies between patches that do not overlap, these do")
    if layout.shape == (1, 1):
        raise TwoscaleError("a skeleton needs a grid of at least two nodes, this one has a single")
    rows, columns = min(layout.rows.sides), min(layout.columns.sides)
    sides = [side for side, size in zip((rows, columns), layout.shape, strict=True) if size > 1]
    if min(sides) < 3:
        raise TwoscaleError(
            f"patches with something inside need at least 3 nodes per side, these have "
            f"{rows}x{columns}: use fewer patches"
        )


def _places(inside: Tensor, boundary: Tensor) -> Tensor:
    """Return the flat numbers of the nodes that are not `inside` patches (height, width)."""
    inner = ~inside & ~boundary
    return torch.cat([mask.flatten().nonzero()[:, 0] for mask in (inner, boundary)])


def _unpadded(matrices: Tensor, cuts: Cuts) -> list[Tensor]:
    """Return the matrix of each patch, as large as the patch, of (patches, side, side)."""
    return [matrix[:n, :n] for matrix, n in zip(matrices, cuts.sides, strict=True)]


@dataclass(frozen=True)
class _Axis:
    """What a skeleton knows of one direction, `size` nodes long; float64."""

    lines: Tensor  # (lines,)
    inside: Tensor  # (size,), bool: not on a line
    ends: Tensor  # (size,), bool: on the boundary of the domain
    sines: Tensor  # (patches, side, side)
    loads: Tensor  # (size, lines)
    eigenvalues: Tensor  # (size,): of second differences in a patch; -1 on the lines

    @classmethod
    def of(cls, cuts: Cuts, spacing: float) -> _Axis:
        size, side = cuts.size, cuts.side
        if size == 1:
            return cls._of_single_node()
        ends = torch.tensor([] if cuts.periodic else [0, size - 1], dtype=torch.int64)
        lines = torch.tensor([*cuts.starts, *ends[1:]])
        inside, on_ends = _mask(size, lines).logical_not(), _mask(size, ends)
        sines = torch.zeros(cuts.count, side, side, dtype=torch.float64)
        eigenvalues = -torch.ones(size, dtype=torch.float64)
        for patch, nodes in enumerate(_with_lines(cuts, k) for k in range(cuts.count)):
            n = len(nodes) - 2
            angles = torch.pi / (2 * (n + 1)) * torch.arange(1, n + 1, dtype=torch.float64)
            sines[patch, 1 : n + 1, 1 : n + 1] = sine_matrix(n, sines.device)
            eigenvalues[nodes[1:-1]] = -4.0 / spacing**2 * angles.sin().square()
        distances = (torch.arange(size)[:, None] - lines).abs()
        if cuts.periodic:
            distances = torch.minimum(distances, size - distances)
        beside = (distances == 1) & inside[:, None]
        loads = torch.block_diag(*_unpadded(sines, cuts)) @ beside.double() / spacing**2
        return cls(lines, inside, on_ends, sines, loads, eigenvalues)

    @classmethod
    def _of_single_node(cls) -> _Axis:
        """Return an axis without lines: fields have no differences along it."""
        lines, one = torch.zeros(0, dtype=torch.int64), torch.ones(1, 1, 1, dtype=torch.float64)
        inside = torch.ones(1, dtype=torch.bool)
        return cls(lines, inside, ~inside, one, one.new_zeros(1, 0), one.new_zeros(1))


def _mask(size: int, places: Tensor) -> Tensor:
    return torch.zeros(size, dtype=torch.bool).index_fill_(0, places, True)


def _with_lines(cuts: Cuts, patch: int) -> Tensor:
    """Return the nodes of a patch along one axis, from the line before it to the one after it."""
    first, after = cuts.starts[patch], cuts.starts[patch] + cuts.sides[patch]
    last = after if cuts.periodic else min(after, cuts.size - 1)
    return torch.arange(first, last + 1) % cuts.size


class SeamNorm:
    """A norm of fields that also sees their slope beside the inner lines of a skeleton.

    Up to the area of a cell, |v|^2 = integral of v^2 + width^3 * integral over both sides of the
    inner lines of (dv/dn)^2: on the grid the sum of v^2 over nodes and of (width / h)^3 times the
    squared difference across each edge from a line into a patch. With width 0 it is plain L2.
    Inner lines have a patch on both sides: along a periodic axis all of them.
    """

    def __init__(self, skeleton: Skeleton, width: float) -> None:
        self.skeleton = skeleton
        self.weights = [(width / h) ** 3 for h in skeleton.spacing]

    def bubble_weights(self) -> Tensor:
        """Return w (patches, n, m), float64: |b|^2 = sum w b^2 for bubbles b.

        On the lines themselves a bubble is zero: an edge counts by its end inside the patch.
        Places that fill up a smaller patch have weight 1.
        """
        height, width = self.skeleton.layout.shape
        seams = self.skeleton.layout.seams
        weights = torch.ones(height, width, dtype=torch.float64)
        for beside in (-1, 1):
            weights[[(line + beside) % height for line in seams.rows]] += self.weights[0]
            weights[:, [(line + beside) % width for line in seams.columns]] += self.weights[1]
        tiles = self.skeleton.tiles(weights[None, None])[0, :, 0]
        return torch.where(tiles == 0, 1.0, tiles)

    def trace_metric(self) -> Tensor:
        """Return M (size, size), float64: |E g|^2 = g^T M g for traces g.

        M is put together patch by patch. A patch with the lines around it is a skeleton of its own;
        at most nine kinds of patches differ in size.
        """
        layout, size = self.skeleton.layout, self.skeleton.size
        numbers = torch.empty(layout.shape, dtype=torch.int64)
        numbers.view(-1)[self.skeleton.places.cpu()] = torch.arange(size)
        metric = torch.eye(size, dtype=torch.float64)  # the lines themselves
        extensions: dict[tuple[int, int], tuple[Tensor, Tensor]] = {}
        for row, column in product(range(layout.rows.count), range(layout.columns.count)):
            rows, columns = _with_lines(layout.rows, row), _with_lines(layout.columns, column)
            shape = (len(rows), len(columns))
            if shape not in extensions:
                extensions[shape] = self._of_one_patch(shape)
            places, fields = extensions[shape]
            at = numbers[rows[:, None], columns].flatten()[places]
            added = self._inside(fields, row, column)
            # A patch that is its own neighbour has some lines twice.
            metric.index_put_((at[:, None], at), added, accumulate=True)
        return metric

    def _of_one_patch(self, shape: tuple[int, int]) -> tuple[Tensor, Tensor]:
        """Return the places around one patch, and the extensions of one value at each of them."""
        layout = PatchLayout(tuple(Cuts.equal(Axis(side), 1) for side in shape))
        alone = Skeleton(layout, self.skeleton.spacing)
        return alone.places, alone.extend(torch.eye(alone.size, dtype=torch.float64))

    def _inside(self, fields: Tensor, row: int, column: int) -> Tensor:
        """Return the inner products of fields (batch, rows, columns) that one patch adds."""
        cuts = (self.skeleton.layout.rows, self.skeleton.layout.columns)
        rows, columns = (slice(1, -1) if one.size > 1 else slice(None) for one in cuts)
        parts = [fields[:, rows, columns].flatten(1)]
        across = (fields.diff(dim=1)[:, :, columns], fields.diff(dim=2)[:, rows])
        for axis, (one, patch) in enumerate(zip(cuts, (row, column), strict=True)):
            first = one.periodic or patch > 0
            last = one.periodic or patch < one.count - 1
            ends = [0] * first + [-1] * last
            root = self.weights[axis] ** 0.5
            parts += [root * across[axis].select(axis + 1, end) for end in ends]
        values = torch.cat(parts, 1)
        return values @ values.T
