"""What the terminal shows: progress, tables, JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from statistics import median
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

from twoscale.bench import Comparison
from twoscale.files import to_json
from twoscale.report import tables
from twoscale.runtime.progress import Progress as Reporter
from twoscale.search.record import HEADINGS, table_rows


@contextmanager
def progress_bar(label: str = "") -> Iterator[Reporter]:
    """Give a progress function that draws one bar per stage on stderr, if that is a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[remark]}"),
    )
    console = Console(stderr=True)
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int, remark: str) -> None:
            if stage not in tasks:
                name = f"{label} {stage}".strip()
                tasks[stage] = bars.add_task(name, total=total, remark=remark)
            bars.update(tasks[stage], completed=done, remark=remark)

        yield report


def study_bars(label: str) -> AbstractContextManager[Reporter]:
    """Give a progress function with one bar over the cells of a study and one for what runs now."""
    return _nested_bars(label, "cells")


def search_bars() -> AbstractContextManager[Reporter]:
    """Give a progress function with one bar over a search's seconds and one for what runs now."""
    return _nested_bars("search", "seconds")


@contextmanager
def _nested_bars(label: str, over: str) -> Iterator[Reporter]:
    """Give a progress function with one bar over the stage `over` and one for all others.

    Where stderr is no terminal, a line is written there for every step of that stage instead.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        # These are never cut off; the time moves even without a report.
        MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=len("100/300"))),
        TimeElapsedColumn(table_column=Column(no_wrap=True, min_width=len("0:00:00"))),
        TextColumn("{task.fields[remark]}"),
    )
    shown = console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as bars:
        outer = bars.add_task(label, total=None, remark="")
        inside = bars.add_task("", total=None, remark="", visible=False)

        def report(stage: str, done: int, total: int, remark: str) -> None:
            if stage != over:
                bars.update(
                    inside,
                    description=f"  {stage}",
                    completed=done,
                    total=total,
                    remark=remark,
                    visible=True,
                )
                return
            bars.update(outer, completed=done, total=total, remark=remark)
            bars.update(inside, visible=False)  # until it tells something
            if not shown:
                line = f"{label}: {done} of {total} {over}, {remark}".rstrip(", ")
                print(line, file=sys.stderr, flush=True)

        yield report


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print rows of text under headings; the first `words` columns to the left, others right."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for position, heading in enumerate(headings):
        table.add_column(heading, justify="left" if position < words else "right", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def print_search(record: Mapping[str, Any]) -> None:
    """Print one row per candidate of a search, and its explanation of the choice."""
    print("Relative L2 errors of the validation fields in %; * is the chosen one")
    print_table(HEADINGS, table_rows(record), words=2)
    for sentence in record["explanation"]:
        print(sentence)
    print()


def print_json(content: Any) -> None:
    """Print machine-readable output alone on stdout."""
    print(to_json(content))


def print_metrics(rows: Mapping[str, Mapping[str, Any]], *, title: str) -> None:
    """Print one row of metrics per method; of several channels, one more for each channel."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for position, heading in enumerate(tables.header()):
        table.add_column(heading, justify="right" if position else "left", no_wrap=True)
    for name, metrics in rows.items():
        table.add_row(Text(name), *tables.cells(metrics))
        for channel, values in metrics.get("channels", {}).items():
            table.add_row(Text(f"  {channel}"), *tables.cells(values))
    print(title)
    Console().print(table)


def show_metrics(rows: Mapping[str, Mapping[str, Any]], json: bool, title: str) -> None:
    """Print rows of metrics as a table, or the first of them as JSON."""
    if json:
        print_json(next(iter(rows.values())))
    else:
        print_metrics(rows, title=title)


def print_findings(rows: list[tuple[str, str]]) -> None:
    """Print levels and messages, the levels in colour."""
    colours = {"ok": "green", "note": "cyan", "warning": "yellow", "error": "red"}
    table = Table(show_header=False, box=None)
    for level, message in rows:
        table.add_row(Text(level, style=colours[level]), Text(message))
    Console().print(table)


def print_comparisons(results: Sequence[Comparison]) -> None:
    """Print one row per benchmark: ours, the peer's, the ratio with its spread, the agreement."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for heading in ("benchmark", "peer", "ours", "peer's", "ratio", "spread", "agreement"):
        table.add_column(heading, overflow="fold")
    for result in results:
        low, high = result.spread
        table.add_row(
            result.name,
            result.peer,
            f"{median(result.seconds):.3g} {result.label}",
            f"{median(result.peer_seconds):.3g}",
            f"{result.ratio:.3g}",
            f"{low:.3g} to {high:.3g}",
            ", ".join(f"{name} {value:.3g}" for name, value in result.agreement.items()),
        )
    Console().print(table)
