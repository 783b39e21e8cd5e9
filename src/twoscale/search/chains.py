"""The output representations that a search knows: how their codes grow, and on which grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from twoscale.domain.space import Space

CodeSettings = Callable[[int, Space, tuple[int, int]], dict[str, Any]]
"""From the place in `CODES`, the space of the outputs and the patches per axis to settings."""

CODES = ((40, 0.99), (40, 0.999), (80, 0.9999), (160, 0.99999))
"""Coarse modes and variance of the residual, from short codes to long ones."""

_COARSE_SIDE = 32  # nodes: a PCA of a larger coarse grid takes long
VARIANCES = ("output_variance", "middle_variance", "residual_variance", "variance")
"""Settings that decide by a share of variance how long a code is."""

_FULL = 1e-9  # share of variance below which no longer code is asked for
_MOST_VALUES = 64 * 64  # of a field that is one block: the PCA of larger ones takes long


def _coarse_factor(outputs: Space) -> int:
    """Return the least coarsening to a grid whose PCA is cheap; one that divides, if it can."""
    sides = [side for side in outputs.grid.shape if side > 1] or [1]
    least = -(-max(sides) // _COARSE_SIDE)
    near = range(least, min(least + least // 2, max(sides) // 4) + 1)
    return next((c for c in near if not any(side % c for side in sides)), least)


def _coarse_values(outputs: Space) -> int:
    """Return how many numbers a field on the coarse grid is."""
    rows, columns = (-(-side // _coarse_factor(outputs)) for side in outputs.grid.shape)
    return outputs.channels * rows * columns


@dataclass(frozen=True)
class ChainKind:
    """A method whose output representation is searched.

    A `sized` code grows by its number of modes, the setting `code_size`. Any other grows along
    `CODES`: `code_settings` says how. `whole` fields have no code: only predictors that read fields
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
    code_settings: CodeSettings = lambda code, outputs, patches: {}


def _coarse_code(code: int, outputs: Space) -> dict[str, Any]:
    return {
        "coarse_factor": _coarse_factor(outputs),
        "coarse_components": CODES[code][0],
        "few_features": False,
    }


def _two_scale_code(code: int, outputs: Space, patches: tuple[int, int]) -> dict[str, Any]:
    return _coarse_code(code, outputs) | {"residual_variance": CODES[code][1]}


def _three_scale_code(code: int, outputs: Space, patches: tuple[int, int]) -> dict[str, Any]:
    rows, columns = (-(-count // 2) for count in patches)
    return _coarse_code(code, outputs) | {"middle_patches": (rows, columns)}


def longer_settings(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return twice the coarse modes, and a tenth of the variance that each stage loses.

    Nothing if the code has all of the variance.
    """
    longer = {}
    if "coarse_components" in settings:
        longer["coarse_components"] = str(2 * settings["coarse_components"])
    lost = {name: 1 - settings[name] for name in VARIANCES if settings.get(name) is not None}
    return longer | {
        name: f"{1 - share / 10:.12g}" for name, share in lost.items() if share > _FULL
    }


CHAINS: dict[str, ChainKind] = {
    "two-scale": ChainKind(sized=False, code_settings=_two_scale_code),
    "conforming": ChainKind(),
    "three-scale": ChainKind(patch_factor=4, code_settings=_three_scale_code),
    "global": ChainKind(one_block=True, most_values=_MOST_VALUES),
    "whole-field": ChainKind(sized=False, whole=True),
    # A method that is added here is searched.
}
"""By the name of the method; a search starts with the first one that has all given settings."""

SHARED_BORDERS = "conforming"
"""The method whose patches share their borders, so that it has no seams in value."""

FIRST_CHAIN = next(iter(CHAINS))
