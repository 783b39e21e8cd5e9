"""The quantities of tables, figures and comparisons, read from the record of a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from twoscale.errors import unknown_name
from twoscale.representation import known_stages, pca_stages
from twoscale.runtime.stages import (
    FINETUNE_PREPARE,
    FINETUNING,
    INFERENCE,
    PCA,
    PCA_OVERHEAD,
    STAGES,
    TRANSFORM,
)

CellRecord = Mapping[str, Any]
Reader = Callable[[CellRecord], float | None]

_SEAMS = (
    "value_jump",
    "value_trace_error",
    "normal_derivative_jump",
    "normal_derivative_trace_error",
    "flux_jump",
    "flux_trace_error",
)
_METRICS = (
    "mre",
    "mean_relative_l2",
    "median_relative_l1",
    "oracle_mre",
    "mse",
    "mae",
    "ssim",
    "spectral_error",
    *_SEAMS,
    "residual_rms",
    "residual_mean_abs",
    "input_code",
    "output_code",
    "parameters",
    "peak_device_gigabytes",
)


TIMED = ("pca_fit", *(f"timings.{stage}" for stage in STAGES))
"""The times that add up to the total: the PCA fit, and every other stage."""


def quantity(cell: CellRecord, name: str) -> float | None:
    """Return a quantity of a cell's record, None if the cell does not have it."""
    return _reader(name)(cell)


def values_by_seed(cells: Iterable[CellRecord], name: str) -> dict[int, float]:
    """Return a quantity of the cells of one case by seed, for the seeds that have it.

    Of a time, only unshared measurements count, if there are any.
    """
    cells = list(cells)
    if is_time(name):
        cells = [cell for cell in cells if _is_unshared(cell, name)] or cells
    found = {cell["seed"]: quantity(cell, name) for cell in cells}
    return {
        seed: value for seed, value in found.items() if value is not None and math.isfinite(value)
    }


def is_shared_time(cells: Iterable[CellRecord], name: str) -> bool:
    """Say whether a quantity is a time that no cell of the case had for itself."""
    timed = [cell for cell in cells if is_time(name) and quantity(cell, name) is not None]
    return bool(timed) and not any(_is_unshared(cell, name) for cell in timed)


def _is_unshared(cell: CellRecord, name: str) -> bool:
    """Say whether a time was spent on this cell only.

    Networks that are trained together are each given a share of the common time, which is less
    than they take alone. Other processes on the device make every time longer.
    """
    # Fine-tunings run one at a time.
    tuned = name.startswith("invocation_") and cell.get("objective")
    with_training = name in _SHARED and not tuned
    together = cell["metrics"].get("trained_together", 1) if with_training else 1
    return together == 1 and cell.get("processes", 1) == 1


def check_quantity(name: str) -> str:
    """Return the name if a quantity has it, else raise."""
    _reader(name)
    return name


def is_time(name: str) -> bool:
    """Say whether a quantity is wall-clock seconds, which depend on the machine."""
    return name in _TIMES or name.startswith(("timings.", PCA))


def _reader(name: str) -> Reader:
    group, dot, rest = name.partition(".")
    if dot and group in _GROUPS:
        return _at(*_GROUPS[group], rest)
    readers = _readers(tuple(known_stages()))
    if name not in readers:
        raise unknown_name("quantity", name, [*readers, *(f"{group}.…" for group in _GROUPS)])
    return readers[name]


def _at(*path: str) -> Reader:
    def read(cell: CellRecord) -> float | None:
        value: Any = cell
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return float(value) if isinstance(value, int | float) else None

    return read


def _seconds(cell: CellRecord, stages: Iterable[str]) -> float | None:
    """Return the sum over some stages; a missing stage took no time."""
    timings = cell["metrics"].get("timings", {})
    spent = [timings[stage] for stage in stages if stage in timings]
    return float(sum(spent)) if spent else None


def _pca_stages(cell: CellRecord) -> list[str]:
    """Return all stages of the PCA fit that a cell has, known here or not."""
    return [stage for stage in cell["metrics"].get("timings", {}) if stage.startswith(PCA)]


def _pca_stage(stage: str) -> Reader:
    """Return the reader of one stage of the PCA fit; 0 for a method without that stage."""
    return lambda cell: (_seconds(cell, [stage]) or 0.0) if _pca_stages(cell) else None


def _invocation(cell: CellRecord, stages: Sequence[str], otherwise: str) -> float | None:
    """Return the last command's time: without the base, if it was a fine-tuning."""
    return _seconds(cell, stages) if cell.get("objective") else quantity(cell, otherwise)


def _stage_code(stage: str) -> Reader:
    """Return the reader of the size of one stage's code in the output."""

    def read(cell: CellRecord) -> float | None:
        ranks = cell.get("retained", {}).get("output", {}).get("ranks", {})
        return float(sum(ranks[stage])) if stage in ranks else None

    return read


def _ratio(value: float | None, base: float | None) -> float | None:
    """Return value / base; None if one is missing or the base is 0."""
    return value / base if value is not None and base else None


def _fit_seconds(cell: CellRecord) -> float | None:
    """Return the seconds of the fit: of all candidates, if it was searched for."""
    searched = _at("found", "seconds")(cell)
    if searched is not None:
        return searched
    total, inference = (quantity(cell, name) for name in ("total", INFERENCE.name))
    return None if total is None else total - (inference or 0.0)


# The names before a dot, and where their values are in the record.
_GROUPS = {
    "common_seams": ("metrics", "common_seams"),
    "oracle_seams": ("metrics", "oracle_seams"),
    "timings": ("metrics", "timings"),
    "weights": ("weights",),
    "explained_variance": ("metrics", "explained_variance"),
    "outside": ("metrics", "outside"),
    "validation": ("metrics", "validation"),
}

_TRAINING = tuple(stage.name for stage in STAGES.values() if stage.trains)

_TUNING = (FINETUNE_PREPARE.name, FINETUNING.name)

_TIMES: dict[str, Reader] = {
    "pca_fit": lambda cell: _seconds(cell, _pca_stages(cell)),
    "pca_solve": lambda cell: _seconds(cell, (k for k in _pca_stages(cell) if k != PCA_OVERHEAD)),
    TRANSFORM.name: _at("metrics", "timings", TRANSFORM.name),
    "train": lambda cell: _seconds(cell, _TRAINING),
    INFERENCE.name: _at("metrics", "timings", INFERENCE.name),
    "total": _at("metrics", "timings", "total"),
    "data_seconds": _at("metrics", "data_seconds"),
    "fit_seconds": _fit_seconds,
    "field_seconds": lambda cell: _ratio(
        quantity(cell, INFERENCE.name), _at("metrics", "samples")(cell)
    ),
    "invocation_train": lambda cell: _invocation(cell, _TUNING[1:], "train"),
    "invocation_total": lambda cell: _invocation(cell, _TUNING, "total"),
}

_SHARED = {f"timings.{stage.name}" for stage in STAGES.values() if stage.is_shared}
_SHARED |= {
    "train",
    "total",
    "fit_seconds",
    "timings.total",
    "invocation_train",
    "invocation_total",
}


@lru_cache(maxsize=4)
def _readers(chain_stages: tuple[str, ...]) -> dict[str, Reader]:
    """Return all quantities that need no dot, given the stages of all chains."""
    return {
        **{name: _at("metrics", name) for name in _METRICS},
        **{stage: _pca_stage(stage) for stage in pca_stages()},
        **_TIMES,
        "learned_to_oracle": lambda cell: _ratio(
            quantity(cell, "mre"), quantity(cell, "oracle_mre")
        ),
        **{f"{stage}_code": _stage_code(stage) for stage in chain_stages},
        "training_samples": _at("training"),
        "model_megabytes": lambda cell: _ratio(_at("model_bytes")(cell), 1e6),
    }
