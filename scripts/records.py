"""Write the record of a script: its command, what it measured, and the environment."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from twoscale.files import write_json
from twoscale.surrogate.artifact import environment


def write_record(
    out: Path,
    measured: Mapping[str, Any],
    *,
    device: torch.device | str = "cpu",
    show: bool = False,
) -> None:
    """Write a record: the command of this process, what it measured, commit and device.

    With `show` what was measured is also printed.
    """
    head = {"command": shlex.join(["python", *sys.argv])}
    end = {"environment": environment(torch.device(device))}
    write_json(out, {**head, **measured, **end})
    if show:
        print(json.dumps(measured, indent=1))
