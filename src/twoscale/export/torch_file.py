"""Files of `torch.export`: for programs with torch, but without twoscale."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.export import ExportedProgram, load, save

from twoscale.domain.space import Space
from twoscale.export.graph import Predict, quiet_libraries
from twoscale.files import to_json

TITLE = "torch.export"
METADATA = "metadata.json"
"""The name of the extra file with the metadata."""


def require() -> None:
    """Accept: torch is all that is needed."""


def content(program: ExportedProgram, space: Space, metadata: Mapping[str, Any]) -> bytes:
    """Return the file of a traced graph, with metadata as an extra file."""
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # paths of sources
    stream = io.BytesIO()
    with quiet_libraries():
        save(program, stream, extra_files={METADATA: to_json(metadata)})
    return stream.getvalue()


def prediction(file: bytes) -> tuple[Predict, str] | None:
    """Return how torch predicts from a file, and its version."""
    with quiet_libraries():
        module = load(io.BytesIO(file)).module()

    def predict(inputs: tuple[Tensor, ...]) -> Tensor:
        return module(*inputs)

    return predict, f"torch {torch.__version__.split('+')[0]}"
