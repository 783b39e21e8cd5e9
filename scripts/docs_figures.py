"""Draw the pictures of the documentation's concept pages and of its gallery, by the library itself.

Run in the repository's root: `python scripts/docs_figures.py [NAME ...]`. It takes about a minute.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor
from trust_pictures import trust_flags, trust_radii

from twoscale import (
    Affine,
    Conforming,
    Darcy,
    GlobalPCA,
    PatchPCA,
    Poisson,
    Surrogate,
    TwoScale,
    certify,
    polish,
)
from twoscale.domain.grid import Grid
from twoscale.domain.patches import Seams
from twoscale.math.measures import Compared, relative_l2
from twoscale.report.axes import chart_style, log_axis, panels, shared_legend
from twoscale.report.method_looks import TRUTH, colour, marker, method_title
from twoscale.representation import Representation
from twoscale.trust.energy import EnergyNorm
from twoscale_lab.report.charts import draw as draw_chart
from twoscale_lab.report.charts.leaderboard import standings_chart
from twoscale_lab.report.results import read_study
from twoscale_lab.study.folder import read_records
from twoscale_lab.study.leaderboard.board import standings

IMAGES = Path("docs/images")
GALLERY = Path("docs/gallery.md")
SIDE = 64
PATCHES = (4, 4)
_MAP, _SIGNED = "viridis", "RdBu_r"
_LINE = {"color": "black", "linewidth": 0.6, "alpha": 0.45}


def poisson_fields() -> tuple[Tensor, Tensor]:
    """Return inputs and solutions of 1,200 Poisson problems, (samples, 1, side, side), float32."""
    problem = Poisson()
    inputs = problem.sample(Grid((SIDE, SIDE)), range(1200), seed=0)
    return inputs[:, None].float(), problem.solve(inputs)[:, None].float()


def show(
    axis: Axes, field: Tensor | np.ndarray, title: str, *, signed: bool = False, seams: bool = False
) -> None:
    """Draw one field (height, width); a signed one with white at zero."""
    values = np.asarray(field)
    limit = float(np.abs(values).max())
    bounds = {"vmin": -limit, "vmax": limit} if signed else {}
    axis.imshow(values, cmap=_SIGNED if signed else _MAP, origin="lower", **bounds)
    axis.set_title(title)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set_visible(False)
    if seams:
        _mark(axis, Grid(values.shape).partition(PATCHES).seams)


def _mark(axis: Axes, seams: Seams) -> None:
    for place in seams.rows:
        axis.axhline(place - 0.5, **_LINE)
    for place in seams.columns:
        axis.axvline(place - 0.5, **_LINE)


def relative_error(decoded: Tensor, fields: Tensor) -> float:
    """Return the relative L2 error of some fields, all samples together."""
    return float(relative_l2(Compared(decoded, fields)))


def pipeline() -> Figure:
    """Draw the three parts on one sample: input, its code, the predicted code, the output."""
    x, u = poisson_fields()
    parts = {"inputs": PatchPCA(0.99), "predictor": Affine(), "outputs": _two_scale()}
    surrogate = Surrogate(**parts).fit(x[:-1], u[:-1])
    operator = surrogate.operator_
    codes = [operator.inputs.encode(x[-1:])[0], operator.outputs.encode(u[-1:])[0]]
    figure, axes = panels(5, width=1.6, height=1.8, columns=5)
    show(axes[0], x[-1, 0], "input\nfield")
    for axis, code, name in zip(axes[1:3], codes, ("input", "output"), strict=True):
        axis.bar(range(len(code)), code, width=1.0, color=colour("two-scale"))
        axis.set_title(f"{name} code\n{len(code)} numbers")
        axis.set_xticks([])
        axis.set_yticks([])
    predicted = surrogate.predict(x[-1:])
    error = relative_error(predicted, u[-1:])
    show(axes[3], predicted[0, 0], "predicted\nfield")
    show(axes[4], (predicted - u[-1:])[0, 0], f"error\n{100 * error:.2f} %", signed=True)
    return figure


def two_scale_parts() -> Figure:
    """Draw one field as the coarse part and the patches' residual, and what is left over."""
    _, u = poisson_fields()
    chain = _two_scale().fit(u[:-1])
    codes = chain.encode(u[-1:])
    first, second = (stage for stage in chain.stages.values())
    coarse, fine = codes.split([first.code_size, second.code_size], dim=1)
    parts = [u[-1:], first.decode(coarse), second.decode(fine), u[-1:] - chain.decode(codes)]
    titles = [
        "field\n",
        f"coarse part\n{first.code_size} numbers",
        f"patches' part\n{second.code_size} numbers",
        f"left over\n{100 * relative_error(u[-1:] - parts[3], u[-1:]):.2f} %",
    ]
    figure, axes = panels(4, width=1.95, height=2.1, columns=4)
    for place, (axis, part, title) in enumerate(zip(axes, parts, titles, strict=True)):
        show(axis, part[0, 0], title, signed=place > 1, seams=place > 1)
    return figure


def modes() -> Figure:
    """Draw the first modes of one PCA of whole fields and of a PCA of each patch."""
    _, u = poisson_fields()
    whole, patches = GlobalPCA(6).fit(u), PatchPCA(1, patches=PATCHES).fit(u)
    figure, axes = panels(5, width=1.6, height=1.8, columns=5)
    for place in range(4):
        show(axes[place], _mode(whole, [place]), f"whole field\nmode {place + 1}", signed=True)
    show(axes[4], _mode(patches, range(16)), "patches\nmode 1 of each", signed=True, seams=True)
    return figure


def _mode(representation: Representation, places: Sequence[int]) -> Tensor:
    """Return what units of some numbers of the code add to the decoded field."""
    codes = torch.zeros(2, representation.code_size)
    codes[1, list(places)] = 1.0
    decoded = representation.decode(codes)
    return (decoded[1] - decoded[0])[0]


def oracle_code_length() -> Figure:
    """Draw the oracle error of four representations against the length of their codes."""
    _, u = poisson_fields()
    training, held_out = u[:1000], u[1000:]
    figure, (axis,) = panels(1, width=5.2, height=3.4)
    for name, points in _oracles().items():
        lengths, errors = [], []
        for representation in points:
            fitted = representation.fit(training)
            lengths.append(fitted.code_size)
            errors.append(100 * relative_error(_roundtrip(fitted, held_out), held_out))
        look = {"color": colour(name), "marker": marker(name), "label": method_title(name)}
        axis.plot(lengths, errors, **look)
    axis.set_xlabel("numbers in the code")
    axis.set_ylabel("oracle error, %")
    lines = axis.get_lines()
    log_axis(axis, "x", [value for line in lines for value in line.get_xdata()])
    log_axis(axis, "y", [value for line in lines for value in line.get_ydata()])
    shared_legend(figure, [axis])
    return figure


def _oracles() -> dict[str, list[Representation]]:
    sizes = (48, 96, 192, 384)
    return {
        "global": [GlobalPCA(size) for size in sizes],
        "local": [PatchPCA(size // 16, patches=PATCHES) for size in sizes],
        "two-scale": [_two_scale(code_size=size) for size in sizes],
        "conforming": [Conforming(patches=PATCHES, code_size=size) for size in sizes],
    }


def _two_scale(**options: Any) -> TwoScale:
    return TwoScale(patches=PATCHES, few_features=False, **options)


def seams() -> Figure:
    """Draw the errors of three representations of one field, and the same along one row."""
    _, u = poisson_fields()
    field = u[-1:]
    parts = {
        "local": PatchPCA(0.99, patches=PATCHES),
        "overlap": PatchPCA(0.99, patches=PATCHES, overlap=True),
        "two-scale": _two_scale(),
    }
    decoded = {name: _roundtrip(part.fit(u[:-1]), field) for name, part in parts.items()}
    figure, axes = panels(4, width=1.95, height=2.2, columns=4)
    for axis, (name, one) in zip(axes, decoded.items(), strict=False):
        error = 100 * relative_error(one, field)
        show(axis, (one - field)[0, 0], f"{method_title(name)}\n{error:.2f} %", signed=True)
        _mark(axis, Grid((SIDE, SIDE)).partition(PATCHES).seams)
    row = SIDE // 2 - 8
    for name, one in decoded.items():
        error = (one - field)[0, 0, row]
        axes[3].plot(error, color=colour(name), linewidth=1.2, label=method_title(name))
    for place in Grid((SIDE, SIDE)).partition(PATCHES).seams.columns:
        axes[3].axvline(place - 0.5, **_LINE)
    axes[3].set_title("errors along\none row")
    axes[3].set_xticks([])
    axes[3].set_yticks([])
    shared_legend(figure, [axes[3]])
    return figure


def _roundtrip(representation: Representation, fields: Tensor) -> Tensor:
    return representation.decode(representation.encode(fields))


def learning_curves() -> Figure:
    """Draw learned and oracle errors against the number of training fields, from the records."""
    study = read_study(Path("results/study/sample-efficiency.json"))
    shown = study.select(["* local*", "* overlap*", "* two-scale*"], {"objective": None})
    chart = draw_chart("curves", shown, {"x": "training", "quantities": ["mre"], "oracle": True})
    return chart.figure


def leaderboard() -> Figure:
    """Draw published errors of others, and ours as far as the records have them."""
    return standings_chart(standings(read_records(Path("results/study"))))


def certificate() -> Figure:
    """Draw proven bounds against true errors for three contrasts, and errors while polishing."""
    figure, (bounds, steps) = panels(2, width=3.9, height=3.3)
    looks = {3: "two-scale", 30: "local", 300: "global"}
    for contrast, look in looks.items():
        problem = Darcy(high=float(contrast), low=1.0)
        media = problem.sample(Grid((SIDE, SIDE)), range(500), seed=0)
        solutions = problem.solve(media)
        surrogate = Surrogate("two-scale", predictor="affine", problem=problem, device="cpu")
        surrogate.fit(media[:470], solutions[:470])
        tested, truth = media[470:], solutions[470:]
        predicted = surrogate.predict(tested)
        for place, taken in enumerate((0, 3, 6)):
            fields = polish(predicted, tested, problem, steps=taken).fields if taken else predicted
            label = f"contrast {contrast}" if not place else None
            _draw_bounds(bounds, problem, (tested, truth), fields, color=colour(look), label=label)
        if contrast == min(looks):
            _draw_steps(steps, problem, tested, predicted)
    lowest, highest = bounds.get_xlim()
    bounds.plot([lowest, highest], [lowest, highest], color="black", linewidth=0.6, zorder=1.5)
    bounds.set_xlabel("true error in the energy norm")
    bounds.set_ylabel("proven: ▲ at most, ▼ at least")
    shared_legend(figure, [bounds, steps])
    return figure


def _draw_bounds(
    axis: Axes, problem: Darcy, pairs: tuple[Tensor, Tensor], fields: Tensor, **look: Any
) -> None:
    media, truth = pairs
    norm = EnergyNorm(problem.system(media))
    inside = (slice(None), slice(1, -1), slice(1, -1))
    true = norm((truth - fields)[inside])
    found = certify(fields, media, problem)
    options = {"s": 14, "linewidths": 0, "alpha": 0.7, "color": look["color"]}
    axis.scatter(true, found.energy_error_upper, marker="^", label=look["label"], **options)
    axis.scatter(true, found.energy_error_lower, marker="v", **options)
    axis.set_xscale("log")
    axis.set_yscale("log")


def _draw_steps(axis: Axes, problem: Darcy, media: Tensor, predicted: Tensor) -> None:
    """Draw the largest proven error of some fields after steps from two starts."""
    for name, start in (("prediction", predicted), ("zero", torch.zeros_like(predicted))):
        found = [certify(start, media, problem)]
        found += [polish(start, media, problem, steps=k).certificate for k in range(1, 9)]
        errors = [one.relative_error_upper.max() for one in found]
        style = "-" if name == "prediction" else "--"
        axis.plot(range(9), errors, style, color=colour("two-scale"), label=f"from {name}")
    axis.set_yscale("log")
    axis.set_xlabel("steps of polishing, contrast 3")
    axis.set_ylabel("largest proven relative error")


def gallery(only: Sequence[str] = ()) -> dict[str, Figure]:
    """Draw a picture for each section of the gallery, from what the section's Python lines make.

    They leave `x`, `u` and `predicted` behind: inputs, solutions and predictions of test samples.
    """
    drawn = {}
    for section in GALLERY.read_text(encoding="utf-8").split("\n## ")[1:]:
        (name,) = re.findall(r"images/(gallery-[\w-]+)\.png", section)
        if only and name not in only:
            continue
        names: dict[str, Any] = {"__name__": "gallery"}
        for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
            with tempfile.TemporaryDirectory() as folder, chdir(folder):
                exec(block, names)
        with chart_style():
            drawn[name] = _sample(*(names[key] for key in ("x", "u", "predicted")))
    return drawn


def _sample(x: np.ndarray, u: np.ndarray, predicted: np.ndarray) -> Figure:
    """Draw the sample with the median error: inputs, truth, prediction, error."""
    x, u, predicted = (np.asarray(fields) for fields in (x, u, predicted))
    errors = np.sqrt(((predicted - u) ** 2).reshape(len(u), -1).sum(1))
    errors /= np.sqrt((u**2).reshape(len(u), -1).sum(1))
    sample = int(np.argsort(errors)[len(errors) // 2])
    words = f"error: {100 * errors[sample]:.2g} %"
    if u.ndim == 2:
        return _lines(x[sample], u[sample], predicted[sample], words)
    given = list(x[sample] if x.ndim == 4 else x[sample][None])
    made = zip(_channels(u[sample]), _channels(predicted[sample]), strict=True)
    fields = [
        (one, "input" if len(given) == 1 else f"input {k + 1}") for k, one in enumerate(given)
    ]
    signed = []
    for truth, ours in made:
        fields += [(truth, "truth"), (ours, "prediction")]
        signed.append((ours - truth, words))
    figure, axes = panels(len(fields) + len(signed), width=1.95, height=2.0, columns=5)
    for axis, (field, title) in zip(axes, fields, strict=False):
        show(axis, field, title)
    for axis, (field, title) in zip(axes[len(fields) :], signed, strict=True):
        show(axis, field, title, signed=True)
    return figure


def _channels(field: np.ndarray) -> list[np.ndarray]:
    return list(field) if field.ndim == 3 else [field]


def _lines(x: np.ndarray, u: np.ndarray, predicted: np.ndarray, words: str) -> Figure:
    figure, axes = panels(3, width=2.6, height=2.0)
    axes[0].plot(x, color=colour("global"))
    axes[0].set_title("input")
    axes[1].plot(u, color=colour(TRUTH), linewidth=3, alpha=0.3, label="truth")
    axes[1].plot(predicted, color=colour("two-scale"), label="prediction")
    axes[1].set_title("truth (grey) and prediction")
    axes[2].plot(predicted - u, color=colour("local"))
    axes[2].set_title(words)
    return figure


CONCEPTS: dict[str, tuple[Callable[[], Figure], str]] = {
    "pipeline": (pipeline, "png"),
    "two-scale-parts": (two_scale_parts, "png"),
    "modes": (modes, "png"),
    "oracle-code-length": (oracle_code_length, "svg"),
    "seams-closeup": (seams, "png"),
    "learning-curves": (learning_curves, "svg"),
    "leaderboard": (leaderboard, "svg"),
    "trust-radii": (trust_radii, "png"),
    "trust-flags": (lambda: trust_flags(show), "png"),
    "certificate": (certificate, "png"),
}


def main(only: Sequence[str]) -> None:
    """Write the named pictures, or all of them, into docs/images."""
    IMAGES.mkdir(exist_ok=True)
    for name, (draw, kind) in CONCEPTS.items():
        if not only or name in only:
            torch.manual_seed(0)
            with chart_style():
                _save(draw(), IMAGES / f"{name}.{kind}")
    for name, figure in gallery(only).items() if not only or set(only) - set(CONCEPTS) else ():
        _save(figure, IMAGES / f"{name}.png")


def _save(figure: Figure, path: Path) -> None:
    with chart_style():
        figure.savefig(path, dpi=140, metadata={"Date": None} if path.suffix == ".svg" else None)
    print(path, f"{path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(sys.argv[1:])
