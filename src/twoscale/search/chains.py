"""The output representations that a search knows: how their codes grow, and on which grids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

CodeSettings = Callable[[int, int], dict[str, Any]]
"""From the place in `CODES` and the coarse factor to settings."""

CODES = ((40, 0.99), (40, 0.999), (80, 0.9999), (160, 0.99999))
"""Coarse modes and variance of the residual, from short codes to long ones."""

_MOST_VALUES = 64 * 64  # of a field that is one block: the PCA of larger ones takes long


@dataclass(frozen=True)
class ChainKind:
    """A method whose output representation is searched.

    A `sized` code grows by its number of modes, the setting `code_size`. Any other grows along
    `CODES`: `code_settings` says how, and `longer_settings` what is longer than given settings.
    `one_block` says whether fields are not cut into patches; then those of more than `most_values`
    numbers are not searched.
    """

    sized: bool = True
    one_block: bool = False
    most_values: int | None = None
    code_settings: CodeSettings = lambda code, coarse_factor: {}
    longer_settings: Callable[[Mapping[str, Any]], dict[str, str]] = lambda settings: {}


def _two_scale_code(code: int, coarse_factor: int) -> dict[str, Any]:
    components, variance = CODES[code]
    return {
        "coarse_factor": coarse_factor,
        "coarse_components": components,
        "residual_variance": variance,
        "few_features": False,
    }


def _longer_two_scale_code(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return twice the coarse modes, and a tenth of the variance that the residual loses."""
    lost = 1 - settings["residual_variance"]
    return {
        "coarse_components": str(2 * settings["coarse_components"]),
        "residual_variance": f"{1 - lost / 10:.12g}",
    }


CHAINS: dict[str, ChainKind] = {
    "two-scale": ChainKind(
        sized=False, code_settings=_two_scale_code, longer_settings=_longer_two_scale_code
    ),
    "conforming": ChainKind(),
    "global": ChainKind(one_block=True, most_values=_MOST_VALUES),
    # A method that is added here is searched.
}
"""By the name of the method; a search starts with the first one that has all given settings."""

FIRST_CHAIN = next(iter(CHAINS))
