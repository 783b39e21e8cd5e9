"""The pictures of the page on trust: radii beside errors, and inputs that are flagged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from twoscale import Darcy, Surrogate
from twoscale.domain.grid import Grid
from twoscale.fields.source import Batch
from twoscale.math.measures import Compared
from twoscale.problems.random_field import GaussianRandomField
from twoscale.report.axes import panels, shared_legend
from twoscale.report.method_looks import colour
from twoscale.report.run_trust import Radii, measure_trust
from twoscale.report.trust_charts import draw_errors, draw_reliability

SIDE = 32
TRAINING, CALIBRATION, FRESH = 600, 400, 400


def darcy_fields() -> tuple[Tensor, Tensor]:
    """Return media and solutions of Darcy problems, (samples, side, side), float32."""
    problem = Darcy()
    count = TRAINING + CALIBRATION + FRESH
    media, solutions = problem.pairs(Grid((SIDE, SIDE)), range(count), seed=0)
    return media.float(), solutions.float()


def fitted(predictor: str, problem: Darcy | None, x: Tensor, u: Tensor) -> Surrogate:
    """Return a calibrated surrogate of the first fields."""
    surrogate = Surrogate("two-scale", predictor=predictor, problem=problem, device="cpu")
    known = slice(TRAINING, TRAINING + CALIBRATION)
    return surrogate.fit(x[:TRAINING], u[:TRAINING], calibration=(x[known], u[known]))


def radii_of(surrogate: Surrogate, x: Tensor, u: Tensor) -> Radii:
    """Return errors and radii of the last fields."""
    inputs, truth = x[-FRESH:, None], u[-FRESH:, None]
    predicted = surrogate.predict_batch(Batch.of(inputs))
    known = measure_trust(surrogate, [Compared(predicted.double(), truth.double(), inputs)])
    assert known is not None
    assert known.radii is not None
    return known.radii


def trust_radii() -> Figure:
    """Draw how often radii hold, and errors against radii with and without the equation."""
    x, u = darcy_fields()
    cases = {"affine": ("affine", Darcy()), "kernel": ("kernel", Darcy())}
    runs = {name: radii_of(fitted(*case, x, u), x, u) for name, case in cases.items()}
    without = radii_of(fitted("kernel", None, x, u), x, u)
    figure, (share, known, unknown) = panels(3, width=3.0, height=3.0)
    looks = {"affine": colour("global"), "kernel": colour("two-scale")}
    draw_reliability(share, runs, looks)
    share.set_title("two predictors, Darcy")
    for axis, radii, words in ((known, runs["kernel"], "with"), (unknown, without, "without")):
        draw_errors(axis, radii, torch.zeros(FRESH, dtype=torch.bool).numpy())
        axis.set_title(f"kernel, {words} the equation")
    shared_legend(figure, [share, known])
    return figure


def trust_flags(show: Callable[[Axes, Tensor, str], None]) -> Figure:
    """Draw an input that is known and three that are flagged, with their distances."""
    x, u = darcy_fields()
    surrogate = fitted("affine", Darcy(), x, u)
    usual = x[-1]
    problem, grid = Darcy(), Grid((SIDE, SIDE))
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(usual.shape, generator=generator)
    rough = replace(problem, medium=GaussianRandomField(tau=20.0))
    fields = {
        "like the training": usual,
        "finer structure": rough.sample(grid, [0], seed=1)[0].float(),
        "other contrast": 8 + 1.5 * (usual - 8),
        "noise of 20 %": usual + 0.2 * usual.std() * noise,
    }
    figure, axes = panels(4, width=1.95, height=2.2, columns=4)
    for axis, (words, field) in zip(axes, fields.items(), strict=True):
        flags = surrogate.flag(field[None])
        largest = max(float(one.max()) for one in (flags.roughness, flags.code, flags.values))
        verdict = "outside" if flags.outside[0] else "known"
        distance = f"{largest:.2g}" if largest < 1000 else "above 1000"
        show(axis, field, f"{words}\n{verdict}: {distance}")
        axis.images[0].set_clim(2, 14)
    return figure
