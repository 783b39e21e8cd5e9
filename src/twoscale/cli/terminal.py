"""What is printed: sentences and tables that fit the terminal, and answers of quiet commands."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any, TextIO

from twoscale.errors import missing_extra

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_UNLIMITED = 100_000  # columns of a file or a pipe

_answers: list[TextIO] = []  # where a quiet command writes its answer; empty if it is not quiet


def is_quiet() -> bool:
    """Say whether only errors and the answer are to be shown."""
    return bool(_answers)


@contextmanager
def muted() -> Iterator[None]:
    """Drop everything that the block prints to stdout, but for answers."""
    _answers.append(sys.stdout)
    try:
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(nowhere):
            yield
    finally:
        _answers.pop()


def print_answer(text: object) -> None:
    """Print what was asked for: JSON, or the path of the result of a quiet command."""
    print(text, file=_answers[-1] if _answers else None)


def terminal_width(stream: TextIO | None = None) -> int | None:
    """Return the columns of the terminal that a stream is, None if it is a file or a pipe."""
    return shutil.get_terminal_size().columns if (stream or sys.stdout).isatty() else None


def wrap(text: str, width: int | None, *, indent: int = 0) -> str:
    """Return a text in lines of at most `width`; it is broken at spaces only.

    Lines after the first are indented. Without a width the text stays one line.
    """
    if width is None:
        return text
    return textwrap.fill(
        text,
        max(width, indent + 1),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def say(text: str) -> None:
    """Print a sentence; on a terminal its lines end between words."""
    print(wrap(text, terminal_width()))


def table_text(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: int = 1,
    width: int | None = None,
) -> str:
    """Return a table; the first `words` columns hold text, the others numbers.

    Where it is wider than `width`, text is wrapped at spaces. Where that is not enough, every row
    becomes a record: its first cell, and a line `heading: value` for each of the others.
    """
    from rich.measure import Measurement

    console = _console(width)
    unlimited = console.options.update(width=_UNLIMITED)
    for wraps in (False, True):
        table = _table(headings, rows, words, wraps=wraps)
        if Measurement.get(console, unlimited, table).maximum <= console.width:
            return _rendered(console, table)
    return "\n\n".join("\n".join(_record(headings, row, width)) for row in rows)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, words: int = 1) -> None:
    """Print rows of text under headings; the first `words` columns to the left, others right."""
    print(f"\n{table_text(headings, rows, words=words, width=terminal_width())}\n")


def print_coloured(text: str, colour: str, length: int) -> None:
    """Print a text whose first characters are in colour, if this is a terminal that has any."""
    from rich.text import Text

    coloured = Text(text)
    coloured.stylize(colour, 0, length)
    print(_rendered(_console(None), coloured))


def _console(width: int | None) -> Console:
    try:
        from rich.console import Console
    except ImportError as error:
        raise missing_extra(error.name or "rich", "cli") from error
    look: dict[str, Any] = {"markup": False, "highlight": False, "emoji": False}
    terminal = sys.stdout.isatty()  # which rich does not write to: it would end where nobody reads
    return Console(file=StringIO(), force_terminal=terminal, width=width or _UNLIMITED, **look)


def _rendered(console: Console, content: RenderableType) -> str:
    """Return the text of something of rich's, without spaces at the ends of its lines."""
    console.print(content)
    assert isinstance(console.file, StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def _table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], words: int, *, wraps: bool
) -> Table:
    """Return a table; one that wraps is as wide as the terminal, and breaks no word."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    look: dict[str, Any] = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False}
    table = Table(**look, header_style="", expand=wraps)
    for position, column in enumerate(zip(headings, *rows, strict=True)):
        if position >= words:
            table.add_column(column[0], justify="right", no_wrap=True)
        elif wraps:
            longest = max((len(word) for text in column for word in text.split()), default=0)
            table.add_column(column[0], width=longest, ratio=max(map(len, column)))
        else:
            table.add_column(column[0])
    for row in rows:
        table.add_row(*row)
    return table


def _record(headings: Sequence[str], row: Sequence[str], width: int | None) -> list[str]:
    pairs = zip(headings[1:], row[1:], strict=True)
    lines = [f"  {heading}: {cell}" for heading, cell in pairs if cell]
    return [wrap(row[0], width, indent=2), *(wrap(line, width, indent=4) for line in lines)]
