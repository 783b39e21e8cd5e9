"""What the terminal shows: progress, sentences, tables, JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from twoscale.cli.terminal import (
    is_quiet,
    print_answer,
    print_coloured,
    print_table,
    say,
    terminal_width,
    wrap,
)
from twoscale.data.check import Finding
from twoscale.data.places import Place
from twoscale.files import to_json
from twoscale.report.display import metric_cells, metric_header
from twoscale.report.trust_words import break_even_text, trust_text
from twoscale.runtime.progress import Progress, progress_bars
from twoscale.search.trials import CAPTION, HEADINGS, table_rows


def progress_bar(label: str = "", *, over: str | None = None) -> AbstractContextManager[Progress]:
    """Give a progress function that draws one bar per stage on stderr, if that is a terminal.

    With `over`, the name of a stage such as the seconds of a search, there is one bar for it and
    one for what runs now, on files too. A quiet command draws nothing.
    """
    if is_quiet():
        return nullcontext(lambda stage, done, total, remark: None)
    return progress_bars(label, over=over, terminal_only=over is None)


def print_search(record: Mapping[str, Any]) -> None:
    """Print one row per candidate of a search, and its explanation of the choice."""
    say(f"{CAPTION}; * is the chosen one")
    print_table(HEADINGS, table_rows(record), words=2)
    for sentence in record["explanation"]:
        say(sentence)
    print()


def print_json(content: Any) -> None:
    """Print machine-readable output alone on stdout."""
    print_answer(to_json(content))


def print_outcome(
    sentence: str, out: Place, content: Mapping[str, Any], *more: str, json: bool
) -> None:
    """Print where a result is: in sentences, as JSON, or for a quiet command the path alone."""
    if json:
        print_json({"out": str(out), **content})
    elif is_quiet():
        print_answer(out)
    else:
        for one in (sentence, *more):
            say(one)


def print_metrics(rows: Mapping[str, Mapping[str, Any]], *, title: str) -> None:
    """Print one row of metrics per method; of several channels, one more for each channel."""
    cells = []
    for name, metrics in rows.items():
        cells.append([name, *metric_cells(metrics)])
        for channel, values in metrics.get("channels", {}).items():
            cells.append([f"  {channel}", *metric_cells(values)])
    say(title)
    print_table(metric_header(), cells)
    for sentence in _trust_texts(rows):
        say(sentence)


def _trust_texts(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return what metrics say of trust: of one row all, of several the radii with their names."""
    if len(rows) == 1:
        (metrics,) = rows.values()
        found = [trust_text(metrics), break_even_text(metrics)]
    else:
        told = {name: trust_text(metrics) for name, metrics in rows.items()}
        found = [f"{name}: {sentence}" for name, sentence in told.items() if sentence]
    return [sentence for sentence in found if sentence]


def show_metrics(
    rows: Mapping[str, Mapping[str, Any]], json: bool, title: str, out: Path | None = None
) -> None:
    """Print rows of metrics as a table, or the first of them as JSON; `out` is the run, if new."""
    if json:
        written = {} if out is None else {"out": str(out)}
        print_json({**written, **next(iter(rows.values()))})
    elif is_quiet() and out is not None:
        print_answer(out)
    else:
        print_metrics(rows, title=title)


def print_findings(findings: Sequence[Finding]) -> None:
    """Print levels and messages, the levels in colour."""
    colours = {"ok": "green", "note": "cyan", "warning": "yellow", "error": "red"}
    indent = len("warning ")
    for finding in findings:
        sentence = f"{finding.level:<{indent}}{finding.text}"
        text = wrap(sentence, terminal_width(), indent=indent)
        print_coloured(text, colours[finding.level], len(finding.level))
