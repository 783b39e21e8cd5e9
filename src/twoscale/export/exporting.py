"""From a fitted operator to a file: traced, written in a format, read back and compared."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.export import onnx_file, torch_file
from twoscale.export.graph import FieldGraph, Predict, as_inputs, graph_of, trace
from twoscale.fields.source import Batch
from twoscale.files import atomic_output, check_target
from twoscale.operators.operators import FieldOperator

FORMATS: dict[str, ModuleType] = {".onnx": onnx_file, ".pt2": torch_file}
"""The formats by the suffix of the file.

Each has a TITLE, `require` for its packages, `content` of a traced graph's file, and `prediction`
from a file.
"""

LARGEST_DIFFERENCE = 1e-5
"""The largest difference to the surrogate's own prediction, relative to its norm."""
_BATCHES = (1, 3, 8)
_ROUNDING = 4.0  # times the surrogate's own rounding errors are explained by other sums


@dataclass(frozen=True)
class Exported:
    """An exported file.

    Attributes
    ----------
    path
        Where it is.
    size
        Its bytes.
    checked_with
        The program that read it back and predicted the same, such as "onnxruntime 1.31.1"; None if
        onnxruntime is not installed.
    difference
        The largest difference to the surrogate's own predictions, relative to their norm; None if
        it was not checked.
    metadata
        What the file says of itself.
    """

    path: Path
    size: int
    checked_with: str | None
    difference: float | None
    metadata: dict[str, Any]

    @property
    def check_text(self) -> str:
        """Return in words how the file was checked."""
        if self.difference is None:
            return (
                "It was not checked, because onnxruntime is not installed: "
                "pip install 'twoscale[export]'"
            )
        return (
            f"Its predictions differ from the surrogate's by {self.difference:.1e} at most, "
            f"relative to their norm (checked with {self.checked_with})."
        )


def format_of(path: str | Path) -> ModuleType:
    """Return the format of a file, or raise if its suffix stands for none."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        known = " or ".join(f"{name} ({one.TITLE})" for name, one in FORMATS.items())
        raise TwoscaleError(
            f"the suffix decides the format of an exported file, got '{path}': end it in {known}"
        )
    return FORMATS[suffix]


def export_operator(
    operator: FieldOperator,
    space: Space,
    metadata: dict[str, Any],
    path: str | Path,
    *,
    overwrite: bool = False,
) -> Exported:
    """Write an operator on inputs of a space as a file; it appears complete or not at all.

    The suffix of the path decides the format. The file is read back before it appears: it must
    predict what the operator predicts.
    """
    target = format_of(path)
    check_target(path, overwrite=overwrite)
    target.require()
    with atomic_output(path, overwrite=overwrite) as prepared:
        graph, fields = graph_of(operator, space), sample_inputs(operator)
        file = target.content(trace(graph, fields, space), space, metadata)
        reader = target.prediction(file)
        difference = None if reader is None else check(graph, reader[0], fields, space)
        prepared.write_bytes(file)
    return Exported(
        path=Path(path),
        size=len(file),
        checked_with=None if reader is None else reader[1],
        difference=difference,
        metadata=metadata,
    )


@torch.no_grad()
def sample_inputs(operator: FieldOperator, *, seed: int = 0) -> Batch:
    """Return inputs like those of the training: decoded from random codes as wide as theirs."""
    code_operator = operator.code_operator
    inputs, count = code_operator.inputs, code_operator.inputs.space.parameters
    spread = torch.cat([inputs.code_spread.cpu(), torch.ones(count)])
    noise = torch.randn(max(_BATCHES), len(spread), generator=torch.Generator().manual_seed(seed))
    codes = (noise * spread).to(next(code_operator.buffers()).device)
    fields, scores = codes[:, : len(spread) - count], codes[:, len(spread) - count :]
    scalars = scores if code_operator.scalars is None else code_operator.scalars.undo(scores)
    batch = Batch(inputs.decode(fields).cpu().float(), scalars.cpu().float())
    if inputs.affine is not inputs:  # transforms are of positive values
        batch = Batch(batch.fields.abs(), batch.parameters.abs())
    return batch


@torch.no_grad()
def check(graph: FieldGraph, predict: Predict, fields: Batch, space: Space) -> float:
    """Return the largest relative difference of predictions to those of the graph's operator.

    Raise if it is more than 1e-5, and more than rounding in single precision explains.
    """
    worst = 0.0
    for batch in _BATCHES:
        inputs = as_inputs(fields[:batch], space)
        expected, found = graph(*inputs), predict(inputs)
        if found.shape != expected.shape or found.dtype != expected.dtype:
            raise TwoscaleError(
                f"the exported graph gives {found.dtype} {tuple(found.shape)} where the surrogate "
                f"gives {expected.dtype} {tuple(expected.shape)}: nothing was written"
            )
        worst = max(worst, difference(found, expected))
    allowed = LARGEST_DIFFERENCE
    if not worst <= allowed:
        inputs = as_inputs(fields, space)
        exact = copy.deepcopy(graph).double()(*(one.double() for one in inputs))
        allowed = max(allowed, _ROUNDING * difference(graph(*inputs), exact))
    if not worst <= allowed:
        raise TwoscaleError(
            f"the exported graph differs from the surrogate by {worst:.1e} of the prediction's "
            f"norm, more than {LARGEST_DIFFERENCE:.0e}: nothing was written"
        )
    return worst


def difference(found: Tensor, expected: Tensor) -> float:
    """Return ||found - expected|| / ||expected||; NaN unless both are finite."""
    size = float(expected.double().norm())
    return float((found.double() - expected.double()).norm()) / (size or 1.0)
