"""Text that fits a width: words stay whole, tables become records where they do not fit."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import zip_longest

Rows = Sequence[Sequence[str]]

_GAP = 2  # spaces between columns
_READABLE = 12  # a column of text is not made narrower than this


def wrap(text: str, width: int | None, *, indent: int = 0) -> list[str]:
    """Return the lines of a text; it is broken at spaces only, and not at all without a width.

    Lines after the first are indented. A word that is longer than the width stays whole.
    """
    if width is None or len(text) <= width:
        return [text]
    return textwrap.wrap(
        text,
        max(width, indent + 1),
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [""]


def table_lines(
    headings: Sequence[str], rows: Rows, *, words: int = 1, width: int | None = None
) -> list[str]:
    """Return the lines of a table; the first `words` columns hold text, the others numbers.

    Where a table is wider than `width`, text is wrapped at spaces. Where that is not enough, every
    row becomes a record: its first cell, and a line `heading: value` for each of the others.
    """
    widths = _column_widths(headings, rows, words, width)
    if widths is None:
        return _records(headings, rows, width)
    lines = _row_lines(headings, widths, words, wrapped=len(headings))
    lines.append("─" * (sum(widths) + _GAP * (len(widths) - 1)))
    for row in rows:
        lines += _row_lines(row, widths, words, wrapped=words)
    return lines


def _column_widths(
    headings: Sequence[str], rows: Rows, words: int, width: int | None
) -> list[int] | None:
    """Return how wide each column is, None if the table cannot be made to fit."""
    columns = list(zip(headings, *rows, strict=True))
    widest = [max(map(len, column)) for column in columns]
    if width is None:
        return widest
    least = [
        min(most, max(_longest_word(column), _READABLE))
        if position < words
        else max(_longest_word(column[:1]), *map(len, column[1:]), 1)
        for position, (column, most) in enumerate(zip(columns, widest, strict=True))
    ]
    room = width - _GAP * (len(columns) - 1)
    if sum(least) > room:
        return None
    while sum(widest) > room:  # take from the widest column that can give
        giving = [place for place in range(len(widest)) if widest[place] > least[place]]
        widest[max(giving, key=lambda place: widest[place])] -= 1
    return widest


def _longest_word(texts: Sequence[str]) -> int:
    return max((len(word) for text in texts for word in text.split()), default=0)


def _row_lines(cells: Sequence[str], widths: list[int], words: int, *, wrapped: int) -> list[str]:
    """Return the lines of one row; text to the left, numbers to the right."""
    parts = [
        wrap(cell, width) if position < wrapped else [cell]
        for position, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    lines = []
    for pieces in zip_longest(*parts, fillvalue=""):
        aligned = [
            piece.ljust(width) if position < words else piece.rjust(width)
            for position, (piece, width) in enumerate(zip(pieces, widths, strict=True))
        ]
        lines.append((" " * _GAP).join(aligned).rstrip())
    return lines


def _records(headings: Sequence[str], rows: Rows, width: int | None) -> list[str]:
    lines: list[str] = []
    for row in rows:
        if lines:
            lines.append("")
        lines += wrap(row[0], width, indent=2)
        for heading, cell in zip(headings[1:], row[1:], strict=True):
            if cell:
                pair = wrap(f"{heading}: {cell}", width and max(1, width - 2), indent=2)
                lines += [f"  {line}" for line in pair]
    return lines
