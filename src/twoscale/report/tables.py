"""The table of metrics: which columns, how a number is written, what the headings mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twoscale.report.display import number

COLUMNS: dict[str, tuple[str, str]] = {
    "mre": ("MRE %", "percent"),
    "oracle_mre": ("oracle", "percent"),
    "ssim": ("SSIM", "plain"),
    "value_trace_error": ("seam u", "power"),
    "normal_derivative_trace_error": ("seam du", "power"),
    "residual_rms": ("residual", "short"),
    "output_code": ("code", "count"),
    "total": ("s", "short"),
}
"""Key, heading, format."""

NOTE = (
    "MRE: relative L2 error over the test set; oracle: the same for the representation alone; "
    "seam u, seam du: mean error of the jump in value and in normal derivative across the borders "
    "of non-overlapping patches; residual: RMS of the discrete PDE residual; code: output "
    "coordinates; s: seconds for fit, training and inference."
)


def header() -> list[str]:
    """Return the headings."""
    return ["method", *(heading for heading, _ in COLUMNS.values())]


def cells(metrics: Mapping[str, Any]) -> list[str]:
    """Return the cells of one row, without the method's name; seams are the common ones."""
    flat = {**metrics, **metrics["common_seams"], "total": metrics["timings"].get("total")}
    return [number(flat.get(key), kind) for key, (_, kind) in COLUMNS.items()]
