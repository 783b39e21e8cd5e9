"""Markov chains: Metropolis steps, with and without a cheap model that screens proposals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, sqrt

import numpy as np

Array = np.ndarray
Potential = Callable[[Array], float]


class Reference:
    """A Gaussian distribution, which the proposals keep: N(mean, precision⁻¹).

    Densities are told relative to it: the potentials of the chains are those of the posterior minus
    `potential`. With mean 0 and precision I, the prior, these are the proposals called pCN.
    """

    def __init__(self, mean: Array, precision: Array) -> None:
        self.mean = mean
        self.precision = precision
        self._factor = np.linalg.cholesky(precision)

    def potential(self, x: Array) -> float:
        """Return (x - mean)' precision (x - mean) / 2."""
        shifted = self._factor.T @ (x - self.mean)
        return 0.5 * float(shifted @ shifted)

    def propose(self, x: Array, move: float, rng: np.random.Generator) -> Array:
        """Return sqrt(1 - move²) (x - mean) + move noise + mean."""
        noise = np.linalg.solve(self._factor.T, rng.standard_normal(len(x)))
        return self.mean + sqrt(1 - move**2) * (x - self.mean) + move * noise


@dataclass(frozen=True)
class Chain:
    """Samples of a chain, and what they cost."""

    samples: Array  # (n, k)
    accepted: float  # share of the decisions of the exact solver that were yes
    solves: int = 0
    seconds: float = 0.0

    def without_start(self, share: float) -> Chain:
        """Return the chain without the first part of its samples."""
        return replace(self, samples=self.samples[round(share * len(self.samples)) :])

    @property
    def effective_samples(self) -> float:
        """Return the number of independent samples that are worth as much: the median over k."""
        return float(np.median([effective_size(column) for column in self.samples.T]))


def metropolis(
    potential: Potential, reference: Reference, steps: int, move: float, rng: np.random.Generator
) -> Chain:
    """Return a chain in which the exact solver decides on every proposal."""
    x, level = reference.mean, potential(reference.mean)
    samples, accepted = np.empty((steps, len(x))), 0
    for step in range(steps):
        proposed = reference.propose(x, move, rng)
        new = potential(proposed)
        if _accepts(level - new, rng):
            x, level, accepted = proposed, new, accepted + 1
        samples[step] = x
    return Chain(samples, accepted / steps)


def delayed_acceptance(
    potential: Potential,
    screen: Potential,
    reference: Reference,
    steps: int,
    subchain: int,
    move: float,
    rng: np.random.Generator,
) -> Chain:
    """Return a chain whose proposals are the ends of short chains of a cheap model.

    The exact solver accepts an end with probability min(1, exp(d(x) - d(end))), d being the exact
    potential minus the cheap one. So the samples are those of the exact posterior, however wrong
    the cheap model is; only the share of accepted ends becomes smaller. An end that is the start
    needs no solve.
    """
    x = reference.mean
    level, cheap = potential(x), screen(x)
    samples, accepted, decided = np.empty((steps, len(x))), 0, 0
    for step in range(steps):
        end, end_cheap, moved = x, cheap, False
        for _ in range(subchain):
            proposed = reference.propose(end, move, rng)
            new = screen(proposed)
            if _accepts(end_cheap - new, rng):
                end, end_cheap, moved = proposed, new, True
        if moved:
            decided += 1
            end_level = potential(end)
            if _accepts((level - cheap) - (end_level - end_cheap), rng):
                x, level, cheap, accepted = end, end_level, end_cheap, accepted + 1
        samples[step] = x
    return Chain(samples, accepted / max(decided, 1))


def _accepts(logarithm: float, rng: np.random.Generator) -> bool:
    """Say yes with probability min(1, exp(logarithm))."""
    return logarithm >= 0 or rng.random() < exp(logarithm)


def effective_size(values: Array) -> float:
    """Return n / (1 + 2 sum of autocorrelations), summed while pairs of them are positive."""
    n = len(values)
    centred = values - values.mean()
    if not centred.any():
        return 1.0
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[:n]
    correlation /= correlation[0]
    pairs = correlation[: 2 * (n // 2)].reshape(-1, 2).sum(1)
    last = np.argmax(pairs <= 0) if (pairs <= 0).any() else len(pairs)
    return float(np.clip(n / max(2 * pairs[:last].sum() - 1, 1.0), 1.0, n))
