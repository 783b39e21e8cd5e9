"""From a fitted operator to a file: traced, written in a format, read back and compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch.export import ExportedProgram

from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.export import onnx_file, torch_file
from twoscale.export.checking import Predict, check, sample_inputs
from twoscale.export.graph import graph_of, trace
from twoscale.files import atomic_output, check_target
from twoscale.operators.operators import FieldOperator


@dataclass(frozen=True)
class Format:
    """How a traced graph becomes a file, and how the file predicts."""

    title: str
    require: Callable[[], None]
    content: Callable[[ExportedProgram, Space, Mapping[str, Any]], bytes]
    prediction: Callable[[bytes], tuple[Predict, str] | None]


FORMATS = {
    ".onnx": Format("ONNX", onnx_file.require, onnx_file.content, onnx_file.prediction),
    ".pt2": Format("torch.export", torch_file.require, torch_file.content, torch_file.prediction),
}
"""The formats by the suffix of the file."""


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


def format_of(path: str | Path) -> Format:
    """Return the format of a file, or raise if its suffix stands for none."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        known = " or ".join(f"{name} ({one.title})" for name, one in FORMATS.items())
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
