"""The parts of a surrogate as a page can compute them: representations and predictors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from twoscale.domain.patches import PatchLayout
from twoscale.errors import TwoscaleError
from twoscale.explore.tensors import Packer
from twoscale.math.series import Parts
from twoscale.networks import DenseNetwork
from twoscale.operators.operators import FieldOperator, LatentOperator
from twoscale.predictors import MLP, Affine, AffineMLP, CodePredictor, Kernel, SpectralFilter
from twoscale.representation import (
    BlockPCA,
    BubblePCA,
    Chain,
    GlobalPCA,
    PatchPCA,
    Representation,
    RestrictedPCA,
    SkeletonPCA,
    Transformed,
    WholeField,
    WithParameters,
    known_stages,
)
from twoscale.representation.skeleton import Skeleton

Described = dict[str, Any]


class NotInPage(TwoscaleError):
    """A part that pages cannot compute; its text says which."""


def describe_operator(operator: FieldOperator, pack: Packer) -> Described:
    """Return the parts of a fitted operator, or raise `NotInPage`."""
    if not isinstance(operator, LatentOperator):
        raise NotInPage("its correction network runs in Python only")
    predictor = describe_predictor(operator.predictor, pack)
    if predictor["kind"] == "filter":
        ends = {"input": operator.inputs.affine, "output": operator.outputs}
        units = {f"{name}_unit": pack.single(end.unit.flatten()) for name, end in ends.items()}
        predictor |= units
    grid = operator.outputs.space.grid
    return {
        "inputs": describe(operator.inputs, pack),
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


def describe(part: Representation, pack: Packer) -> Described:
    """Return a fitted representation as the page reads it."""
    if isinstance(part, Chain):
        stages: list[Any] = list(part.stages.values())
        return {"kind": "chain", "stages": [describe(stage, pack) for stage in stages]}
    if isinstance(part, Transformed):
        return {
            "kind": "transformed",
            "by": list(part.kinds),
            "fields": describe(part.fields, pack),
        }
    if isinstance(part, WithParameters):
        return {
            "kind": "with-parameters",
            "mean": pack.single(part.mean),
            "scale": pack.single(part.scale),
            "fields": None if part.fields is None else describe(part.fields, pack),
        }
    if isinstance(part, WholeField):
        scale = part.scale
        return {
            "kind": "whole",
            "shape": list(part.space.shape),
            "mean": pack.single(scale.mean.flatten()),
            "std": pack.single(scale.std.flatten()),
        }
    if isinstance(part, SkeletonPCA):
        return _lines(part, pack)
    for kind, layout in _LAYOUTS.items():
        if type(part) is kind and isinstance(part, BlockPCA):
            return {"kind": "blocks", **_blocks(part, pack), "layout": layout(part, pack)}
    raise NotInPage(f"its representation '{part.name}' is computed in Python only")


def _blocks(part: BlockPCA, pack: Packer) -> Described:
    """Return mean, scale and modes of each block, without the zeros beyond a block's rank."""
    ranks = [int(rank) for rank in part.rank]
    modes = [vectors[:, :rank].flatten() for vectors, rank in zip(part.vectors, ranks, strict=True)]
    return {
        "shape": list(part.space.shape),
        "ranks": ranks,
        "features": part.mean.shape[1],
        "mean": pack.single(part.mean),
        "scale": pack.single(part.scale),
        "modes": pack.weights(torch.cat(modes)),
    }


def _whole_layout(part: Any, pack: Packer) -> Described:
    return {"kind": "all"}


def _patch_layout(part: Any, pack: Packer) -> Described:
    layout: PatchLayout = part.layout
    found = {"kind": "patches", **_cuts(layout)}
    if layout.overlaps:
        found["weights"] = pack.single(part.weights[:, : layout.features])
    return found


def _cuts(layout: PatchLayout) -> Described:
    """Return where the intervals of rows and columns start, and how long they are."""
    return {
        name: {"size": cuts.size, "starts": list(cuts.starts), "sides": list(cuts.sides)}
        for name, cuts in (("rows", layout.rows), ("columns", layout.columns))
    }


def _coarse_layout(part: Any, pack: Packer) -> Described:
    found: Described = {"kind": "coarse"}
    for axis, (means, interpolation) in zip(("row", "column"), part.cells.matrices, strict=True):
        found[f"{axis}_means"] = pack.single(means)
        found[f"{axis}_interpolation"] = pack.single(interpolation)
    return found


def _bubble_layout(part: Any, pack: Packer) -> Described:
    """Return the patches, the lines between them, and the norm's weights after the first lines."""
    return {
        "kind": "bubbles",
        **_cuts(part.skeleton.layout),
        "skeleton": _skeleton(part.skeleton, pack),
        "weights": pack.single(part.weights[:, 0].flatten(1)),
    }


def _skeleton(skeleton: Skeleton, pack: Packer) -> Described:
    buffers = ("row_sines", "column_sines", "row_loads", "column_loads", "inverse")
    lines = ("places", "row_lines", "column_lines")
    return {
        **_cuts(skeleton.layout),
        **{name: pack.single(getattr(skeleton, name)) for name in buffers},
        **{name: pack.places(getattr(skeleton, name)) for name in lines},
    }


def _lines(part: SkeletonPCA, pack: Packer) -> Described:
    """Return the maps between traces and codes, with the factors of the norm multiplied in.

    With y = L^T g: z = V^T (y - mean) / s, and the decoded traces are L^-T (mean + s V z). The
    factors are larger than both maps: there are as many lines' nodes squared.
    """
    channels = part.space.channels
    mean, scale = part.mean[0].double(), part.scale[0].double()
    vectors = part.vectors[0].double()
    factor, inverse = (
        torch.block_diag(*[one.double()] * channels) for one in (part.factor, part.inverse_factor)
    )
    seen = vectors / scale[:, None]
    return {
        "kind": "lines",
        "shape": list(part.space.shape),
        "ranks": [int(part.rank[0])],
        "skeleton": _skeleton(part.skeleton, pack),
        "analysis": pack.single(factor @ seen),
        "offset": pack.single(mean @ seen),
        "synthesis": pack.single(inverse.mT @ (scale[:, None] * vectors)),
        "mean": pack.single(inverse.mT @ mean),
    }


_LAYOUTS: dict[type[Representation], Callable[[Any, Packer], Described]] = {
    GlobalPCA: _whole_layout,
    PatchPCA: _patch_layout,
    RestrictedPCA: _coarse_layout,
    BubblePCA: _bubble_layout,
}


# Predictors


def describe_predictor(part: CodePredictor, pack: Packer) -> Described:
    """Return a fitted predictor as the page reads it."""
    if isinstance(part, Affine | MLP):
        return {"kind": "sum", "networks": [_network(part.trained, pack)]}
    if isinstance(part, AffineMLP):
        terms = [part.affine.trained]
        if part.chosen.get("correction_kept", True):
            terms.append(part.correction.trained)
        return {"kind": "sum", "networks": [_network(one, pack) for one in terms]}
    if isinstance(part, Kernel) and part.regression is not None:
        regression = part.regression
        names = ("weights", "centres", "offset", "coefficients")
        found = {name: pack.exact(getattr(regression, name)) for name in names}
        return {"kind": "kernel", "order": int(regression.order), **found}
    if isinstance(part, SpectralFilter) and part.series is not None:
        return _filter(part, pack)
    raise NotInPage(f"its predictor '{part.name}' runs in Python only")


def _network(network: DenseNetwork, pack: Packer) -> list[Described]:
    return [
        {"weight": pack.weights(layer.weight), "bias": pack.single(layer.bias)}
        for layer in network.linear
    ]


def _filter(part: SpectralFilter, pack: Packer) -> Described:
    series = part.series
    assert series is not None
    axes = series.axes(torch.device("cpu"), torch.float32)
    numbers = dict(zip(("real", "imaginary"), part.symbol.unbind(-1), strict=False))
    return {
        "kind": "filter",
        "analysis": [_by_parts(axis.analysis, pack) for axis in axes],
        "synthesis": [_by_parts(axis.synthesis, pack) for axis in axes],
        "symbol": {name: pack.single(one) for name, one in numbers.items()},
        "input_mean": pack.single(part.input_mean),
        "output_mean": pack.single(part.output_mean),
    }


def _by_parts(parts: Parts, pack: Packer) -> Described:
    """Return a matrix by its real part and, if it has one, its imaginary part."""
    names = ("real", "imaginary")
    return {name: pack.single(part) for name, part in zip(names, parts, strict=False)}
