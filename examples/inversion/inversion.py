"""Recover a Darcy permeability from noisy values of the pressure at 169 points.

python examples/inversion/inversion.py --out results/inversion.json --figure inversion.png

A surrogate is fitted and served. The inversion asks it through UM-Bridge's client, as any other
program would: values and gradients for the most probable medium, the Jacobian for the proposals,
values for a chain of Metropolis steps with delayed acceptance. There the surrogate screens the
proposals, and the exact solver decides on those that are left.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import umbridge
from chains import Chain, Reference, delayed_acceptance, metropolis
from scipy.optimize import minimize

from twoscale import Darcy, Grid, Surrogate
from twoscale.domain.space import Space
from twoscale.files import write_json
from twoscale.serve import ServedModel, Server
from twoscale.serve.mappings import KarhunenLoeve, points_from
from twoscale.surrogate.artifact import environment

Array = np.ndarray


@dataclass(frozen=True)
class Setup:
    """Sizes of the experiment; the defaults are those of the record."""

    side: int = 32  # nodes per side
    coefficients: int = 32  # unknowns
    width: float = 0.3  # of the step between both phases, in standard deviations of the field
    points: int = 13  # measured points per side
    noise: float = 0.05  # standard deviation of an error, relative to the mean pressure
    training: int = 2000  # media that the surrogate is fitted on
    steps: int = 10_000  # of the exact chain; the other one has as many steps of the surrogate
    subchain: int = 10  # steps of the surrogate between two decisions of the exact solver
    burn_in: float = 0.1  # share of a chain that is dropped
    move: float = 0.35  # size of proposals: 0 stays, 1 draws from the reference
    seed: int = 0


SMALL = Setup(side=12, coefficients=4, points=4, training=80, steps=40, subchain=4)


class Exact:
    """The equation itself: coefficients of the random field to values at the points."""

    def __init__(self, setup: Setup) -> None:
        self.problem, grid = Darcy(), Grid.square(setup.side)
        self.field = KarhunenLoeve(Space(grid), self.problem, setup.coefficients, width=setup.width)
        self.points = points_from(f"{setup.points}x{setup.points}", grid)
        self.solves = 0

    def media(self, coefficients: Array) -> torch.Tensor:
        """Return permeabilities (n, height, width) of coefficients (n, k)."""
        return self.field([torch.from_numpy(np.atleast_2d(coefficients))]).fields[:, 0]

    def __call__(self, coefficients: Array) -> Array:
        """Return the pressure at the points, for one set of coefficients."""
        self.solves += 1
        pressure = self.problem.solve(self.media(coefficients))
        return self.points(pressure[:, None])[0].numpy()


def fitted(setup: Setup, exact: Exact) -> tuple[Surrogate, dict[str, Any]]:
    """Return a surrogate fitted on media of the same distribution, and what it cost."""
    rng = np.random.default_rng((setup.seed, 1))
    start = time.perf_counter()
    tests = max(20, setup.training // 10)
    media = exact.media(rng.standard_normal((setup.training + tests, setup.coefficients)))
    pressure = exact.problem.solve(media)
    surrogate = Surrogate(
        "two-scale",
        predictor="kernel",
        input_variance=0.9999,
        problem=exact.problem,
        device="cpu",
    )
    surrogate.fit(media[:-tests], pressure[:-tests])
    seconds = time.perf_counter() - start
    error = surrogate.evaluate(media[-tests:], pressure[-tests:])["mean_relative_l2"]
    return surrogate, {"training": setup.training, "seconds": seconds, "mean_relative_l2": error}


@dataclass(frozen=True)
class Posterior:
    """Potentials of coefficients x: minus the log of their posterior density."""

    data: Array  # measured pressure
    deviation: float  # of its errors

    def potential(self, values: Array, x: Array) -> float:
        """Return ||(values - data) / deviation||² / 2 + ||x||² / 2."""
        misfit = (values - self.data) / self.deviation
        return 0.5 * float(misfit @ misfit + x @ x)

    def most_probable(self, model: umbridge.HTTPModel, start: Array) -> tuple[Array, int]:
        """Return the coefficients of least potential (MAP), and how many gradients it took."""

        def value_and_gradient(x: Array) -> tuple[float, Array]:
            values = np.array(model([x.tolist()])[0])
            sens = (values - self.data) / self.deviation**2
            gradient = model.gradient(0, 0, [x.tolist()], sens.tolist())
            return self.potential(values, x), np.array(gradient) + x

        found = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B")
        return found.x, int(found.nfev)

    def reference(self, model: umbridge.HTTPModel, x: Array) -> Reference:
        """Return the Gaussian that fits the posterior at x: its precision is I + J'J / s²."""
        directions = np.eye(len(x))
        columns = [model.apply_jacobian(0, 0, [x.tolist()], one.tolist()) for one in directions]
        jacobian = np.array(columns).T / self.deviation
        return Reference(x, np.eye(len(x)) + jacobian.T @ jacobian)


def run(setup: Setup) -> dict[str, Any]:
    """Return the record of the whole experiment, fields included."""
    exact = Exact(setup)
    surrogate, cost = fitted(setup, exact)
    rng = np.random.default_rng((setup.seed, 2))
    truth = rng.standard_normal(setup.coefficients)
    clean = exact(truth)
    deviation = setup.noise * float(np.abs(clean).mean())
    posterior = Posterior(clean + deviation * rng.standard_normal(clean.shape), deviation)
    served = ServedModel(
        surrogate,
        inputs=f"kl:{setup.coefficients},width={setup.width}",
        points=f"{setup.points}x{setup.points}",
    )
    with Server([served], port=0) as server:
        model = umbridge.HTTPModel(server.url, "forward")
        best, gradients = posterior.most_probable(model, np.zeros(setup.coefficients))
        reference = posterior.reference(model, best)
        chains = _chains(setup, posterior, reference, exact, model)
    record = {
        "setup": asdict(setup),
        "observations": len(clean),
        "surrogate": cost,
        "map": {
            "gradients": gradients,
            "medium_error": _relative(exact.media(best), exact.media(truth)),
        },
        "chains": {name: _chain_record(chain) for name, chain in chains.items()},
    }
    fields = _fields(setup, exact, truth, best, chains)
    record["agreement"] = _agreement(fields)
    record["saved"] = _saved(record)
    record["fields"] = {name: np.round(one, 4) for name, one in fields.items()}
    return record | {"environment": environment(torch.device("cpu"))}


def _chains(
    setup: Setup, posterior: Posterior, reference: Reference, exact: Exact, model: Any
) -> dict[str, Chain]:
    """Return a chain of exact solves, and one with delayed acceptance of as many steps."""

    def potential(values: Callable[[Array], Array]) -> Callable[[Array], float]:
        return lambda x: posterior.potential(values(x), x) - reference.potential(x)

    true = potential(exact)
    screen = potential(lambda x: np.array(model([x.tolist()])[0]))
    made = {}
    for number, name in enumerate(("exact", "delayed")):
        rng = np.random.default_rng((setup.seed, 3, number))
        before, start = exact.solves, time.perf_counter()
        if name == "exact":
            chain = metropolis(true, reference, setup.steps, setup.move, rng)
        else:
            steps = setup.steps // setup.subchain
            chain = delayed_acceptance(
                true, screen, reference, steps, setup.subchain, setup.move, rng
            )
        made[name] = replace(
            chain.without_start(setup.burn_in),
            solves=exact.solves - before,
            seconds=time.perf_counter() - start,
        )
    return made


def _chain_record(chain: Chain) -> dict[str, Any]:
    return {
        "samples": len(chain.samples),
        "accepted": chain.accepted,
        "exact_solves": chain.solves,
        "effective_samples": chain.effective_samples,
        "solves_per_effective_sample": chain.solves / chain.effective_samples,
        "seconds": chain.seconds,
    }


def _fields(
    setup: Setup, exact: Exact, truth: Array, best: Array, chains: dict[str, Chain]
) -> dict[str, Array]:
    fields = {"truth": exact.media(truth)[0].numpy(), "map": exact.media(best)[0].numpy()}
    for name, chain in chains.items():
        media = exact.media(chain.samples).numpy()
        fields |= {f"{name} mean": media.mean(0), f"{name} sd": media.std(0)}
    return fields


def _agreement(fields: dict[str, Array]) -> dict[str, float]:
    """Return how far both chains are from each other, and from the truth."""
    spread = np.linalg.norm(fields["exact sd"])
    mean = np.linalg.norm(fields["delayed mean"] - fields["exact mean"])
    return {
        "mean_difference_in_sd": float(mean / spread),
        "sd_difference": _relative(fields["delayed sd"], fields["exact sd"]),
        "mean_error_of_medium": _relative(fields["delayed mean"], fields["truth"]),
        "exact_mean_error_of_medium": _relative(fields["exact mean"], fields["truth"]),
    }


def _saved(record: dict[str, Any]) -> dict[str, float]:
    """Return the exact solves for as many effective samples as the delayed chain has."""
    exact, delayed = (record["chains"][name] for name in ("exact", "delayed"))
    needed = exact["solves_per_effective_sample"] * delayed["effective_samples"]
    return {
        "needed_without_surrogate": needed,
        "used": delayed["exact_solves"],
        "saved": needed - delayed["exact_solves"],
        "training": record["surrogate"]["training"],
    }


def _relative(found: Any, expected: Any) -> float:
    one, other = np.asarray(found), np.asarray(expected)
    return float(np.linalg.norm(one - other) / np.linalg.norm(other))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--noise", type=float, default=Setup.noise, help="relative, 0.05")
    parser.add_argument("--steps", type=int, default=Setup.steps, help="10000")
    parser.add_argument("--small", action="store_true", help="a few seconds, for a look")
    given = parser.parse_args()
    warnings.simplefilter("ignore", UserWarning)
    record = run(SMALL if given.small else Setup(noise=given.noise, steps=given.steps))
    sizes = "--small" if given.small else f"--noise {given.noise:g} --steps {given.steps}"
    command = f"python examples/inversion/inversion.py {sizes} --out {given.out}"
    write_json(given.out, {"command": command, **record})
    if given.figure is not None:
        from picture import draw

        draw(given.out, given.figure)
    for name in ("surrogate", "map", "chains", "agreement", "saved"):
        print(name, record[name])


if __name__ == "__main__":
    main()
