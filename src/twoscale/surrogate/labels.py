"""Predictions with the labels of their inputs, for those who work with xarray."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from twoscale.fields.grid import Space


def labelled_like(given: Any, values: np.ndarray, space: Space, *, single: bool) -> Any:
    """Return predictions as a labelled array of the kind of the inputs `given`.

    Samples, rows and columns keep their names, and their coordinates if there are as many of them.
    An axis of another length is called `output_` and the input's name. Channels are called
    "channel" and have the names of the output channels, if these have any. Nothing else is taken
    over: name and attributes are those of the inputs.
    """
    dims = _dims(list(given.dims), given.sizes, values.shape, samples=not single)
    coords = {name: given.coords[name] for name in dims if name in given.coords}
    if "channel" in dims and space.names is not None:
        coords["channel"] = list(space.names)
    return type(given)(values, dims=dims, coords=coords)


def _dims(own: list[str], sizes: Any, shape: Sequence[int], *, samples: bool) -> list[str]:
    """Return a name for each axis of the predictions."""
    first = [own[0]] if samples else []
    sides = shape[len(first) :]
    places = own[len(first) :][-2:]
    spatial = sides[-len(places) :] if len(sides) >= len(places) else sides
    names = places[len(places) - len(spatial) :]
    found = [
        name if sizes[name] == size else f"output_{name}"
        for name, size in zip(names, spatial, strict=True)
    ]
    missing = len(sides) - len(spatial)
    others = ["channel", "row"][:missing]
    return [*first, *others, *found]
