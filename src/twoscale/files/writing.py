"""JSON files, written."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.files.moves import replace_file


def to_json(content: Any) -> str:
    """Return readable JSON; numbers that JSON has no word for become null."""
    return json.dumps(plain_json(content), indent=2, allow_nan=False)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    path.write_text(to_json(content) + "\n")


def rewrite_json(path: Path, content: Any) -> None:
    """Write a JSON file in one step: whoever reads it finds the old one or the new one."""
    prepared = path.with_suffix(".new")
    write_json(prepared, content)
    replace_file(prepared, path)


def plain_json(value: Any) -> Any:
    """Return a value as JSON will hold it.

    Tuples and arrays become lists, keys text, and numbers that are not finite null.
    """
    if isinstance(value, dict):
        return {str(k): plain_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
