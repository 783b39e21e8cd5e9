"""The arrays of files put together: orders of axes found, samples counted, roles stacked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.arrays import FieldArray, Stack, refuse_unusual
from twoscale.data.axes import LETTERS, AxesOrder, Shaped, find_orders, named_order
from twoscale.data.choosing import ROLES, Choice, Chosen
from twoscale.data.description import Layout, Side
from twoscale.data.readers import open_archive
from twoscale.data.readers.base import StoredArray
from twoscale.data.readers.pieces import Pieces
from twoscale.data.reading import Reading
from twoscale.data.sections import Times, parse_select
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

    stacks: dict[str, Stack]
    reading: Reading

    @property
    def samples(self) -> int:
        return next(iter(self.stacks.values())).samples

    def input_side(self) -> Side:
        """Return what the inputs are made of; parameters are the last channels."""
        given, scalars = self.stacks.get("input"), self.stacks.get("parameters")
        first = given or scalars
        assert first is not None
        known = [stack for stack in (given, scalars) if stack]
        channels = sum(stack.channels for stack in known)
        parameters = scalars.channels if scalars else 0
        return Side(
            Space(self._grid(first), channels, names=_names(known), parameters=parameters),
            first.rank,
        )

    def layout(self) -> Layout:
        """Return what the arrays are together."""
        output = self.stacks["output"]
        space = Space(self._grid(output), output.channels, names=_names([output]))
        return Layout(output.samples, self.input_side(), Side(space, output.rank))

    def _grid(self, stack: Stack) -> Grid:
        """Return the grid of a stack; an axis of one node has nothing to wrap."""
        height, width = stack.grid_shape
        rows, columns = self.reading.periodic or (False, False)
        return Grid((height, width), periodic=(rows and height > 1, columns and width > 1))


@contextmanager
def open_fields(
    paths: Sequence[Path], asked: Reading, *, roles: Sequence[str] = ROLES
) -> Iterator[OpenedFields]:
    """Give the fields of some files, or say what is missing to read them without a guess."""
    with open_archive(paths) as archive:
        chosen = Choice(paths, archive).arrays(asked, roles)
        for one in chosen:
            refuse_unusual(one, pieces=isinstance(one.array, Pieces))
        orders = _orders(chosen, asked, roles)
        fields = [_field_array(one, orders, asked, paths[0]) for one in chosen if _is_field(one)]
        _check_parts(fields, asked, roles)
        count = fields[0].stored_samples if fields else None
        arrays = fields + [
            _parameters(one, orders, count, asked, paths[0]) for one in chosen if not _is_field(one)
        ]
        stacks = {
            role: Stack(role, some)
            for role in ROLES
            if (some := [array for array in arrays if array.role == role])
        }
        _check_counts(stacks)
        if all(one.name is not None for one in chosen):
            names: dict[str, Any] = {
                field: tuple(one.name for one in chosen if one.role == role)
                for role, field in _FIELDS.items()
                if role in roles
            }
            known = {array.label: array.order for array in arrays if array.role != "parameters"}
            asked = replace(asked, **names, known=known)
        periodic = asked.periodic or archive.periodic()
        yield OpenedFields(stacks, replace(asked, periodic=periodic))


def _is_field(one: Chosen) -> bool:
    return one.role != "parameters"


def _check_parts(fields: Sequence[FieldArray], asked: Reading, roles: Sequence[str]) -> None:
    """Raise if a part is asked for along an axis that no array has."""
    present = set().union(*(field.order for field in fields)) | {"n"}
    if asked.time and "t" not in present and "output" in roles:
        raise TwoscaleError(
            "no array has an axis of time: drop 'time', or say with 'axes' which one it is (t)"
        )
    for axis in parse_select(asked.select):
        if axis not in present:
            raise TwoscaleError(
                f"no array has the axis {axis} ({LETTERS[axis]}) that 'select' names"
            )


def _orders(chosen: Sequence[Chosen], asked: Reading, roles: Sequence[str]) -> dict[str, str]:
    """Return the order of axes of each array of fields: given, named, known, or found.

    An order without samples is that of one sample, which is all that each file or group holds.
    """
    given = AxesOrder.parse(asked.axes)
    orders: dict[str, str] = {}
    open_question: list[Chosen] = []
    for one in chosen:
        if not _is_field(one) or one.label in orders:
            continue
        rank = len(one.array.shape)
        known = asked.known.get(one.label, "")
        order = given.of(one.label, rank) or named_order(one.axes)
        order = order or (known if _fits(known, one) else None)
        if order is None:
            open_question.append(one)
            continue
        if "n" not in order and not isinstance(one.array, Pieces):
            raise TwoscaleError(
                f"the axes {order} of '{one.label}' are without samples (n): one field alone is no "
                "data to learn from; give several files, or say which axis is that of the samples"
            )
        orders[one.label] = order
    counts = {_samples(one, orders) for one in chosen if one.label in orders}
    scalars = (_scalar_count(one) for one in chosen if one.role == "parameters")
    counts |= {count for count in scalars if count is not None}
    shaped = [Shaped(one.label, _shape(one)) for one in open_question]
    unique = list({one.name: one for one in shaped}.values())
    times = Times.parse(asked.time)
    timed = times is not None and bool(times.inputs or "output" in roles)
    return orders | find_orders(unique, timed=timed and not _timed(orders), samples=counts)


def _fits(known: str, one: Chosen) -> bool:
    """Say whether an order found earlier can be that of an array."""
    rank = len(one.array.shape)
    ranks = (rank, rank + 1) if isinstance(one.array, Pieces) else (rank,)
    return bool(known) and len(known) in ranks


def _timed(orders: dict[str, str]) -> bool:
    return any("t" in order for order in orders.values())


def _shape(one: Chosen) -> tuple[int, ...]:
    """Return the shape of an array whose order of axes is not known; pieces are joined."""
    shape = tuple(int(side) for side in one.array.shape)
    if not isinstance(one.array, Pieces):
        return shape
    count = len(one.array.openers)
    if one.array.agree() or not one.array.agree(but=0):
        one.array.require_agreement()
        order = {1: "w", 2: "hw", 3: "chw", 4: "tchw"}.get(len(shape), "hw")
        raise TwoscaleError(
            f"'{one.label}' comes in {count} pieces of shape {shape}, which can be read in two "
            f"ways: each piece is one sample (axes {order}, or another order without n), or each "
            f"holds {shape[0] if shape else 1} samples (axes n{order[1:]}, or another order with "
            "n); set the 'axes' that are right"
        )
    return (sum(piece[0] for piece in one.array.shapes), *shape[1:])


def _samples(one: Chosen, orders: dict[str, str]) -> int:
    """Return the number of samples of an array by its order of axes."""
    order = orders[one.label]
    if not isinstance(one.array, Pieces):
        return int(one.array.shape[order.index("n")])
    if _is_stacked(one.array, order):
        return len(one.array.openers)
    return sum(shape[order.index("n")] for shape in one.array.shapes)


def _scalar_count(one: Chosen) -> int | None:
    """Return the number of samples that parameters have, where that needs no reading."""
    shape = one.array.shape
    return int(shape[0]) if len(shape) == 1 and not isinstance(one.array, Pieces) else None


def _is_stacked(pieces: Pieces, order: str) -> bool:
    return len(order) > len(pieces.shape) or "n" not in order


def _field_array(one: Chosen, orders: dict[str, str], asked: Reading, file: Path) -> FieldArray:
    array: StoredArray
    order = orders[one.label]
    if not isinstance(one.array, Pieces):
        array = one.array
    elif _is_stacked(one.array, order):
        array, order = one.array.stacked(), "n" + order.replace("n", "")
    else:
        array = one.array.joined(order.index("n"))
    times, select = Times.parse(asked.time), parse_select(asked.select)
    return FieldArray(one, array, order, select=select, times=times, file=file)


def _parameters(
    one: Chosen, orders: dict[str, str], samples: int | None, asked: Reading, file: Path
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
    select = {axis: part for axis, part in parse_select(asked.select).items() if axis == "n"}
    return FieldArray(one, values, "nc", select=select, times=None, file=file)


def _check_counts(stacks: dict[str, Stack]) -> None:
    counts = {role: stack.samples for role, stack in stacks.items()}
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{role}: {count}" for role, count in counts.items())
        raise TwoscaleError(
            f"the numbers of samples must agree, got {told}; the first axis is that of the samples "
            "unless 'axes' says otherwise"
        )


def _names(stacks: Sequence[Stack]) -> tuple[str, ...] | None:
    found: list[str] = []
    for stack in stacks:
        if stack.names is None:
            return None
        found += stack.names
    return tuple(found)
