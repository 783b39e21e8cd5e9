"""A fit in progress, and the checkpoints from which it goes on after a kill."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from twoscale.fields.source import ArraySource, FieldSource
from twoscale.files import Checkpoints, WorkFolder, tensor_digest, working
from twoscale.operators.context import FieldPairs, FitContext
from twoscale.operators.operators import FieldOperator
from twoscale.surrogate.artifact import environment


@dataclass(frozen=True)
class Fitting:
    """A fit in progress: an operator, its data, and what accompanies it.

    `ranks` are the numbers of axes of the user's inputs and outputs.
    """

    operator: FieldOperator
    training: FieldPairs
    validation: FieldPairs
    context: FitContext
    samples: int
    ranks: tuple[int, int]

    def without_fields(self) -> Fitting:
        """Return the same without the fields, which can be large; their spaces stay."""
        spaces = (self.training.input_space, self.training.output_space)
        inputs, outputs = (ArraySource(torch.empty(0, *one.shape)) for one in spaces)
        none = FieldPairs(inputs, outputs, spaces)
        return replace(self, training=none, validation=none)


def kept_checkpoints(
    work: WorkFolder, asked: dict[str, Any], *, device: torch.device, resume: bool = True
) -> Checkpoints:
    """Return the checkpoints of a request in a work folder.

    Checkpoints of another request, device or library version are removed. Without `resume` all
    are.
    """
    request = {**asked, "environment": environment(device)}
    if not (resume and work.continues(request)):
        work.restart(request)
    return Checkpoints(work.checkpoints)


@contextmanager
def fit_checkpoints(
    path: str | Path | None,
    asked: dict[str, Any],
    data: tuple[FieldPairs, FieldPairs],
    *,
    device: torch.device,
) -> Iterator[Checkpoints | None]:
    """Yield the checkpoints beside `path` of a fit on some fields; they are removed in the end."""
    if path is None:
        yield None
        return
    place = Path(path).resolve()
    fields = [source for pairs in data for source in (pairs.inputs, pairs.outputs)]
    request = {**asked, "fields": [_digest(source) for source in fields]}
    with working(place, subject=f"fitting with the checkpoints of {place}") as work:
        yield kept_checkpoints(work, request, device=device)


def _digest(source: FieldSource) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for chunk in source.chunks():
        digest.update(tensor_digest(chunk.cpu()).encode())
    return digest.hexdigest()
