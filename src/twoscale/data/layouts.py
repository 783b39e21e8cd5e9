"""The arrays of files put together: orders of axes found, samples counted, roles stacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from twoscale.data.arrays import FieldArray, FieldStack
from twoscale.data.axes import LETTERS, AxesOrder, find_orders, named_order
from twoscale.data.choosing import ROLES, ChosenArray, choose_arrays
from twoscale.data.description import Layout, Side
from twoscale.data.readers.archive import Pieces
from twoscale.data.readers.opening import open_archive
from twoscale.data.reading import Reading
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError

_FIELDS = {"input": "inputs", "output": "outputs", "parameters": "parameters"}
"""By role: where a reading has the names of its arrays."""


@dataclass(frozen=True)
class OpenedFields:
    """Inputs, outputs and parameters in files, open for reading.

    `reading` is what was asked for, completed by what was found: names and orders of axes.
    """

    stacks: dict[str, FieldStack]
    reading: Reading

    @property
    def samples(self) -> int:
        return next(iter(self.stacks.values())).samples

    def layout(self) -> Layout:
        """Return what the arrays are together."""
        inputs = [self.stacks[role] for role in ("input", "parameters") if role in self.stacks]
        return Layout(self.samples, self._side(inputs), self._side([self.stacks["output"]]))

    def _side(self, stacks: Sequence[FieldStack]) -> Side:
        """Return what some stacks are together; parameters come last."""
        height, width = stacks[0].shape[2:]
        rows, columns = self.reading.periodic or (False, False)
        # An axis of one node has nothing to wrap.
        grid = Grid((height, width), periodic=(rows and height > 1, columns and width > 1))
        channels = sum(stack.channels for stack in stacks)
        scalars = self.stacks.get("parameters")
        parameters = scalars.channels if scalars in stacks and scalars is not None else 0
        names = [stack.names for stack in stacks]
        known = None if None in names else tuple(name for some in names for name in some or ())
        return Side(
            Space(grid, channels - parameters, names=known, parameters=parameters), stacks[0].rank
        )


@contextmanager
def open_fields(
    paths: Sequence[Path], asked: Reading, *, roles: Sequence[str] = ROLES
) -> Iterator[OpenedFields]:
    """Give the fields of some files, or say what is missing to read them without a guess."""
    with open_archive(paths) as archive:
        chosen = choose_arrays(paths, archive, asked, roles)
        orders = _orders(chosen, asked, roles)
        fields = [_field_array(one, orders, asked, paths[0]) for one in chosen if one.is_field]
        _check_parts(fields, asked, roles)
        count = fields[0].lengths["n"] if fields else None
        scalars = [one for one in chosen if not one.is_field]
        arrays = fields + [_parameters(one, orders, count, asked, paths[0]) for one in scalars]
        stacks = {
            role: FieldStack(role, some)
            for role in ROLES
            if (some := [array for array in arrays if array.chosen.role == role])
        }
        counts = {role: stack.samples for role, stack in stacks.items()}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{role}: {count}" for role, count in counts.items())
            first = "the first axis is that of the samples unless 'axes' says otherwise"
            raise TwoscaleError(f"the numbers of samples must agree, got {told}; {first}")
        if all(one.name is not None for one in chosen):
            names = {
                field: tuple(one.label for one in chosen if one.role == role)
                for role, field in _FIELDS.items()
                if role in roles
            }
            known = {field.chosen.label: field.order for field in fields}
            asked = replace(asked, known=known, **names)  # type: ignore[arg-type]
        yield OpenedFields(stacks, replace(asked, periodic=asked.periodic or archive.periodic()))


def _check_parts(fields: Sequence[FieldArray], asked: Reading, roles: Sequence[str]) -> None:
    """Raise if a part is asked for along an axis that no array has."""
    present = set().union(*(field.order for field in fields)) | {"n"}
    if asked.time and "t" not in present and "output" in roles:
        raise TwoscaleError("no array has an axis of time: drop 'time', or name it in 'axes' (t)")
    for axis in asked.ranges.keys() - present:
        raise TwoscaleError(f"no array has the axis {axis} ({LETTERS[axis]}) that 'select' names")


def _orders(chosen: Sequence[ChosenArray], asked: Reading, roles: Sequence[str]) -> dict[str, str]:
    """Return the order of axes of each array of fields: given, named, known, or found.

    An order without samples is that of one sample, which is all that each file or group holds.
    """
    given = AxesOrder.parse(asked.axes)
    orders: dict[str, str] = {}
    unknown: dict[str, tuple[int, ...]] = {}  # shapes of arrays whose orders are to be found
    counts = set()
    for one in chosen:
        shape, in_pieces = one.array.shape, isinstance(one.array, Pieces)
        if not one.is_field:
            if len(shape) == 1 and not in_pieces:
                counts.add(int(shape[0]))
            continue
        known = asked.known.get(one.label, "")
        fits = len(known) == len(shape) or (in_pieces and len(known) == len(shape) + 1)
        order = given.of(one.label, len(shape)) or named_order(one.axes)
        order = order or (known if known and fits else None)
        if order is None:
            unknown[one.label] = _whole_shape(one)
            continue
        if "n" not in order and not in_pieces:
            raise TwoscaleError(
                f"the axes {order} of '{one.label}' are without samples (n): one field alone is no "
                "data to learn from; give several files, or say which axis is that of the samples"
            )
        orders[one.label] = order
        counts.add(_samples(one, order))
    timed = asked.times is not None and bool(asked.times[0] or "output" in roles)
    timed = timed and not any("t" in order for order in orders.values())
    return orders | find_orders(unknown, timed=timed, samples=counts)


def _whole_shape(one: ChosenArray) -> tuple[int, ...]:
    """Return the shape of an array whose order of axes is not known; pieces are joined."""
    pieces, shape = one.array, tuple(int(side) for side in one.array.shape)
    if not isinstance(pieces, Pieces):
        return shape
    if pieces.differing() is None or pieces.differing(but=0) is not None:
        pieces.require_agreement()
        order = {1: "w", 2: "hw", 3: "chw", 4: "tchw"}.get(len(shape), "hw")
        count = shape[0] if shape else 1
        raise TwoscaleError(
            f"'{one.label}' comes in {len(pieces.shapes)} pieces of shape {shape}, which can be "
            f"read in two ways: each piece is one sample (axes {order}), or each holds {count} "
            f"samples (axes n{order[1:]}, any order with n); set the 'axes' that are right"
        )
    return (sum(piece[0] for piece in pieces.shapes), *shape[1:])


def _samples(one: ChosenArray, order: str) -> int:
    """Return the number of samples of an array by its order of axes."""
    if not isinstance(one.array, Pieces):
        return int(one.array.shape[order.index("n")])
    if _is_stacked(one.array, order):
        return len(one.array.openers)
    return sum(shape[order.index("n")] for shape in one.array.shapes)


def _is_stacked(pieces: Pieces, order: str) -> bool:
    return len(order) > len(pieces.shape) or "n" not in order


def _field_array(
    one: ChosenArray, orders: dict[str, str], asked: Reading, file: Path
) -> FieldArray:
    array, order = one.array, orders[one.label]
    if isinstance(array, Pieces) and _is_stacked(array, order):
        array, order = array.stacked(), "n" + order.replace("n", "")
    elif isinstance(array, Pieces):
        array = array.joined(order.index("n"))
    return FieldArray(one, array, order, asked, file)


def _parameters(
    one: ChosenArray, orders: dict[str, str], samples: int | None, asked: Reading, file: Path
) -> FieldArray:
    """Return parameters in memory, as an array of samples and parameters."""
    array = one.array
    if isinstance(array, Pieces):
        stacked = not array.shape or any("n" not in order for order in orders.values())
        array = array.stacked() if stacked else array.joined(0)
    whole = np.asarray(array[(slice(None),) * len(array.shape)])
    values = whole.reshape(len(whole), -1)
    if samples != 1 and values.shape == (1, samples):  # a row of MATLAB's
        values = values.T
    return FieldArray(one, values, "nc", asked, file)
