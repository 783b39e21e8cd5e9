"""Gaussian random fields, one independent stream of random numbers per sample."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError
from twoscale.math.transforms import inverse_cosine_transform
from twoscale.problems.parameters import check_positive


@dataclass(frozen=True)
class GaussianRandomField:
    """Zero-mean random field with DCT-II coefficients of power-law decay.

    On a D x D grid the coefficient (k, l) is
    D tau^(alpha-1) [pi^2 (k^2 + l^2) + tau^2]^(-alpha/2) xi_kl, and zero at (0, 0).
    (D is the square root of the number of nodes on a rectangular grid.) Fields are smoother for
    larger `alpha` and vary over shorter distances for larger `tau`; both are positive.
    """

    alpha: float = 2.0
    tau: float = 3.0

    def __post_init__(self) -> None:
        check_positive(self)

    def sample(
        self,
        grid: Grid,
        indices: Sequence[int],
        *,
        entropy: Sequence[int],
        device: torch.device | str = "cpu",
    ) -> Tensor:
        """Return the fields (len(indices), height, width), float64."""
        noise = standard_normals(grid.shape, indices, entropy=entropy)
        coefficients = torch.from_numpy(noise).to(device) * self._amplitude(grid).to(device)
        return inverse_cosine_transform(coefficients)

    def modes(self, grid: Grid, count: int) -> Tensor:
        """Return the `count` modes (count, height, width) of largest amplitude, float64.

        Their sum with independent standard normal coefficients is a sample of the field without
        its other modes: a truncated Karhunen-Loeve expansion. All modes are one fewer than nodes,
        because the mean is zero.
        """
        if not 1 <= count < grid.nodes:
            raise TwoscaleError(
                f"a random field on {grid} nodes has 1 to {grid.nodes - 1} modes, got {count}"
            )
        amplitude = self._amplitude(grid).flatten()
        largest = amplitude.argsort(descending=True, stable=True)[:count]
        coefficients = torch.zeros(count, grid.nodes, dtype=torch.float64)
        coefficients[torch.arange(count), largest] = amplitude[largest]
        return inverse_cosine_transform(coefficients.reshape(count, *grid.shape))

    def _amplitude(self, grid: Grid) -> Tensor:
        rows = torch.arange(grid.shape[0], dtype=torch.float64).square()
        columns = torch.arange(grid.shape[1], dtype=torch.float64).square()
        power = math.pi**2 * (rows[:, None] + columns) + self.tau**2
        size = math.sqrt(grid.shape[0] * grid.shape[1])
        amplitude = size * self.tau ** (self.alpha - 1) * power ** (-self.alpha / 2)
        amplitude[0, 0] = 0.0
        return amplitude


def standard_normals(
    shape: tuple[int, ...], indices: Sequence[int], *, entropy: Sequence[int]
) -> np.ndarray:
    """Return standard normals (len(indices), *shape); sample i depends on (entropy, i) only."""
    return _draws(shape, indices, entropy, lambda rng, out: rng.standard_normal(out=out))


def uniforms(
    shape: tuple[int, ...], indices: Sequence[int], *, entropy: Sequence[int]
) -> np.ndarray:
    """Return uniform numbers from -1 to 1, as `standard_normals` does normal ones."""
    return 2 * _draws(shape, indices, entropy, lambda rng, out: rng.random(out=out)) - 1


def _draws(
    shape: tuple[int, ...],
    indices: Sequence[int],
    entropy: Sequence[int],
    draw: Callable[[np.random.Generator, np.ndarray], Any],
) -> np.ndarray:
    numbers = np.empty((len(indices), *shape))

    def fill(position: int) -> None:
        seeds = np.random.SeedSequence(entropy, spawn_key=(int(indices[position]),))
        draw(np.random.default_rng(seeds), numbers[position])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(fill, range(len(indices))))
    return numbers
