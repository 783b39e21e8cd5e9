"""The node lines between patches, and fields that are harmonic off them or vanish on them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.fields.patches import Pair, PatchLayout
from twoscale.linalg.transforms import sine_matrix


class Skeleton(nn.Module):
    """The first row and column of every patch of a tiling, and the last ones of the grid.

    With T the trace on these lines and E the extension of a trace whose five-point Laplacian is
    zero at every node inside a patch, any field is u = E T u + b. The bubble b vanishes on the
    skeleton, so that patches are independent of each other; T E is the identity.

    The extension is solved in the sine basis of each patch. Matrices and fields have rows and
    columns for the lines too, which are zero: patches at the far edges, which have one node less
    inside, need nothing special. `spacing` is that of rows and columns.
    """

    places: Tensor  # (size,): flat node numbers, inner lines first, then the grid's boundary
    row_lines: Tensor
    column_lines: Tensor
    row_sines: Tensor  # (row patches, side, side): DST-I inside each patch
    column_sines: Tensor  # (column patches, side, side)
    row_loads: Tensor  # (height, row lines): sine coefficients of what a line adds beside it
    column_loads: Tensor  # (column lines, width)
    inverse: Tensor  # (height, width): 1 / eigenvalues of the Laplacian, zero on the lines

    def __init__(self, layout: PatchLayout, spacing: tuple[float, float]) -> None:
        super().__init__()
        _check_patches(layout)
        self.layout = layout
        self.spacing = spacing
        rows, columns = (_Axis.of(layout, axis, spacing[axis]) for axis in (0, 1))
        eigenvalues = rows.eigenvalues[:, None] + columns.eigenvalues
        inside = rows.inside[:, None] & columns.inside
        buffers = {
            "places": _places(inside),
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
        return cls(layout, Grid(*layout.shape).spacing)

    @property
    def size(self) -> int:
        return len(self.places)

    def trace(self, fields: Tensor) -> Tensor:
        """Return the values (batch, size) of fields (batch, height, width) on the lines."""
        return fields.flatten(1).index_select(1, self.places)

    def extend(self, traces: Tensor) -> Tensor:
        """Return the discrete-harmonic fields (batch, height, width) of traces (batch, size)."""
        height, width = self.layout.shape
        frames = traces.new_zeros(len(traces), height * width)
        frames = frames.index_copy(1, self.places, traces).reshape(-1, height, width)
        rows = self._along_rows(frames[:, self.row_lines])
        columns = self._along_columns(frames[:, :, self.column_lines])
        loads = self.row_loads @ rows + columns @ self.column_loads
        return frames - self._along_columns(self._along_rows(loads * self.inverse))

    def bubbles(self, fields: Tensor) -> Tensor:
        """Return u - E T u, which is exactly zero on the lines."""
        return fields - self.extend(self.trace(fields))

    def tiles(self, fields: Tensor) -> Tensor:
        """Return (batch, patches, n, m): what follows the first lines of each patch.

        At the far edges that is what is inside and the last line of the grid.
        """
        tiles = self.layout.extract(fields)
        return tiles.reshape(*tiles.shape[:2], *self.layout.patch)[..., 1:, 1:]

    def join(self, tiles: Tensor) -> Tensor:
        """Return the fields that have these `tiles`, and zero on the first lines of patches."""
        return self.layout.assemble(functional.pad(tiles, (1, 0, 1, 0)).flatten(2))

    def _along_rows(self, fields: Tensor) -> Tensor:
        """Return the sine transform along the rows (batch, any, width) of all patches."""
        parts = fields.unflatten(2, self.column_sines.shape[:2])
        return torch.einsum("bhqk,qkl->bhql", parts, self.column_sines).flatten(2)

    def _along_columns(self, fields: Tensor) -> Tensor:
        """Return the sine transform along the columns (batch, height, any) of all patches."""
        return (self.row_sines @ fields.unflatten(1, self.row_sines.shape[:2])).flatten(1, 2)


def _check_patches(layout: PatchLayout) -> None:
    if layout.overlaps:
        raise TwoscaleError("a skeleton lies between patches that do not overlap, these do")
    if min(layout.patch) < 3:
        rows, columns = layout.patch
        raise TwoscaleError(
            f"patches with something inside need at least 3 nodes per side, these have "
            f"{rows}x{columns}: use fewer patches"
        )


def _places(inside: Tensor) -> Tensor:
    """Return the flat numbers of the nodes that are not `inside` patches (height, width)."""
    boundary = torch.ones_like(inside)
    boundary[1:-1, 1:-1] = False
    inner = ~inside & ~boundary
    return torch.cat([mask.flatten().nonzero()[:, 0] for mask in (inner, boundary)])


@dataclass(frozen=True)
class _Axis:
    """What a skeleton knows of one direction, `size` nodes long; float64."""

    lines: Tensor  # (lines,)
    inside: Tensor  # (size,), bool: not on a line
    sines: Tensor  # (patches, side, side)
    loads: Tensor  # (size, lines)
    eigenvalues: Tensor  # (size,): of second differences in a patch; -1 on the lines

    @classmethod
    def of(cls, layout: PatchLayout, axis: int, spacing: float) -> _Axis:
        size, side, count = layout.shape[axis], layout.patch[axis], layout.counts[axis]
        lines = torch.tensor([*range(0, size, side), size - 1])
        inside = torch.ones(size, dtype=torch.bool).index_fill_(0, lines, False)
        sines = torch.zeros(count, side, side, dtype=torch.float64)
        eigenvalues = -torch.ones(size, dtype=torch.float64)
        for patch, nodes in enumerate(lines.diff() - 1):
            n, first = int(nodes), 1 + patch * side
            angles = torch.pi / (2 * (n + 1)) * torch.arange(1, n + 1, dtype=torch.float64)
            sines[patch, 1 : n + 1, 1 : n + 1] = sine_matrix(n, sines.device)
            eigenvalues[first : first + n] = -4.0 / spacing**2 * angles.sin().square()
        beside = (torch.arange(size)[:, None] - lines).abs() == 1
        loads = torch.block_diag(*sines) @ (beside & inside[:, None]).double() / spacing**2
        return cls(lines, inside, sines, loads, eigenvalues)


class SeamNorm:
    """A norm of fields that also sees their slope beside the inner lines of a skeleton.

    Up to the area of a cell, |v|^2 = integral of v^2 + width^3 * integral over both sides of the
    inner lines of (dv/dn)^2: on the grid the sum of v^2 over nodes and of (width / h)^3 times the
    squared difference across each edge from a line into a patch. With width 0 it is plain L2.
    """

    def __init__(self, skeleton: Skeleton, width: float) -> None:
        self.skeleton = skeleton
        self.weights = [(width / h) ** 3 for h in skeleton.spacing]

    def bubble_weights(self) -> Tensor:
        """Return w (patches, n, m), float64: |b|^2 = sum w b^2 for bubbles b.

        On the lines themselves a bubble is zero: an edge counts by its end inside the patch.
        """
        rows, columns = self.skeleton.layout.seams
        weights = torch.ones(self.skeleton.layout.shape, dtype=torch.float64)
        for beside in (-1, 1):
            weights[[line + beside for line in rows]] += self.weights[0]
            weights[:, [line + beside for line in columns]] += self.weights[1]
        return self.skeleton.tiles(weights[None])[0]

    def trace_metric(self) -> Tensor:
        """Return M (size, size), float64: |E g|^2 = g^T M g for traces g.

        M is put together patch by patch. A patch with the lines around it is a skeleton of its own;
        at most four kinds of patches differ in size.
        """
        layout, size = self.skeleton.layout, self.skeleton.size
        numbers = torch.empty(layout.shape, dtype=torch.int64)
        numbers.view(-1)[self.skeleton.places.cpu()] = torch.arange(size)
        metric = torch.eye(size, dtype=torch.float64)  # the lines themselves
        extensions: dict[Pair, tuple[Tensor, Tensor]] = {}
        for patch in range(layout.count):
            rows, columns = self._surroundings(*divmod(patch, layout.counts[1]))
            part = numbers[rows, columns]
            shape = (part.shape[0], part.shape[1])
            if shape not in extensions:
                alone = Skeleton(PatchLayout(shape, shape, shape), self.skeleton.spacing)
                around = torch.eye(alone.size, dtype=torch.float64)
                extensions[shape] = alone.places, alone.extend(around)
            places, fields = extensions[shape]
            at = part.flatten()[places]
            metric[at[:, None], at] += self._inside(fields, rows, columns)
        return metric

    def _surroundings(self, row: int, column: int) -> tuple[slice, slice]:
        """Return the rows and columns of a patch with the lines around it."""
        layout = self.skeleton.layout
        first, second = (
            slice(k * side, min((k + 1) * side, size - 1) + 1)
            for k, side, size in zip((row, column), layout.patch, layout.shape, strict=True)
        )
        return first, second

    def _inside(self, fields: Tensor, rows: slice, columns: slice) -> Tensor:
        """Return the inner products of fields (batch, rows, columns) that one patch adds."""
        height, width = self.skeleton.layout.shape
        parts = [fields[:, 1:-1, 1:-1].flatten(1)]
        for axis, (part, size) in enumerate(((rows, height), (columns, width))):
            across = fields.diff(dim=axis + 1)
            across = across[:, :, 1:-1] if axis == 0 else across[:, 1:-1]
            ends = [0] * (part.start > 0) + [-1] * (part.stop < size)
            parts += [self.weights[axis] ** 0.5 * across.select(axis + 1, end) for end in ends]
        values = torch.cat(parts, 1)
        return values @ values.T
