"""One self-contained HTML page from text, tables and pictures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from twoscale.errors import missing_extra
from twoscale.report.picture import Numbers, Picture

try:
    from jinja2 import Environment, PackageLoader
except ImportError as error:
    raise missing_extra(error.name or "jinja2", "report") from error

_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?(?![\w.])")  # page.js has the same

__all__ = ["Cell", "Numbers", "Picture", "Row", "Section", "Step", "Table", "Tile", "page_text"]


@dataclass(frozen=True)
class Cell:
    """A cell of a table: text, sort key, and the paper's number with a verdict."""

    text: str
    sort: float | None = None
    paper: str = ""
    verdict: str = ""  # match, off or missing
    note: str = ""  # shown on hovering, read by screen readers


@dataclass(frozen=True)
class Row:
    """A row of a table, and the origin of its numbers, which a click shows."""

    cells: Sequence[Cell]
    origin: Numbers | None = None


@dataclass(frozen=True)
class Table:
    """Rows under a header, a caption above and a note below."""

    header: Sequence[str]
    rows: Sequence[Row]
    title: str = ""
    note: str = ""
    words: Sequence[int] = (0,)  # columns that hold words, not numbers

    @classmethod
    def of_text(cls, header: Sequence[str], rows: Sequence[Sequence[str]], **options: Any) -> Table:
        """Return a table of nothing but text."""
        return cls(header, [Row([Cell(text) for text in row]) for row in rows], **options)


@dataclass(frozen=True)
class Step:
    """A thing to do, in words, and the command for it."""

    text: str
    command: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page: question, steps, tables, pictures, tables that are hidden at first.

    A section with `fold` shows only its title and lead until it is opened.
    """

    title: str
    lead: str = ""
    facts: Sequence[tuple[str, str]] = ()
    steps: Sequence[Step] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    remarks: Sequence[str] = ()
    folded: Sequence[Table] = ()
    fold: bool = False
    anchor: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Tile:
    """A number at the top of the page."""

    value: str
    words: str


def page_text(
    *,
    title: str,
    summary: Sequence[str],
    sections: Sequence[Section],
    footer: str,
    tiles: Sequence[Tile] = (),
    first: Picture | None = None,
    best: Sequence[str] = (),
) -> str:
    """Return the page's text.

    The page starts with the result in words, `best`, and its `first` picture. The numbers of
    `tiles` and the sentences of `summary` follow, then the sections.
    """
    environment = Environment(
        loader=PackageLoader("twoscale", "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    origins = _origins(sections)
    environment.filters["sort_key"] = _sort_key
    text = environment.get_template("page.html").render(
        origins=[one.content for one in origins.values()],
        places={key: place for place, key in enumerate(origins)},
        identity=id,
        title=title,
        summary=summary,
        sections=sections,
        footer=footer,
        tiles=tiles,
        first=first,
        best=best,
    )
    text = re.sub(r"\s+(?=<t[hdr]\b)", "", text)
    return re.sub(r"\n\s+", "\n", text.strip()) + "\n"  # indentation is half of a large page


def _origins(sections: Sequence[Section]) -> dict[int, Numbers]:
    """Return the origins of all rows by identity; rows of the same case share one."""
    return {
        id(row.origin): row.origin
        for section in sections
        for table in (*section.tables, *section.folded)
        for row in table.rows
        if row.origin is not None
    }


def _sort_key(cell: Cell) -> str:
    """Return the number by which a cell is sorted; empty if the text starts with it."""
    return "" if cell.sort is None or _NUMBER.match(cell.text) else f"{cell.sort:.6g}"
