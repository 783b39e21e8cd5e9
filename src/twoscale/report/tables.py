"""The table of metrics of one run or several: columns, headings and their meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twoscale.report.display import display, number

COLUMNS = {
    "mean_relative_l2": "mean %",
    "mre": "MRE %",
    "oracle_mre": "oracle",
    "ssim": "SSIM",
    "value_trace_error": "seam u",
    "normal_derivative_trace_error": "seam du",
    "residual_rms": "residual",
    "output_code": "code",
    "total": "s",
}
"""Metric and heading, which is short enough for a terminal."""

NOTE = (
    "mean: mean of the test samples' relative L2 errors. MRE: relative L2 error of all test "
    "samples together. oracle: MRE of the representation alone. "
    "seam u, seam du: mean error of the jump in value and in slope across the borders of "
    "non-overlapping patches. residual: root mean square of the discrete PDE residual. code: "
    "numbers in the output code. s: seconds of fit, training and inference."
)


def header(columns: Iterable[str] = COLUMNS) -> list[str]:
    """Return the headings, of all columns by default."""
    return ["method", *(COLUMNS[name] for name in columns)]


def cells(metrics: Mapping[str, Any], columns: Iterable[str] = COLUMNS) -> list[str]:
    """Return the cells of one row, without its name; seams are the common ones."""
    total = metrics.get("timings", {}).get("total")
    flat = {**metrics, **metrics.get("common_seams", {}), "total": total}
    return [number(flat.get(key), display(key).kind) for key in columns]
