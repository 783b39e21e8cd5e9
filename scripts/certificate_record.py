"""Certificates of many predictions beside their true errors.

python scripts/certificate_record.py --pairs 10000 --out results/certificate.json

The true solutions are by sparse elimination, refined with residuals in extended precision, so that
errors of 1e-12 are known too. Nothing of the library is used for them.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from records import write_record

from twoscale import Certificate, Darcy, Poisson, Problem, certify

CONTRASTS = (3, 10, 100, 1000)
MEDIA = ("two-phase", "smooth", "rough")
LARGEST = 64  # nodes per side
Array = np.ndarray


@dataclass(frozen=True)
class Equation:
    """-div(a grad u) = f on a grid, with its solution at all nodes in extended precision."""

    a: Array
    f: Array
    solution: Array

    @classmethod
    def solved(cls, a: Array, f: Array) -> Equation:
        exact = a.astype(np.longdouble)
        right_side = f[1:-1, 1:-1].astype(np.longdouble)
        factors = scipy.sparse.linalg.splu(matrix(a).tocsc())
        solution = np.zeros(a.shape, dtype=np.longdouble)
        for _ in range(4):
            left = right_side - applied(exact, solution)
            step = factors.solve(left.astype(np.float64).ravel())
            solution[1:-1, 1:-1] += step.reshape(left.shape)
        return cls(exact, f, solution)

    def norm(self, field: Array) -> np.longdouble:
        """Return h sqrt(v'Av) of the interior values of a field."""
        inside = np.pad(field[1:-1, 1:-1], 1)
        rows, columns = (np.longdouble(1) / (side - 1) for side in field.shape)
        product = (inside[1:-1, 1:-1] * applied(self.a, inside)).sum()
        return np.sqrt(rows * columns * product)


def faces(a: Array) -> tuple[Array, Array]:
    """Return a between neighbours in a column and in a row: its mean by the squared spacing."""
    height, width = a.shape
    down = (a[1:, 1:-1] + a[:-1, 1:-1]) / 2 * (height - 1) ** 2
    right = (a[1:-1, 1:] + a[1:-1, :-1]) / 2 * (width - 1) ** 2
    return down, right


def applied(a: Array, u: Array) -> Array:
    """Return -div(a grad u) at the interior nodes, in the precision of u."""
    down, right = faces(a)
    here = u[1:-1, 1:-1]
    return (
        down[1:] * (here - u[2:, 1:-1])
        + down[:-1] * (here - u[:-2, 1:-1])
        + right[:, 1:] * (here - u[1:-1, 2:])
        + right[:, :-1] * (here - u[1:-1, :-2])
    )


def matrix(a: Array) -> Any:
    """Return the sparse matrix of the interior nodes, row by row."""
    down, right = faces(a)
    number = np.arange((a.shape[0] - 2) * (a.shape[1] - 2)).reshape(a.shape[0] - 2, -1)
    diagonal = down[1:] + down[:-1] + right[:, 1:] + right[:, :-1]
    pairs = [
        (number[1:], number[:-1], down[1:-1]),
        (number[:, 1:], number[:, :-1], right[:, 1:-1]),
    ]
    rows = np.concatenate([number.ravel()] + [one.ravel() for x, y, _ in pairs for one in (x, y)])
    columns = np.concatenate([number.ravel()] + [o.ravel() for x, y, _ in pairs for o in (y, x)])
    values = np.concatenate([diagonal.ravel()] + [-w.ravel() for *_, w in pairs for _ in range(2)])
    return scipy.sparse.coo_array((values, (rows, columns)), shape=(number.size, number.size))


def smoothed(noise: Array) -> Array:
    """Return noise without its short waves."""
    spectrum = np.fft.fft2(noise)
    waves = [np.fft.fftfreq(side) * side for side in noise.shape]
    return np.fft.ifft2(spectrum / (1 + waves[0][:, None] ** 2 + waves[1] ** 2)).real


def medium(rng: np.random.Generator, shape: tuple[int, int], kind: str, contrast: float) -> Array:
    """Return a coefficient between a least value and `contrast` times as much."""
    noise = rng.standard_normal(shape)
    level = noise if kind == "rough" else smoothed(noise)
    if kind == "smooth":
        level = (level - level.min()) / (level.max() - level.min())
    else:
        level = (level >= np.median(level)).astype(float)
    return 10.0 ** rng.uniform(-2, 2) * contrast**level


PREDICTIONS: dict[str, Callable[[np.random.Generator, Equation], Array]] = {
    "noise": lambda rng, one: rng.standard_normal(one.f.shape),
    "smooth error": lambda rng, one: _off(rng, one, smoothed(rng.standard_normal(one.f.shape))),
    "rough error": lambda rng, one: _off(rng, one, rng.standard_normal(one.f.shape)),
    "one mode": lambda rng, one: _off(rng, one, _mode(rng, one.f.shape)),
    "spike": lambda rng, one: _off(rng, one, _spike(rng, one.f.shape)),
    "error in the low phase": lambda rng, one: _off(rng, one, _phase(rng, one, low=True)),
    "error in the high phase": lambda rng, one: _off(rng, one, _phase(rng, one, low=False)),
    "scaled solution": lambda rng, one: (rng.uniform(-1, 3) * one.solution).astype(float),
    "zero": lambda rng, one: np.zeros(one.f.shape),
    "solution in float32": lambda rng, one: one.solution.astype(np.float32),
    "error of 1e-12": lambda rng, one: _off(rng, one, rng.standard_normal(one.f.shape), size=1e-12),
    "solution in float64": lambda rng, one: one.solution.astype(float),
}
"""Predictions by name: from noise to the solution itself, which only rounding separates from it."""


def _off(rng: np.random.Generator, one: Equation, error: Array, size: float | None = None) -> Array:
    """Return the solution plus an error of a relative size, 1e-6 to 1 by default."""
    size = 10.0 ** rng.uniform(-6, 0) if size is None else size
    scale = size * np.linalg.norm(one.solution.astype(float)) / max(np.linalg.norm(error), 1e-300)
    return (one.solution + scale * error).astype(float)


def _mode(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Return an eigenvector of the Laplacian."""
    waves = [np.sin(np.pi * rng.integers(1, n - 1) * np.arange(n) / (n - 1)) for n in shape]
    return np.outer(*waves)


def _spike(rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    spike = np.zeros(shape)
    spike[tuple(rng.integers(1, side - 1) for side in shape)] = 1.0
    return spike


def _phase(rng: np.random.Generator, one: Equation, *, low: bool) -> Array:
    """Return an error where the coefficient is low, or where it is high."""
    inside = (one.a <= np.median(one.a)) == low
    return np.where(inside, smoothed(rng.standard_normal(one.f.shape)), 0.0)


@dataclass(frozen=True)
class Trial:
    """Predictions of all kinds of one equation, their certificate and their true errors."""

    certificate: Certificate
    errors: Array  # energy norms
    size: float  # energy norm of the solution
    plain: Array  # upper bounds by the least coefficient alone

    def violations(self) -> int:
        """Return how many predictions have a bound on the wrong side."""
        found = self.certificate
        relative = self.errors / self.size
        wrong = found.energy_error_lower > self.errors
        wrong |= found.energy_error_upper < self.errors
        wrong |= found.relative_error_lower > relative
        wrong |= found.relative_error_upper < relative
        return int(wrong.sum())

    def ratios(self) -> Array:
        """Return upper / error, error / lower and the plain upper / error of each prediction.

        NaN stands for errors below 1e-9 of the solution, where rounding decides.
        """
        bounds, errors = self.certificate, np.maximum(self.errors, 1e-300)
        found = (
            bounds.energy_error_upper / errors,
            errors / np.maximum(bounds.energy_error_lower, 1e-300),
            self.plain / errors,
        )
        known = self.errors > 1e-9 * self.size
        return np.where(known[:, None], np.stack(found, 1), np.nan).astype(float)


def trial(rng: np.random.Generator, shape: tuple[int, int], contrast: float, kind: str) -> Trial:
    """Certify a prediction of each kind; contrast 1 is Poisson's equation."""
    problem: Problem
    if contrast == 1:
        f = rng.standard_normal(shape)
        a, given, problem = np.ones(shape), -f, Poisson()
    else:
        a, f = medium(rng, shape, kind, contrast), np.ones(shape)
        given, problem = a, Darcy()
    one = Equation.solved(a, f)
    predictions = [make(rng, one).astype(float) for make in PREDICTIONS.values()]
    certificate = certify(np.stack(predictions), np.stack([given] * len(predictions)), problem)
    errors = np.array([one.norm(one.solution - field) for field in predictions])
    plain = _by_least_coefficient(one, predictions)
    return Trial(certificate, errors, one.norm(one.solution), plain)


def _by_least_coefficient(one: Equation, fields: list[Array]) -> Array:
    """Return h sqrt(r'L^-1 r / least a) of predictions: what the least coefficient gives."""
    height, width = one.f.shape
    laplacian = scipy.sparse.linalg.splu(matrix(np.ones(one.f.shape)).tocsc())
    down, right = (face.min() for face in faces(one.a.astype(float)))
    least = min(down / (height - 1) ** 2, right / (width - 1) ** 2)
    bounds = []
    for field in fields:
        inside = np.pad(field[1:-1, 1:-1], 1)
        left = (one.f[1:-1, 1:-1] - applied(one.a.astype(float), inside)).ravel()
        dual = left @ laplacian.solve(left)
        bounds.append(np.sqrt(max(dual, 0.0) / least / (height - 1) / (width - 1)))
    return np.array(bounds)


def trials(pairs: int, seed: int) -> Iterator[tuple[int, Trial]]:
    """Yield trials with their contrasts until there are so many pairs."""
    for number in range(-(-pairs // len(PREDICTIONS))):
        rng = np.random.default_rng([seed, number])
        contrast = (1, *CONTRASTS)[number % (1 + len(CONTRASTS))]
        side = rng.integers(3, LARGEST + 1)
        other = side if rng.random() < 0.5 else rng.integers(3, LARGEST + 1)
        yield contrast, trial(rng, (int(side), int(other)), contrast, rng.choice(MEDIA))


def measure(pairs: int, seed: int) -> dict[str, Any]:
    """Return the record: violations, and how far bounds are from the true errors."""
    done = violations = 0
    ratios: dict[int, list[Array]] = defaultdict(list)
    for contrast, one in trials(pairs, seed):
        done += len(one.errors)
        violations += one.violations()
        ratios[contrast].append(one.ratios())
        if done % 1200 == 0:
            print(f"{done} pairs, {violations} violations", flush=True)
    return {
        "pairs": done,
        "violations": violations,
        "largest_grid": f"{LARGEST}x{LARGEST}",
        "contrasts": {
            str(contrast): _summary(np.stack(found, 1))
            for contrast, found in sorted(ratios.items())
        },
    }


def _summary(ratios: Array) -> dict[str, Any]:
    """Return means of ratios (kinds of predictions, trials, 3) over those that are not NaN."""
    upper, lower, plain = (ratios[..., place] for place in range(3))
    measured = ~np.isnan(upper).all(1)
    return {
        "pairs": int(np.isfinite(upper).sum()),
        "mean_overestimate": float(np.nanmean(upper)),
        "largest_overestimate": float(np.nanmax(upper)),
        "mean_underestimate": float(np.nanmean(lower)),
        "mean_overestimate_by_least_coefficient": float(np.nanmean(plain)),
        "mean_overestimate_by_kind": {
            kind: float(np.nanmean(values))
            for kind, values, known in zip(PREDICTIONS, upper, measured, strict=True)
            if known
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    write_record(given.out, measure(given.pairs, given.seed), show=True)


if __name__ == "__main__":
    main()
