"""Checkpoints of a fit under way: they belong to one request, and end with its result."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from twoscale.fields.source import FieldSource
from twoscale.files import Checkpoints, WorkFolder, tensor_digest, working
from twoscale.operators.context import FieldPairs
from twoscale.surrogate.artifact import environment


def kept_checkpoints(
    work: WorkFolder, asked: dict[str, Any], *, device: torch.device, resume: bool = True
) -> Checkpoints:
    """Return the checkpoints of what was asked for in a work folder.

    Those of anything else, or of another device or version of any library, are removed; so are all
    if nothing is to be resumed.
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
    """Give checkpoints beside `path` for a fit on some fields; they go when the block has ended."""
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
