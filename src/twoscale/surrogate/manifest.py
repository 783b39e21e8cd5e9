"""What is stored of a surrogate: its manifest, and how both are made of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Space
from twoscale.methods.recipes import resolve
from twoscale.operators.assembly import Assembly
from twoscale.operators.operators import FieldOperator
from twoscale.predictors.base import check_stored_weights
from twoscale.problems import Problem, describe_problem, problem_from
from twoscale.runtime.memory import available_memory
from twoscale.surrogate.options import resolve_seed

_NODE_BYTES = 64  # of memory for each value of a field, at least: some copies of it
_WIDTHS = ("width", "channels")  # arguments: some layer maps so many channels to as many
_LENGTHS = ("hidden_width",)  # arguments: some layer has so many biases
_COUNTS = ("hidden_layers", "layers", "blocks")  # arguments: numbers of layers, each with a tensor


@dataclass(frozen=True)
class Stored:
    """All that is stored of a fitted surrogate, under the names of its attributes."""

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

    @classmethod
    def of(cls, surrogate: Any) -> Stored:
        """Return what is stored of a fitted surrogate."""
        return cls(**{one.name: getattr(surrogate, one.name) for one in fields(cls)})

    def manifest(self) -> dict[str, Any]:
        """Return the content of the manifest; `restored` is its inverse."""
        return {
            "method": self.method,
            "settings": self.settings,
            "parts": self.parts.describe(),
            "seed": self.seed,
            "spaces": [self.input_space_.as_dict(), self.output_space_.as_dict()],
            "ranks": list(self.ranks_),
            "problem": None if self.problem is None else describe_problem(self.problem),
            "chosen": self.chosen_,
            "training_samples": self.training_samples_,
            "timings": self.timings_,
            "peak_device_gigabytes": self.peak_device_gigabytes_,
            "trained_together": self.trained_together_,
            "finetuning": self.finetuning_,
        }


def restored(
    path: str | Path,
    manifest: dict[str, Any],
    tensors: dict[str, Tensor],
    device: torch.device,
    problem: Problem | None,
) -> Stored:
    """Return what a manifest and its weights stand for; raise if they do not fit together."""
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
) -> Stored:
    inputs, outputs = (Space.from_dict(one) for one in manifest["spaces"])
    _check_sizes(manifest["parts"], (inputs, outputs), tensors)
    parts = Assembly.from_description(manifest["parts"])
    operator = parts.operator().restore(tensors, inputs, outputs).to(device)
    check_stored_weights(operator)
    if problem is None:
        problem = problem_from(manifest["problem"])
    method = str(manifest["method"])
    return Stored(
        method=method,
        settings=resolve(method, dict(manifest["settings"])),
        parts=parts,
        seed=resolve_seed(manifest["seed"]),
        problem=problem,
        periodic=outputs.grid.periodic,
        operator_=operator,
        input_space_=inputs,
        output_space_=outputs,
        ranks_=_ranks(manifest["ranks"], inputs, outputs),
        timings_={name: float(one) for name, one in manifest["timings"].items()},
        peak_device_gigabytes_=manifest["peak_device_gigabytes"],
        trained_together_=int(manifest["trained_together"]),
        finetuning_=manifest["finetuning"],
        chosen_=dict(manifest["chosen"]),
        training_samples_=int(manifest["training_samples"]),
    )


def _ranks(stored: Any, inputs: Space, outputs: Space) -> tuple[int, int]:
    """Return the numbers of axes that users see, which must fit the fields."""
    first, second = (int(rank) for rank in stored)
    for rank, space in ((first, inputs), (second, outputs)):
        channels = space.field_channels
        fitting = {4: True, 3: channels == 1, 2: channels == space.grid.height == 1}
        fitting[0] = space is inputs and not channels
        if not fitting.get(rank, False):
            raise TwoscaleError(f"fields of {space} do not have {rank} axes")
    return first, second


def _check_sizes(
    parts: Mapping[str, Any], spaces: tuple[Space, Space], tensors: Mapping[str, Tensor]
) -> None:
    """Raise before anything is made that would be far larger than what is stored."""
    values = max(space.channels * space.grid.nodes for space in spaces)
    if _NODE_BYTES * values > available_memory():
        raise TwoscaleError(f"there is not enough memory for fields of {spaces[1]} nodes")
    stored = sum(tensor.nbytes for tensor in tensors.values())
    for name, value in _sizes(parts["predictor"], parts["correction"] or {}):
        if value > _largest(name, stored, len(tensors)):
            raise TwoscaleError(f"the weights do not fit {name}={value}")


def _sizes(*descriptions: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the arguments of predictors that decide the size of a network."""
    for description in descriptions:
        for name in (*_WIDTHS, *_LENGTHS, *_COUNTS):
            if isinstance(value := description.get(name), int):
                yield name, value


def _largest(name: str, stored: int, tensors: int) -> float:
    """Return the largest argument with which a network has no more than the stored bytes."""
    if name in _WIDTHS:
        return (stored / 4) ** 0.5
    return stored / 4 if name in _LENGTHS else tensors
