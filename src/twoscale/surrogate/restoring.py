"""A saved surrogate, rebuilt from its manifest and weights; nothing of them is believed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Space
from twoscale.operators.assembly import Assembly
from twoscale.operators.operators import FieldOperator
from twoscale.predictors.base import check_stored_weights
from twoscale.problems import Problem, problem_from
from twoscale.runtime.memory import available_memory

_NODE_BYTES = 64  # of memory for each value of a field, at least: some copies of it


@dataclass(frozen=True)
class Restored:
    """All that a loaded surrogate has, under the names it has there."""

    method: str
    settings: dict[str, Any]
    parts: Assembly
    seed: int
    problem: Problem | None
    periodic: tuple[bool, bool]
    operator_: FieldOperator
    input_space_: Space
    output_space_: Space
    ranks_: tuple[int, int]
    timings_: dict[str, float]
    peak_device_gigabytes_: float | None
    trained_together_: int
    finetuning_: dict[str, Any] | None
    chosen_: dict[str, Any]
    training_samples_: int


def restored(
    path: str | Path,
    manifest: dict[str, Any],
    tensors: dict[str, Tensor],
    device: torch.device,
    problem: Problem | None,
) -> Restored:
    """Return what a manifest and its weights stand for; what does not fit raises."""
    try:
        return _restored(manifest, tensors, device, problem)
    except TwoscaleError as error:
        raise TwoscaleError(f"{path} cannot be loaded: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise TwoscaleError(f"{path} has a damaged manifest: {error!r}") from error
    except RuntimeError as error:
        raise TwoscaleError(f"{path}: manifest and weights do not fit together") from error


def _restored(
    manifest: dict[str, Any],
    tensors: dict[str, Tensor],
    device: torch.device,
    problem: Problem | None,
) -> Restored:
    inputs, outputs = (Space.from_dict(one) for one in manifest["spaces"])
    parts = Assembly.from_description(manifest["parts"])
    _check_sizes(manifest["parts"], (inputs, outputs), tensors)
    operator = parts.operator().restore(tensors, inputs, outputs).to(device)
    check_stored_weights(operator)
    first, second = (int(rank) for rank in manifest["ranks"])
    if problem is None and manifest["problem"] is not None:
        problem = problem_from(manifest["problem"])
    return Restored(
        method=str(manifest["method"]),
        settings={key: _setting(value) for key, value in manifest["settings"].items()},
        parts=parts,
        seed=int(manifest["seed"]),
        problem=problem,
        periodic=outputs.grid.periodic,
        operator_=operator,
        input_space_=inputs,
        output_space_=outputs,
        ranks_=(first, second),
        timings_={name: float(one) for name, one in manifest["timings"].items()},
        peak_device_gigabytes_=manifest["peak_device_gigabytes"],
        trained_together_=int(manifest["trained_together"]),
        finetuning_=manifest["finetuning"],
        chosen_=dict(manifest["chosen"]),
        training_samples_=int(manifest["training_samples"]),
    )


def _setting(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _check_sizes(
    parts: Mapping[str, Any], spaces: tuple[Space, Space], tensors: Mapping[str, Tensor]
) -> None:
    """Raise before anything is made that would be far larger than what is stored."""
    values = max(space.channels * space.grid.nodes for space in spaces)
    if _NODE_BYTES * values > available_memory():
        raise TwoscaleError(f"there is not enough memory for fields of {spaces[1]} nodes")
    stored = sum(tensor.nbytes for tensor in tensors.values())
    for part in (parts["predictor"], parts["correction"] or {}):
        for name in ("width", "channels"):  # some layer maps so many channels to as many
            if 4 * part.get(name, 0) ** 2 > stored:
                raise TwoscaleError(f"the weights do not fit {name}={part[name]}")
