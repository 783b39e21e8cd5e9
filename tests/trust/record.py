"""The script that records certificates, as a module: its equations, predictions and true errors."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_SCRIPT = Path(__file__).parents[2] / "scripts/certificate_record.py"
_SPECIFICATION = importlib.util.spec_from_file_location("certificate_record", _SCRIPT)
record = importlib.util.module_from_spec(_SPECIFICATION)
sys.modules["certificate_record"] = record  # where its dataclasses look up their annotations
_SPECIFICATION.loader.exec_module(record)
