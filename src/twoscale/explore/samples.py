"""Inputs that a page starts from: test samples, and modes from which new fields are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from twoscale.domain.space import Space
from twoscale.explore.tensors import ArrayPacker
from twoscale.fields.source import Batch, gather
from twoscale.run import Run
from twoscale.run.pairs import loaded_pairs

_MOST_SAMPLES = 6
_SAMPLE_BYTES = 1_200_000  # of all samples of a run in a page
_LOOKED_AT = 400  # inputs that modes are made of, at most
_MODES = 96
_MODE_SIDE = 64  # nodes per side of the grid that modes are stored on
_KEPT = 0.999  # share of variance that modes keep


class SampleBook:
    """All samples of a page; runs that are tested on the same ones share them."""

    def __init__(self, pack: ArrayPacker) -> None:
        self.pack = pack
        self.samples: list[dict[str, Any]] = []
        self._known: dict[tuple[str, int], int] = {}

    def of_run(self, run: Run) -> list[int]:
        """Return the places of some test samples of a run, which are added where they are new."""
        dataset = run.test_dataset
        space = (run.surrogate.input_space_, run.surrogate.output_space_)
        numbers = sorted(run.test_samples)[: _affordable(*space)]
        inputs, truth = loaded_pairs(dataset, numbers).tensors()
        places = []
        for place, number in enumerate(numbers):
            key = (dataset.identity, number)
            if key not in self._known:
                self._known[key] = len(self.samples)
                self.samples.append(self._packed(number, inputs[place], truth[place]))
            places.append(self._known[key])
        return places

    def _packed(self, number: int, inputs: Batch, truth: Tensor) -> dict[str, Any]:
        return {
            "number": number,
            "input": self.pack(inputs.fields),
            "parameters": inputs.parameters.tolist(),
            "truth": self.pack(truth),
        }


def _affordable(*spaces: Space) -> int:
    size = 4 * sum(int(np.prod(space.shape)) for space in spaces)
    return max(1, min(_MOST_SAMPLES, _SAMPLE_BYTES // size))


def describe_inputs(run: Run, pack: ArrayPacker) -> dict[str, Any]:
    """Return what inputs are made of: channels with their kinds, parameters, random modes."""
    space = run.surrogate.input_space_
    numbers = run.split.as_dict()["training"][:_LOOKED_AT] or run.test_samples[:_LOOKED_AT]
    fields = gather(run.dataset.load_fields("input", [numbers])[0]).double()
    names, count = space.labels, space.channels
    (scalars,) = run.dataset.parameters([numbers])
    return {
        "shape": [count, *space.grid.shape],
        "channels": [_channel(names[c], fields[:, c]) for c in range(count)],
        "parameters": [
            {"name": names[count + p], **_range(scalars[:, p].double())}
            for p in range(space.parameters)
            if scalars is not None
        ],
        "modes": _modes(fields, pack) if count else None,
    }


def _channel(name: str, values: Tensor) -> dict[str, Any]:
    """Return name, range and kind of a channel: two-valued media are painted, others get blobs."""
    few = torch.unique(values.flatten()[:: max(1, values.numel() // 200_000)].float())
    kind = "two-valued" if len(few) == 2 else "smooth"
    return {"name": name, "kind": kind, "positive": bool(values.min() > 0), **_range(values)}


def _range(values: Tensor) -> dict[str, float]:
    return {
        "low": float(values.min()),
        "high": float(values.max()),
        "mean": float(values.mean()),
        "spread": float(values.std(correction=0)),
    }


def _modes(fields: Tensor, pack: ArrayPacker) -> dict[str, Any]:
    """Return the mean and the principal modes of inputs, each times its standard deviation.

    They are stored on a grid of at most 64 nodes per side; the page interpolates them.
    """
    side = [min(size, _MODE_SIDE) for size in fields.shape[2:]]
    small = fields
    if tuple(side) != tuple(fields.shape[2:]):
        small = functional.interpolate(fields, side, mode="bilinear", align_corners=True)
    mean = small.mean(0)
    deviations = (small - mean).flatten(1)
    _, sizes, modes = torch.linalg.svd(
        deviations / max(len(fields) - 1, 1) ** 0.5, full_matrices=False
    )
    count = _needed(sizes.square().tolist())
    scaled = (sizes[:count, None] * modes[:count]).reshape(count, *mean.shape)
    return {"mean": pack(mean, "half"), "modes": pack(scaled, "half")}


def _needed(variances: Sequence[float]) -> int:
    """Return how many modes keep nearly all variance, at most 96."""
    total = sum(variances)
    kept = np.cumsum(variances) if total > 0 else np.ones(len(variances))
    enough = int(np.searchsorted(kept, _KEPT * total)) + 1
    return min(enough, _MODES, len(variances))
