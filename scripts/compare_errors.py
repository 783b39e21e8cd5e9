"""Fit the same surrogates with two source trees and compare the errors of their predictions.

    git worktree add /tmp/old COMMIT
    python scripts/compare_errors.py /tmp/old/src src --out results/redesign-errors.json

Each fit is a method, a predictor and a kind of data; data are arrays that no part of the package
makes. For each fit the record has the test error of both trees and the largest difference of their
predictions, relative to the largest prediction.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_AGREE = 1e-4  # of the error, relative
_SAMPLES, _TRAINING, _VALIDATION = 260, 200, 30
_LATENT = {"epochs": 4, "hidden_layers": 2, "hidden_width": 32}
_PREDICTORS: dict[str, dict[str, Any]] = {
    "affine": {},
    "kernel": {},
    "mlp": _LATENT,
    "affine-mlp": _LATENT,
    "encoder": {"epochs": 2, "width": 8, "blocks": 1},
    "fno": {"epochs": 2, "layers": 2, "width": 6, "modes": 4},
    "filter": {},
}
_CODES = ("global", "local", "overlap", "two-scale", "three-scale", "conforming")
Arrays = tuple[np.ndarray | None, np.ndarray, np.ndarray | None]


def smooth(shape: tuple[int, ...], seed: int, *, periodic: bool = False) -> np.ndarray:
    """Return random smooth fields (samples, *shape): sums of waves with decaying amplitudes."""
    generator = np.random.default_rng(seed)
    samples, *sides = shape
    fields = np.zeros(shape)
    for _ in range(24):
        wave = generator.standard_normal(samples).reshape(-1, *[1] * len(sides))
        frequency = 0.0
        for axis, size in enumerate(sides):
            k = int(generator.integers(0, 5))
            x = np.arange(size) / (size if periodic else size - 1)
            phase = 2 * np.pi * k * x if periodic else np.pi * k * x
            own = np.cos(phase + generator.uniform(0, 2 * np.pi) * periodic)
            wave = wave * own.reshape([1, *[-1 if a == axis else 1 for a in range(len(sides))]])
            frequency += k**2
        fields += wave / (1 + frequency)
    return fields


def response(fields: np.ndarray) -> np.ndarray:
    """Return what depends on a field smoothly but not linearly, of the same shape."""
    axes = tuple(range(fields.ndim - 2, fields.ndim)) if fields.ndim > 2 else (-1,)
    total = fields
    for axis in axes:
        total = np.cumsum(total, axis=axis) / total.shape[axis]
    return total + 0.1 * np.tanh(fields) * total


def plane(sides: tuple[int, int], *, periodic: bool = False, seed: int = 0) -> Arrays:
    x = smooth((_SAMPLES, *sides), seed, periodic=periodic)
    return x, response(x), None


def channels() -> Arrays:
    x = np.stack([smooth((_SAMPLES, 16, 16), seed) for seed in (1, 2)], axis=1)
    u = np.stack([response(x[:, 0]), 3 + x[:, 1] * response(x[:, 0])], axis=1)
    return x, u, None


def line(*, periodic: bool = False) -> Arrays:
    x = smooth((_SAMPLES, 48), 3, periodic=periodic)
    return x, response(x), None


def with_parameters() -> Arrays:
    x, u, _ = plane((16, 16), seed=4)
    p = np.random.default_rng(5).uniform(1, 2, (_SAMPLES, 2))
    return x, p[:, :1, None] * u + p[:, 1:, None] ** 2, p


def parameters_alone() -> Arrays:
    p = np.random.default_rng(6).uniform(-1, 1, (_SAMPLES, 3))
    shapes = smooth((6, 16, 16), 7)
    weights = np.concatenate([p, p**2], axis=1)
    return None, np.tensordot(weights, shapes, axes=1), p


def positive() -> Arrays:
    x, _, _ = plane((16, 16), seed=8)
    return np.exp(x), response(-x), None


DATA = {
    "plane": lambda: plane((16, 16)),
    "periodic": lambda: plane((16, 16), periodic=True, seed=9),
    "odd": lambda: plane((21, 18), seed=10),
    "channels": channels,
    "line": line,
    "periodic line": lambda: line(periodic=True),
    "with parameters": with_parameters,
    "parameters": parameters_alone,
    "positive": positive,
}


def fits() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield the kind of data, the method and the settings of every fit."""
    small = {"coarse_components": 6}
    sizes = {"two-scale": small, "three-scale": small, "conforming": {"code_size": 40}}
    for method in _CODES:
        for predictor, own in _PREDICTORS.items():
            yield "plane", method, {"predictor": predictor, **own, **sizes.get(method, {})}
    yield "plane", "fno", _PREDICTORS["fno"]
    yield "plane", "whole-field", _PREDICTORS["encoder"]
    yield "plane", "refinement", {**_LATENT, "refinement_epochs": 2, "channels": 4}
    for data in DATA.keys() - {"plane"}:
        wraps = {"periodic": True} if data.startswith("periodic") else {}
        flat = data.endswith("line")
        two_scale = {**wraps, **small, **({"coarse_factor": 4} if data != "odd" else {})}
        chosen = ["affine", "kernel", "mlp"] + (["encoder"] if data != "parameters" else [])
        for predictor in chosen:
            own = {"predictor": predictor, **_PREDICTORS[predictor]}
            yield data, "two-scale", {**own, **two_scale}
            if predictor in ("affine", "kernel"):
                yield data, "overlap", {**own, **wraps, **({"patches": (1, 4)} if flat else {})}
    for symmetries in ("square", "mirrors"):
        images = {"symmetries": symmetries, "average_symmetries": True, "predictor": "kernel"}
        yield "plane", "two-scale", {**images, **small}
    yield "periodic", "global", {"symmetries": "shifts", "predictor": "affine", "periodic": True}
    yield "positive", "local", {"input_transform": "log", "predictor": "affine"}
    for objective in ("vector", "block-balanced", "score-normalised"):
        yield "plane", "two-scale", {**_LATENT, **small, "objective": objective}
    for solver in ("full", "covariance"):
        yield "plane", "two-scale", {**small, "predictor": "affine", "solver": solver}


def fit_all(out: Path) -> None:
    """Fit everything with the package that can be imported; write predictions and errors."""
    import torch

    from twoscale import Surrogate

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    predictions, errors = {}, {}
    made = {name: make() for name, make in DATA.items()}
    for data, method, settings in sorted(fits(), key=repr):
        name = f"{data} · {method} · " + " ".join(f"{k}={v}" for k, v in settings.items())
        inputs, outputs, parameters = made[data]

        def part(values: np.ndarray | None, rows: slice) -> np.ndarray | None:
            return None if values is None else values[rows]

        rows = slice(0, _TRAINING), slice(_TRAINING, _TRAINING + _VALIDATION)
        training, held_out = (
            (part(inputs, one), part(outputs, one), part(parameters, one)) for one in rows
        )
        tests = slice(_TRAINING + _VALIDATION, None)
        try:
            surrogate = Surrogate(method, device="cpu", seed=1, **settings)
            surrogate.fit(*training[:2], parameters=training[2], validation=held_out)
            found = surrogate.predict(part(inputs, tests), parameters=part(parameters, tests))
        except Exception as error:
            errors[name] = f"{type(error).__name__}"
            print(name, error, file=sys.stderr)
            continue
        truth = outputs[tests]
        size = (-1, truth[0].size)
        difference = np.linalg.norm((found - truth).reshape(size), axis=1)
        errors[name] = float((difference / np.linalg.norm(truth.reshape(size), axis=1)).mean())
        predictions[name] = found
    np.savez(out, errors=json.dumps(errors), **predictions)


def run(source: Path, out: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return errors and predictions of all fits with a source tree."""
    environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, __file__, "--fit", str(out)]
    subprocess.run(command, env=environment, check=True)
    with np.load(out) as held:
        return json.loads(str(held["errors"])), {
            name: held[name] for name in held.files if name != "errors"
        }


def compare(old: Path, new: Path) -> dict[str, Any]:
    """Return the errors of both trees, fit by fit, and how many agree."""
    with tempfile.TemporaryDirectory() as folder:
        before, fields = run(old, Path(folder) / "old.npz")
        after, others = run(new, Path(folder) / "new.npz")
    rows = {}
    for name, error in before.items():
        row: dict[str, Any] = {"old": error, "new": after[name]}
        if name in fields and name in others:
            size = np.abs(fields[name]).max()
            row["difference"] = float(np.abs(fields[name] - others[name]).max() / size)
        row["agrees"] = after[name] == error or (
            not isinstance(error, str)
            and not isinstance(after[name], str)
            and abs(after[name] - error) <= _AGREE * error
        )
        rows[name] = row
    return {"fits": len(rows), "agree": sum(row["agrees"] for row in rows.values()), "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trees", type=Path, nargs="*", help="the old and the new tree")
    parser.add_argument("--fit", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.fit:
        fit_all(options.fit)
        return
    record = compare(*options.trees)
    for name, row in record["rows"].items():
        if not row["agrees"] or isinstance(row["old"], str):
            print(name, row)
    print(f"{record['agree']} of {record['fits']} agree within {_AGREE} of the error")
    if options.out:
        from records import write_record  # the fits run without this tree

        write_record(options.out, record)


if __name__ == "__main__":
    main()
