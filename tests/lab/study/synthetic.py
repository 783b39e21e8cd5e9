"""Made-up records of studies: plausible numbers from simple laws, the same ones every time."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.split import largest_training
from twoscale.files import write_json
from twoscale_lab.study.cells import Case, parse_case

ENVIRONMENT = {
    "twoscale": "0.1.0",
    "commit": "0123456789ab",
    "python": "3.11.7",
    "torch": "2.13.0",
    "device": "cuda",
    "device_name": "An Imagined GPU",
    "threads": 2,
}

# Oracle and learned error with all data, numbers in the output's code, seconds of training.
_METHODS = {
    "global": (0.0754, 0.0756, 10, 20.0),
    "local": (0.0480, 0.0483, 48, 20.5),
    "overlap": (0.0228, 0.0231, 147, 22.0),
    "refinement": (None, 0.0321, 48, 20.5),
    "fno": (None, 0.0024, None, 290.0),
    "two-scale": (0.0050, 0.0115, 162, 21.0),
}
_SEAMS = {  # errors of value and slope at the method's own seams
    "global": (1.9e-5, 2.7e-4),
    "local": (4.0e-4, 5.4e-2),
    "overlap": (8.2e-6, 4.7e-4),
    "refinement": (1.4e-5, 6.1e-4),
    "fno": (2.2e-6, 2.7e-4),
    "two-scale": (3.0e-5, 4.3e-3),
}
_GAIN = {None: 1.0, "A1": 0.925, "A2": 0.93, "A3": 0.94, "A4": 1.1, "A5": 1.15, "flux": 0.95}
_SEAM_GAIN = {None: 1.0, "A1": 0.97, "A2": 0.5, "A3": 0.36, "A4": 0.4, "A5": 0.42, "flux": 0.4}


def make_cell(name: str, seed: int = 0, *, samples: int = 10_000) -> dict[str, Any]:
    """Return the record of one cell of a case."""
    case = parse_case(name, samples=samples)
    noise = np.random.default_rng(zlib.crc32(f"{name} {seed}".encode()))
    split = np.random.default_rng(seed)  # what all cases of a seed have in common
    metrics = _metrics(case, 1 + 0.02 * split.standard_normal() + 0.01 * noise.standard_normal())
    hashes = f"{zlib.crc32(name.encode()):08x}{seed:08x}"
    cell = {
        "case": case.id,
        "key": hashes[::-1],
        "problem": case.problem,
        "resolution": case.resolution,
        "samples": samples,
        "training": case.training or largest_training(samples),
        "method": case.method,
        "objective": case.objective,
        "settings": dict(case.settings),
        "seed": seed,
        "config_hash": hashes,
        "environment": 0,
        "metrics": metrics,
        "retained": _retained(metrics),
        "epochs": {"training": {"run": 500, "best": 490, "validation_loss": 0.01, "members": 1}},
    }
    if case.objective:
        cell["weights"] = {"value": 67.8 * (1 + 0.1 * seed), "normal_derivative": 0.47}
    return cell


def _metrics(case: Case, factor: float) -> dict[str, Any]:
    oracle, learned, code, _ = _METHODS[case.method]
    training = case.training or largest_training(case.samples)
    rank = case.resolved.get("coarse_components") or 10
    variance = case.resolved.get("residual_variance", 0.995)
    if case.method == "two-scale":
        detail = ((1 - variance) / 0.005) ** 0.6
        oracle *= detail * (10 / rank) ** 0.9
        code = int(10 + 152 * (rank / 10) ** 0.6 / detail**0.4)
        learned = oracle + 0.0065 * (8000 / training) ** 0.7 * max(rank / 10, 1) ** 1.6
        learned *= {"vector": 1.8, "score-normalised": 1.3}.get(case.resolved["objective"], 1)
    harder = 2.5 if case.problem == "darcy" else 1.0
    seams = _seams(case, harder * factor)
    common = seams if case.method != "overlap" else {k: 1.04 * v for k, v in seams.items()}
    mre = learned * harder * factor * _GAIN[case.objective]
    metrics = {
        "oracle_mre": None if oracle is None else oracle * factor,
        "mre": mre,
        "mse": 1.8e-5 * mre**2,
        "mae": 2.7e-3 * mre,
        "ssim": 1 - 25 * mre**2,
        "spectral_error": 0.1 * mre,
        "residual_mean_abs": 20 * seams["normal_derivative_jump"],
        "residual_rms": 60 * seams["normal_derivative_jump"],
        **seams,
        "common_seams": common,
        "input_code": 144,
        "output_code": code,
        "parameters": 70_000,
        "peak_device_gigabytes": 0.9 * (case.resolution / 128) ** 2,
        "samples": case.samples // 10,
        "timings": _timings(case, factor),
    }
    return {name: value for name, value in metrics.items() if value is not None}


def _seams(case: Case, factor: float) -> dict[str, float]:
    value, slope = (k * factor * _SEAM_GAIN[case.objective] for k in _SEAMS[case.method])
    return {
        "value_jump": value + 5e-5,
        "value_trace_error": value,
        "normal_derivative_jump": slope + 1e-4,
        "normal_derivative_trace_error": slope,
    }


def _timings(case: Case, factor: float) -> dict[str, float]:
    size = (case.resolution / 128) ** 2
    slower = {"full": 2.8, "hybrid": 2.7}.get(case.resolved.get("solver", ""), 1.0)
    spent: dict[str, float] = {}
    if case.method != "fno":
        more = 3.1 if case.method == "overlap" else 1.0
        spent |= {"pca_input": 0.34 * size * slower * more}
        if case.method == "two-scale":
            spent |= {"pca_coarse": 0.02 * size, "pca_residual": 0.06 * size * slower}
            spent |= {"pca_overhead": 0.008}
        else:
            spent |= {"pca_output": 0.05 * size * slower * more}
        spent |= {"transform": 0.01 * size}
    spent["training"] = _METHODS[case.method][3] * (size if case.method == "fno" else 1.0)
    if case.method == "refinement":
        spent["refinement"] = 40.0 * size
    if case.objective:
        spent |= {"finetune_prepare": 0.3 * size, "finetuning": 2.4}
    spent["inference"] = 0.002 * size
    spent = {stage: seconds * factor for stage, seconds in spent.items()}
    return spent | {"total": sum(spent.values())}


def _retained(metrics: dict[str, Any]) -> dict[str, Any]:
    if "oracle_mre" not in metrics:
        return {}
    code = metrics["output_code"]
    ranks = {"coarse": [10], "residual": [code - 10]} if code > 150 else {"pca": [code]}
    return {"input": {"code": 144}, "output": {"code": code, "ranks": ranks}}


def make_record(
    study: str,
    cases: Iterable[str],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    scale: str = "paper",
    samples: int = 10_000,
    failed: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """Return a study's record with these cases."""
    return {
        "format": 1,
        "study": study,
        "scale": scale,
        "command": f"twoscale study run {study} --scale {scale} --out DIR",
        "environments": [ENVIRONMENT],
        "cells": [make_cell(name, seed, samples=samples) for name in cases for seed in seeds],
        "failed": list(failed),
    }


def make_fields(cases: Iterable[str]) -> dict[str, np.ndarray]:
    """Return the arrays of one sample of each problem and resolution among the cases."""
    arrays: dict[str, np.ndarray] = {"sample": np.array(5147)}
    for name in cases:
        case = parse_case(name)
        group, size = f"{case.problem}-{case.resolution}", case.resolution
        y, x = np.mgrid[0 : 1 : size * 1j, 0 : 1 : size * 1j]
        truth = np.sin(np.pi * x) * np.sin(2 * np.pi * y) + 0.3 * np.sin(3 * np.pi * x * y)
        side = size // 4
        tiles = np.add.outer(np.arange(size) // side, np.arange(size) // side) % 2 - 0.5
        error = make_cell(name)["metrics"]["mre"]
        smooth = np.cos(2 * np.pi * x) * np.sin(np.pi * y)
        part = tiles if case.method == "local" else 0.3 * tiles + smooth
        waves = np.arange(1 + size // 2)
        decay = (1.0 + waves) ** -4.0
        edges = np.linspace(-1.3, 1.3, 81)
        density = np.histogram(truth, edges, density=True)[0] + 1e-3
        arrays |= {
            f"{group}/input": np.cos(5 * x) * np.cos(4 * y),
            f"{group}/truth": truth,
            f"{group}/prediction/{case.id}": truth + error * part,
            f"{group}/spectrum/truth": decay,
            f"{group}/spectrum/{case.id}": decay + error * 1e-3 * (1.0 + waves) ** -2.0,
            f"{group}/density/edges": edges,
            f"{group}/density/truth": density,
            f"{group}/density/{case.id}": density * (1 + error * np.cos(np.arange(80))),
        }
    return {name: np.asarray(values, dtype=np.float32) for name, values in arrays.items()}


def write_record(folder: Path, record: dict[str, Any], *, fields: bool = True) -> Path:
    """Write a record, and the fields of its cases beside it; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{record['study']}.json"
    write_json(path, record)
    if fields:
        cases = list(dict.fromkeys(cell["case"] for cell in record["cells"]))
        np.savez_compressed(path.with_suffix(".npz"), **make_fields(cases))
    return path
