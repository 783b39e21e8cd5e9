"""The parts of a surrogate as a page can compute them: representations and predictors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from twoscale.domain.patches import PatchLayout
from twoscale.errors import TwoscaleError
from twoscale.explore.tensors import ArrayPacker
from twoscale.operators.operators import CodeOperator, FieldOperator
from twoscale.representation import (
    BubblePCA,
    Chain,
    GlobalPCA,
    NoFields,
    PatchPCA,
    Representation,
    RestrictedPCA,
    SkeletonPCA,
    Transformed,
    WholeField,
    known_stages,
)
from twoscale.representation.skeleton import Skeleton

Described = dict[str, Any]


class NotInPage(TwoscaleError):
    """A part that pages cannot compute; its text says which."""


def describe_operator(operator: FieldOperator, pack: ArrayPacker) -> Described:
    """Return the parts of a fitted operator, or raise `NotInPage`."""
    if not isinstance(operator, CodeOperator):
        raise NotInPage("its correction network runs in Python only")
    predictor = operator.predictor.for_page(pack)
    if predictor is None:
        raise NotInPage(f"its predictor '{operator.predictor.name}' runs in Python only")
    if predictor["kind"] == "filter":
        ends = {"input": operator.inputs.affine, "output": operator.outputs}
        units = {name: end.unit.flatten() for name, end in ends.items()}
        if operator.scalars is not None:  # the page has parameters as they are
            scale, mean = operator.scalars.scale, operator.scalars.mean
            units["input"] = torch.cat([units["input"], scale])
            means = operator.predictor.get_buffer("input_mean").clone()
            count = operator.inputs.space.channels
            means[count:] = mean[:, None, None] + scale[:, None, None] * means[count:]
            predictor["input_mean"] = pack(means)
        predictor |= {f"{name}_unit": pack(unit) for name, unit in units.items()}
    grid = operator.outputs.space.grid
    return {
        "inputs": describe_inputs(operator, pack),
        "predictor": predictor,
        "outputs": describe(operator.outputs, pack),
        "group": [
            {
                "turns": one.turns % 4,
                "mirrored": one.mirrored,
                "shift": [float(share) for share in one.shift],
            }
            for one in operator.group
        ],
        "average": operator.average,
        "stages": stage_words(operator.outputs),
        "grid": list(grid.shape),
    }


def stage_words(outputs: Representation) -> list[dict[str, str]]:
    """Return name and title of each stage that adds to the decoded field."""
    if not isinstance(outputs, Chain):
        return [{"name": "field", "title": outputs.title}]
    titles = known_stages()
    stages: dict[str, Any] = dict(outputs.stages.items())
    return [
        {"name": titles.get(name, name), "title": stage.title} for name, stage in stages.items()
    ]


# Representations


def describe_inputs(operator: CodeOperator, pack: ArrayPacker) -> Described:
    """Return what makes the code of inputs, with the parameters behind that of the fields."""
    part, scalars = operator.inputs, operator.scalars
    if scalars is None:
        return describe(part, pack)
    inside = None if isinstance(part, NoFields) else describe(part.affine, pack)
    numbers = pack.attributes(scalars, "mean", "scale")
    described = {"kind": "with-parameters", **numbers, "fields": inside}
    kinds = (*(part.kinds if isinstance(part, Transformed) else ()), *scalars.kinds)
    if not isinstance(part, Transformed | NoFields):
        kinds = (*("none",) * part.space.channels, *kinds)
    if set(kinds) == {"none"}:
        return described
    return {"kind": "transformed", "by": list(kinds), "fields": described}


def describe(part: Representation, pack: ArrayPacker) -> Described:
    """Return a fitted representation as the page reads it."""
    if isinstance(part, Chain):
        stages: list[Any] = list(part.stages.values())
        return {"kind": "chain", "stages": [describe(stage, pack) for stage in stages]}
    if isinstance(part, Transformed):
        described = describe(part.fields, pack)
        return {"kind": "transformed", "by": list(part.kinds), "fields": described}
    if isinstance(part, WholeField):
        mean, std = part.scale.mean.flatten(), part.scale.std.flatten()
        shape = list(part.space.shape)
        return {"kind": "whole", "shape": shape, "mean": pack(mean), "std": pack(std)}
    if isinstance(part, SkeletonPCA):
        return _lines(part, pack)
    if type(part) in _LAYOUTS:
        return {"kind": "blocks", **_blocks(part, pack), "layout": _LAYOUTS[type(part)](part, pack)}
    raise NotInPage(f"its representation '{part.name}' is computed in Python only")


def _blocks(part: Any, pack: ArrayPacker) -> Described:
    """Return mean, scale and modes of each block, without the zeros beyond a block's rank."""
    ranks = [int(rank) for rank in part.rank]
    modes = [vectors[:, :rank].flatten() for vectors, rank in zip(part.vectors, ranks, strict=True)]
    return {
        "shape": list(part.space.shape),
        "ranks": ranks,
        "features": part.mean.shape[1],
        **pack.attributes(part, "mean", "scale"),
        "modes": pack(torch.cat(modes), "weights"),
    }


def _whole_layout(part: GlobalPCA, pack: ArrayPacker) -> Described:
    return {"kind": "all"}


def _patch_layout(part: PatchPCA, pack: ArrayPacker) -> Described:
    layout = part.layout
    assert layout is not None  # it is fitted
    found = {"kind": "patches", **_cuts(layout)}
    if layout.overlaps:
        found["weights"] = pack(part.weights[:, : layout.features])
    return found


def _cuts(layout: PatchLayout) -> Described:
    """Return where the intervals of rows and columns start, and how long they are."""
    return {
        name: {"size": cuts.size, "starts": list(cuts.starts), "sides": list(cuts.sides)}
        for name, cuts in (("rows", layout.rows), ("columns", layout.columns))
    }


def _coarse_layout(part: RestrictedPCA, pack: ArrayPacker) -> Described:
    found: Described = {"kind": "coarse"}
    for axis, (means, interpolation) in zip(("row", "column"), part.cells.matrices, strict=True):
        found[f"{axis}_means"] = pack(means)
        found[f"{axis}_interpolation"] = pack(interpolation)
    return found


def _bubble_layout(part: BubblePCA, pack: ArrayPacker) -> Described:
    """Return the patches, the lines between them, and the norm's weights after the first lines."""
    return {
        "kind": "bubbles",
        **_cuts(part.skeleton.layout),
        "skeleton": _skeleton(part.skeleton, pack),
        "weights": pack(part.weights[:, 0].flatten(1)),
    }


def _skeleton(skeleton: Skeleton, pack: ArrayPacker) -> Described:
    buffers = ("row_sines", "column_sines", "row_loads", "column_loads", "inverse")
    lines = ("places", "row_lines", "column_lines")
    numbers = pack.attributes(skeleton, *buffers)
    return _cuts(skeleton.layout) | numbers | pack.attributes(skeleton, *lines, use="places")


def _lines(part: SkeletonPCA, pack: ArrayPacker) -> Described:
    """Return the maps between traces and codes, with the factors of the norm multiplied in.

    With y = L^T g: z = V^T (y - mean) / s, and the decoded traces are L^-T (mean + s V z). The
    factors are larger than both maps: there are as many lines' nodes squared.
    """
    mean, scale, vectors = (one[0].double() for one in (part.mean, part.scale, part.vectors))
    factor, inverse = (
        torch.block_diag(*[one.double()] * part.space.channels)
        for one in (part.factor, part.inverse_factor)
    )
    seen = vectors / scale[:, None]
    return {
        "kind": "lines",
        "shape": list(part.space.shape),
        "ranks": [int(part.rank[0])],
        "skeleton": _skeleton(part.skeleton, pack),
        "analysis": pack(factor @ seen),
        "offset": pack(mean @ seen),
        "synthesis": pack(inverse.mT @ (scale[:, None] * vectors)),
        "mean": pack(inverse.mT @ mean),
    }


_LAYOUTS: dict[type[Representation], Callable[[Any, ArrayPacker], Described]] = {
    GlobalPCA: _whole_layout,
    PatchPCA: _patch_layout,
    RestrictedPCA: _coarse_layout,
    BubblePCA: _bubble_layout,
}
