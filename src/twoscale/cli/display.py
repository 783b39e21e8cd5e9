"""What the terminal shows: progress, tables, JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from twoscale.surrogate.artifact import to_json
from twoscale.training import Progress as Reporter

console = Console()
_progress_console = Console(stderr=True)

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
"""The table of metrics: key, heading, format."""

COLUMNS_NOTE = (
    "MRE: relative L2 error over the test set; oracle: the same for the representation alone; "
    "seam u, seam du: mean error of the jump in value and in normal derivative across the borders "
    "of non-overlapping patches; residual: RMS of the discrete PDE residual; code: output "
    "coordinates; s: seconds for fit, training and inference."
)

_FORMATS = {"percent": "{:.3f}", "plain": "{:.4f}", "power": "{:.2e}", "short": "{:.3g}"}


@contextmanager
def progress_bar(label: str = "") -> Iterator[Reporter]:
    """Give a progress function that draws one bar per stage on stderr."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[remark]}"),
    )
    shown = _progress_console.is_terminal
    with Progress(*columns, console=_progress_console, transient=True, disable=not shown) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int, remark: str) -> None:
            if stage not in tasks:
                name = f"{label} {stage}".strip()
                tasks[stage] = bars.add_task(name, total=total, remark=remark)
            bars.update(tasks[stage], completed=done, remark=remark)

        yield report


def print_json(content: Any) -> None:
    """Print machine-readable output alone on stdout."""
    print(to_json(content))


def metric_cells(metrics: Mapping[str, Any]) -> list[str]:
    """Return the cells of one row of the metrics table."""
    flat = {**metrics, **metrics["common_seams"], "total": metrics["timings"].get("total")}
    return [_cell(flat.get(key), kind) for key, (_, kind) in COLUMNS.items()]


def _cell(value: Any, kind: str) -> str:
    if value is None:
        return "–"  # noqa: RUF001
    if kind == "count":
        return str(value)
    return _FORMATS[kind].format(100 * value if kind == "percent" else value)


def metrics_header() -> list[str]:
    """Return the headings of the metrics table."""
    return ["method", *(heading for heading, _ in COLUMNS.values())]


def print_metrics(rows: Mapping[str, Mapping[str, Any]], *, title: str = "") -> None:
    """Print one row of metrics per method."""
    table = Table(
        title=title or None, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
    )
    for position, heading in enumerate(metrics_header()):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    for name, metrics in rows.items():
        table.add_row(name, *metric_cells(metrics))
    console.print(table)
