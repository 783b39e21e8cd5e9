"""What is stored of a surrogate: its manifest, and how both are made of each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.samples import fits_rank
from twoscale.fields.source import Batch
from twoscale.files.reading import is_a
from twoscale.methods.recipes import every_setting, resolve
from twoscale.operators.operators import FieldOperator
from twoscale.operators.spec import SurrogateSpec
from twoscale.parts import PARTS
from twoscale.predictors.base import check_stored_weights
from twoscale.problems import Problem, describe_problem, problem_from
from twoscale.representation.base import subset
from twoscale.runtime.memory import available_memory
from twoscale.settings import Setting, resolve_settings
from twoscale.surrogate.artifact import environment, write_artifact
from twoscale.surrogate.driver import FittedState
from twoscale.surrogate.options import COMPOSED, Resolved, resolve_seed
from twoscale.trust import Trust

_TRUST = "trust"  # begins the names of its tensors
_PLAIN = (
    "chosen",
    "training_samples",
    "timings",
    "peak_device_gigabytes",
    "trained_together",
    "finetuning",
)
"""What the manifest holds of the fitted state as it is."""
_SCALARS = "scalars.mean"  # ends the name of a tensor wherever there are parameters
_NODE_BYTES = 64  # of memory for each value of a field, at least: some copies of it


def write_surrogate(surrogate: Any, folder: Path) -> None:
    """Write the manifest and the weights of a fitted surrogate into an existing folder."""
    state: FittedState = surrogate.state_
    problem, trust = surrogate.problem, state.trust
    manifest = {
        "method": surrogate.method,
        "settings": surrogate.settings,
        "parts": surrogate.parts.describe(),
        "seed": surrogate.seed,
        "spaces": [space.as_dict() for space in state.spaces],
        "ranks": list(state.ranks),
        "problem": None if problem is None else describe_problem(problem),
        "trust": None if trust is None else {"scores": list(trust.kinds)},
        **{name: getattr(state, name) for name in _PLAIN},
        "retained": retained_dimensions(state.operator),
        "provenance": environment(surrogate.device),
    }
    known = {} if trust is None else trust.state_dict(prefix=f"{_TRUST}.")
    write_artifact(folder, manifest, {**state.operator.state_dict(), **known})


def retained_dimensions(operator: FieldOperator) -> dict[str, Any]:
    """Return code sizes and the rank of each block, if the outputs are compressed."""
    code_operator = operator.code_operator
    sides = {"input": code_operator.inputs, "output": code_operator.outputs}
    if not code_operator.outputs.compresses:
        return {}
    found: dict[str, Any] = {
        side: {"code": part.code_size, "ranks": part.ranks} for side, part in sides.items()
    }
    if count := code_operator.inputs.space.parameters:
        found["input"]["code"] = code_operator.input_code_size
        found["input"]["ranks"] |= {"parameters": [count]}
    return found


def restored(
    path: str | Path,
    manifest: dict[str, Any],
    tensors: dict[str, Tensor],
    device: torch.device,
    problem: Problem | None,
) -> tuple[Resolved, FittedState]:
    """Return what a manifest and its weights stand for; raise if they do not fit together.

    These are the arguments of the surrogate, and the state of its fit.
    """
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
) -> tuple[Resolved, FittedState]:
    inputs, outputs = (Space.from_dict(one) for one in manifest["spaces"])
    if inputs.parameters and not any(name.endswith(_SCALARS) for name in tensors):
        raise TwoscaleError(
            "it was saved by an earlier version, which kept parameters as channels: fit it again"
        )
    ranks = _ranks(manifest["ranks"], inputs, outputs)
    _check_sizes(manifest["parts"], (inputs, outputs), tensors)
    parts = SurrogateSpec.from_description(manifest["parts"])
    own = {name: one for name, one in tensors.items() if not name.startswith(f"{_TRUST}.")}
    operator = parts.operator().restore(own, inputs, outputs).to(device)
    check_stored_weights(operator)
    _try_out(operator, inputs, outputs, device)
    trust = _trust(manifest["trust"], subset(tensors, _TRUST), inputs, outputs)
    if problem is None:
        problem = problem_from(manifest["problem"])
    method = str(manifest["method"])
    resolved = Resolved(
        method=method,
        settings=_settings(method, dict(manifest["settings"])),
        parts=parts,
        seed=resolve_seed(manifest["seed"]),
        device=device,
        problem=problem,
        periodic=outputs.grid.plane.periodic,
    )
    state = FittedState(
        operator,
        (inputs, outputs),
        ranks,
        training_samples=int(manifest["training_samples"]),
        timings={name: float(one) for name, one in manifest["timings"].items()},
        peak_device_gigabytes=manifest["peak_device_gigabytes"],
        trained_together=int(manifest["trained_together"]),
        chosen=dict(manifest["chosen"]),
        finetuning=manifest["finetuning"],
        trust=None if trust is None else trust.to(device),
    )
    return resolved, state


def _trust(
    stored: Mapping[str, Any] | None, tensors: dict[str, Tensor], inputs: Space, outputs: Space
) -> Trust | None:
    """Return what is stored about the surrogate's errors, which must fit its fields."""
    if stored is None:
        return None
    trust = Trust(inputs, [str(one) for one in stored["scores"]]).restore(tensors)
    trust.check(outputs)
    return trust


def _ranks(stored: Any, inputs: Space, outputs: Space) -> tuple[int, int]:
    """Return the numbers of axes of the user's fields, which must be possible in their spaces."""
    if not is_a(stored, list) or not all(is_a(rank, int) for rank in stored):
        raise TwoscaleError(f"the ranks of inputs and outputs are two numbers, got {stored!r}")
    first, second = stored
    if outputs.parameters or not second:
        raise TwoscaleError("outputs are fields, without parameters")
    for space, rank in ((inputs, first), (outputs, second)):
        if not fits_rank(space, rank):
            raise TwoscaleError(f"fields of {space} do not have {rank} axes")
    return first, second


@torch.no_grad()
def _try_out(operator: FieldOperator, inputs: Space, outputs: Space, device: torch.device) -> None:
    """Raise if the operator does not map fields of one space to fields of the other."""
    # Positive numbers: they have a logarithm.
    ones = Batch(torch.ones(1, *inputs.shape), torch.ones(1, inputs.parameters))
    predicted = operator(*ones.to(device).tensors)
    if predicted.shape[1:] != outputs.shape:
        raise TwoscaleError(
            f"it predicts fields of shape {tuple(predicted.shape[1:])} where the manifest says "
            f"{outputs.shape}"
        )


def _settings(method: str, stored: dict[str, Any]) -> dict[str, Any]:
    """Return stored settings, checked as those of the method, or one by one if it was composed."""
    if method != COMPOSED:
        return resolve(method, stored)
    known = every_setting()
    checks = {name: known.get(name) or Setting("", lambda value: value) for name in stored}
    return resolve_settings("a composed surrogate", checks, stored)


def _check_sizes(
    parts: Mapping[str, Any], spaces: tuple[Space, Space], tensors: Mapping[str, Tensor]
) -> None:
    """Raise before anything is made that would be far larger than what is stored."""
    values = max(space.channels * space.grid.nodes for space in spaces)
    if _NODE_BYTES * values > available_memory():
        raise TwoscaleError(f"there is not enough memory for fields of {spaces[1]} nodes")
    stored = sum(tensor.numel() for tensor in tensors.values())
    if (
        max(space.channels + space.parameters for space in spaces) > stored
    ):  # each has a scale of its own at least
        raise TwoscaleError(f"the weights do not fit fields of {spaces[0]} and {spaces[1]}")
    for part in (parts["predictor"], parts["correction"] or {}):
        kind = PARTS.get(str(part.get("part")))
        if kind is not None and kind.__module__.startswith("twoscale."):
            _check_layers(part, stored, len(tensors))


def _check_layers(part: Mapping[str, Any], stored: int, tensors: int) -> None:
    """Raise if a network of ours has more or wider layers than there are weights for."""
    for name in ("width", "channels"):  # some layer maps so many channels to as many
        if part.get(name, 0) ** 2 > stored:
            raise TwoscaleError(f"the weights do not fit {name}={part[name]}")
    for name in ("hidden_layers", "layers", "blocks"):  # each has a tensor at least
        if part.get(name, 0) > tensors:
            raise TwoscaleError(f"the weights do not fit {name}={part[name]}")
