"""Checkpoints of a run under way: they belong to one request, and end with its result."""

from __future__ import annotations

from typing import Any

import torch

from twoscale import _version
from twoscale.data import Dataset
from twoscale.files import Checkpoints, Output


def run_checkpoints(
    output: Output, dataset: Dataset, asked: dict[str, Any], *, device: torch.device, resume: bool
) -> Checkpoints:
    """Return the checkpoints of what was asked for, beside its output.

    Those of anything else, be it another dataset, device or version, are removed; so are all if
    nothing is to be resumed.
    """
    request = {
        **asked,
        "dataset": dataset.identity,
        "device": device.type,
        "twoscale": _version.__version__,
        "torch": torch.__version__,
    }
    if not (resume and output.work.continues(request)):
        output.work.restart(request)
    return Checkpoints(output.work.checkpoints)
