"""Predictions with the labels of their inputs, for those who work with xarray."""

from __future__ import annotations

from typing import Any

import numpy as np

from twoscale.domain.space import Space

_USUAL = ("channel", "row", "column")  # names of axes that the inputs do not have


def labelled_like(
    given: Any, values: np.ndarray, spaces: tuple[Space, Space], *, single: bool
) -> Any:
    """Return predictions as a labelled array of the kind of the inputs `given`.

    `spaces` are those of inputs and outputs. Samples, rows and columns keep their names, and their
    coordinates if there are as many of them. An axis of another length is called `output_` and the
    input's name. Channels are called "channel" and have the names of the output channels, if these
    have any. Axes that the inputs lack are called "row" and "column". Name and attributes of the
    inputs are not taken over.
    """
    inputs, outputs = spaces
    own = [str(name) for name in given.dims]
    first = [] if single else own[:1]
    axes = 0 if not inputs.field_channels else 1 if inputs.grid.shape[0] == 1 else 2
    places = own[len(own) - axes :]
    wanted = (*_USUAL[: 3 - len(places)], *places)[3 - (values.ndim - len(first)) :]
    dims = list(first)
    for name, size in zip(wanted, values.shape[len(first) :], strict=True):
        kept = name not in dims and given.sizes.get(name, size) == size
        dims.append(name if kept else f"output_{name}")
    coords = {name: given.coords[name] for name in dims if name in given.coords}
    channels = len(first)
    if values.ndim - channels == len(_USUAL) and outputs.names is not None:
        coords[dims[channels]] = list(outputs.names)
    return type(given)(values, dims=dims, coords=coords)
