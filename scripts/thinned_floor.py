"""How far apart solutions are whose media agree at every node that a thinned medium shows.

python scripts/thinned_floor.py --out results/thinned-floor.json

The benchmark `darcy-fno` solves on 421 x 421 nodes and keeps every fifth. What lies between the
kept nodes is random. So no method that reads the thinned medium can have an error of zero. For
media of the benchmark this script draws others that look the same after thinning: from the
distribution of the random field, given its values at the kept nodes ("values") or only their
signs, which is all that the medium shows ("signs"). It solves both. Two independent draws differ by
sqrt(2) times the error of the best possible prediction if the solutions are normally distributed,
and by twice that error at most. Signs are drawn by a Gibbs sampler that starts from the true field.
With few sweeps the draws still resemble it, and the floor comes out too low.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.fft
import scipy.linalg
import torch
from records import write_record
from scipy.special import log_ndtr, ndtri_exp

from twoscale import Grid
from twoscale.problems.darcy import DarcyFNO, thinned
from twoscale.problems.random_field import GaussianRandomField

SEED = 2  # of the test fields of the study `leaderboard`
Array = np.ndarray


@dataclass(frozen=True)
class KnownField:
    """The random field of fine nodes, given its values at every k-th node."""

    variances: Array  # (height, width): of its cosine coefficients
    step: int

    @property
    def sides(self) -> tuple[int, int]:
        height, width = (len(range(0, side, self.step)) for side in self.variances.shape)
        return height, width

    def covariance(self) -> Array:
        """Return the covariance (nodes, nodes) of the values at the kept nodes."""
        rows, columns = (
            scipy.fft.idct(np.eye(side), axis=0, norm="ortho")[:: self.step]
            for side in self.variances.shape
        )
        along_rows = np.einsum("ik,jk->kij", rows, rows).reshape(rows.shape[1], -1)
        across = np.einsum("kl,al,bl->kab", self.variances, columns, columns, optimize=True)
        product = along_rows.T @ across.reshape(rows.shape[1], -1)
        height, width = self.sides
        four = product.reshape(height, height, width, width).transpose(0, 2, 1, 3)
        return four.reshape(height * width, height * width)

    def spread(self, weights: Array) -> Array:
        """Return the covariances of all nodes with the kept ones, times weights at these."""
        sources = np.zeros((len(weights), *self.variances.shape))
        sources[:, :: self.step, :: self.step] = weights.reshape(-1, *self.sides)
        coefficients = scipy.fft.dctn(sources, axes=(1, 2), norm="ortho", workers=-1)
        return scipy.fft.idctn(self.variances * coefficients, axes=(1, 2), norm="ortho", workers=-1)


def gibbs(values: Array, precision: Array, sweeps: int, rng: np.random.Generator) -> Array:
    """Return fields (samples, nodes) with the signs of `values`, after so many sweeps from them.

    The field is normal with mean zero. One sweep draws each node given all others.
    """
    found = values.T.copy()  # (nodes, samples)
    signs = np.where(found >= 0, 1.0, -1.0)
    images = precision @ found
    deviations = 1 / np.sqrt(np.diag(precision))
    for _ in range(sweeps):
        for node in rng.permutation(len(found)):
            deviation = deviations[node]
            mean = found[node] - images[node] * deviation**2
            # With probability p of the allowed side, draw from its upper p by the inverse.
            reach = signs[node] * mean / deviation
            exponent = log_ndtr(reach) + np.log(rng.random(len(reach)))
            drawn = mean - signs[node] * deviation * ndtri_exp(exponent)
            images += np.outer(precision[:, node], drawn - found[node])
            found[node] = drawn
        images = precision @ found  # without the rounding of all those changes
    return found.T


def apart(one: Array, other: Array, size: Array) -> dict[str, float]:
    """Return the mean relative L2 difference of fields, and the floor that follows from it."""
    difference = np.sqrt(np.square(one - other).sum((1, 2))) / size
    return {
        "difference": float(difference.mean()),
        "floor_of_normal_solutions": float(difference.mean() / math.sqrt(2)),
        "standard_error": float(difference.std(ddof=1) / math.sqrt(2 * len(difference))),
        "proven_floor": float(difference.mean() / 2),
    }


def measure(samples: int, sweeps: Sequence[int], side: int) -> dict[str, Any]:
    """Return the differences for media that agree at kept nodes: in values, or in signs."""
    problem, rng = DarcyFNO(), np.random.default_rng(0)
    fine, grid = problem.fine_grid, Grid((side, side))
    step = (fine.shape[0] - 1) // (side - 1)
    medium: GaussianRandomField = problem.medium
    variances = medium._amplitude(fine).square().numpy()
    known = KnownField(variances, step)
    covariance = known.covariance()
    factor = scipy.linalg.cho_factor(covariance, lower=True)

    def drawn(at_nodes: Array) -> Array:
        """Return fine fields with these values at the kept nodes."""
        noise = rng.standard_normal((len(at_nodes), *fine.shape)) * np.sqrt(variances)
        free = scipy.fft.idctn(noise, axes=(1, 2), norm="ortho", workers=-1)
        missing = at_nodes - free[:, ::step, ::step].reshape(len(free), -1)
        return free + known.spread(scipy.linalg.cho_solve(factor, missing.T).T)

    def solved(level: Array) -> Array:
        pressure = problem.solve(problem.inputs_of(torch.from_numpy(level)))
        return thinned(pressure, grid).numpy()

    entropy = problem.entropy(fine, SEED)
    level = medium.sample(fine, range(samples), entropy=entropy).numpy()
    values = level[:, ::step, ::step].reshape(samples, -1)
    truth = solved(level)
    size = np.sqrt(np.square(truth).sum((1, 2)))
    found: dict[str, Any] = {"values": apart(truth, solved(drawn(values)), size)}
    print("values", found["values"], flush=True)
    precision = scipy.linalg.cho_solve(factor, np.eye(len(covariance)))
    current, done = values, 0
    for count in sweeps:
        current, done = gibbs(current, precision, count - done, rng), count
        other = drawn(current)
        assert (problem.inputs_of(torch.from_numpy(other[:, ::step, ::step]))).equal(
            problem.inputs_of(torch.from_numpy(level[:, ::step, ::step]))
        )
        found[f"signs, {count} sweeps"] = apart(truth, solved(other), size)
        print(count, found[f"signs, {count} sweeps"], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--side", type=int, default=85)
    parser.add_argument("--sweeps", type=int, nargs="+", default=[10, 50, 200, 600])
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found = measure(given.samples, given.sweeps, given.side)
    record = {
        "samples": given.samples,
        "nodes_per_side": given.side,
        "relative_l2": found,
    }
    write_record(given.out, record)


if __name__ == "__main__":
    main()
