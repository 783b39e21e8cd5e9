"""What a representation is as a method: how it is shown, and how a search makes its code longer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from twoscale.domain.space import Space

CODES = ((40, 0.99), (40, 0.999), (80, 0.9999), (160, 0.99999))
"""Coarse modes and variance of the residual, from short codes to long ones."""

_COARSE_SIDE = 32  # nodes: a PCA of a larger coarse grid takes long


@cache
def coarse_factor(outputs: Space) -> int:
    """Return the least coarsening to a grid whose PCA is cheap; one that divides, if it can."""
    sides = [side for side in outputs.grid.plane.shape if side > 1] or [1]
    least = -(-max(sides) // _COARSE_SIDE)
    near = range(least, min(least + least // 2, max(sides) // 4) + 1)
    return next((c for c in near if not any(side % c for side in sides)), least)


def _coarse_values(outputs: Space) -> int:
    """Return how many numbers a field on the coarse grid is."""
    rows, columns = (-(-side // coarse_factor(outputs)) for side in outputs.grid.plane.shape)
    return outputs.channels * rows * columns


def coarse_code(code: int, outputs: Space) -> dict[str, Any]:
    """Return the settings of a coarse stage, by the place in `CODES`."""
    return {
        "coarse_factor": coarse_factor(outputs),
        "coarse_components": CODES[code][0],
        "few_features": False,
    }


@dataclass(frozen=True)
class CodeGrowth:
    """How the code of a method grows when a search makes it longer.

    A `sized` code grows by its number of modes, the setting `code_size`. Any other grows along
    `CODES`: `settings` says how. `whole` fields have no code: only predictors that read fields
    learn them.
    `one_block` says whether fields are not cut into patches; then those of more than `most_values`
    numbers are not searched. `patch_factor` is how many patches its largest blocks consist of.
    `first_values` estimates how many numbers its first stage works on, which spans the whole
    domain.
    """

    sized: bool = True
    whole: bool = False
    one_block: bool = False
    patch_factor: int = 1
    most_values: int | None = None
    first_values: Callable[[Space], int] = _coarse_values
    settings: Callable[[int, Space, tuple[int, int]], dict[str, Any]] = lambda *_: {}
    """From the place in `CODES`, the space of the outputs and the patches per axis to settings."""


@dataclass(frozen=True)
class AsMethod:
    """What makes a representation of outputs a method of the same name.

    Its inputs are patches, and its settings those of the representation, which all need defaults.
    """

    title: str
    """What it is called in tables and legends."""
    growth: CodeGrowth | None = None
    """How a search makes its code longer; without it no search tries the method."""
    colour: str = "#555555"
    """Of its lines and bars in charts, `#rrggbb`."""
    marker: str = "h"
    """Of its points in charts, in matplotlib's notation."""
    order: int = 9
    """Methods with a smaller number are listed before it."""
