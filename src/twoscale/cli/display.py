"""What the terminal shows: progress, sentences, tables, JSON."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TextIO

from twoscale.cli.layout import table_lines, wrap
from twoscale.cli.quiet import is_quiet, print_answer
from twoscale.data.check import Finding
from twoscale.data.places import Place
from twoscale.errors import missing_extra
from twoscale.files import to_json
from twoscale.report.display import metric_cells, metric_header
from twoscale.report.trust_words import break_even_text, trust_text
from twoscale.runtime.progress import Progress, progress_bars
from twoscale.search.record import CAPTION, HEADINGS, table_rows

try:
    from rich.console import Console
    from rich.text import Text
except ImportError as error:
    raise missing_extra(error.name or "rich", "cli") from error


class _Terminal(Console):
    """A console that passes on that nobody reads it; by itself it would exit with an error."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def progress_bar(label: str = "") -> AbstractContextManager[Progress]:
    """Give a progress function that draws one bar per stage on stderr, if that is a terminal."""
    return bars(label, terminal_only=True)


def search_bars() -> AbstractContextManager[Progress]:
    """Give a progress function with one bar over a search's seconds and one for what runs now."""
    return bars("search", over="seconds")


def bars(label: str, **options: Any) -> AbstractContextManager[Progress]:
    """Give a progress function; a quiet command draws nothing."""
    return nullcontext(_ignore) if is_quiet() else progress_bars(label, **options)


def _ignore(stage: str, done: int, total: int, remark: str) -> None:
    pass


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal that a stream is, None if it is a file or a pipe."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def say(text: str) -> None:
    """Print a sentence; on a terminal its lines end between words."""
    print("\n".join(wrap(text, terminal_width())))


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print rows of text under headings; the first `words` columns to the left, others right."""
    print()
    print("\n".join(table_lines(headings, rows, words=words, width=terminal_width())))
    print()


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


def print_outcome(sentence: str, out: Place, content: Mapping[str, Any], *, json: bool) -> None:
    """Print where a result is: in a sentence, as JSON, or for a quiet command the path alone."""
    if json:
        print_json({"out": str(out), **content})
    elif is_quiet():
        print_answer(out)
    else:
        say(sentence)


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
    console, indent = _Terminal(), len("warning ")
    for finding in findings:
        sentence = f"{finding.level:<{indent}}{finding.text}"
        lines = wrap(sentence, terminal_width(), indent=indent)
        text = Text("\n".join(lines))
        text.stylize(colours[finding.level], 0, len(finding.level))
        console.print(text, soft_wrap=True)
