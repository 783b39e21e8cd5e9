"""One self-contained HTML page from text, tables and pictures."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from twoscale.errors import TwoscaleError, missing_extra
from twoscale.report.picture import ChartTable, Picture, PicturePlan

try:
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup
except ImportError as error:
    raise missing_extra(error.name or "jinja2", "report") from error

GENERATOR = '<meta name="generator" content="twoscale">'
"""Which every page has; a page without it is somebody else's."""

_NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?(?![\w.])")  # page.js has the same

__all__ = [
    "ChartTable",
    "PageTable",
    "Picture",
    "Section",
    "TableCell",
    "Tile",
    "page_text",
]


@dataclass(frozen=True)
class TableCell:
    """A cell of a table: text, sort key, and the paper's number with a verdict."""

    text: str
    sort: float | None = None
    paper: str = ""
    verdict: str = ""  # match, off or missing
    note: str = ""  # shown on hovering, read by screen readers


@dataclass(frozen=True)
class PageTable:
    """Rows under a header, a caption above and a note below.

    `words` are the columns that hold words, not numbers. `origins` say of each row where its
    numbers are from, which a click shows.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[TableCell | str]]
    title: str = ""
    note: str = ""
    words: Sequence[int] = (0,)
    origins: Sequence[ChartTable | None] = ()

    @property
    def cells(self) -> list[list[TableCell]]:
        return [[TableCell(c) if isinstance(c, str) else c for c in row] for row in self.rows]

    @property
    def texts(self) -> list[list[str]]:
        return [[cell.text for cell in row] for row in self.cells]


@dataclass(frozen=True)
class Section:
    """A part of the page: question, steps, tables, pictures, tables that are hidden at first.

    `steps` are things to do, in words, and the commands for them. `charts` are drawn after the
    pictures. A section with `fold` shows only its title and lead until it is opened.
    """

    title: str
    lead: str = ""
    facts: Sequence[tuple[str, str]] = ()
    steps: Sequence[tuple[str, str]] = ()
    tables: Sequence[PageTable] = ()
    pictures: Sequence[Picture] = ()
    remarks: Sequence[str] = ()
    folded: Sequence[PageTable] = ()
    fold: bool = False
    anchor: str = field(default="", kw_only=True)
    charts: Sequence[PicturePlan] = field(default=(), kw_only=True)

    def drawn(self, prefix: str = "", room: float = math.inf, elsewhere: str = "") -> Section:
        """Return the same with its charts as pictures; one that cannot be drawn is a remark.

        Pictures that have no room, in letters of the page, are left out: `elsewhere` says where
        they are.
        """
        pictures, remarks = list(self.pictures), list(self.remarks)
        for place, chart in enumerate(self.charts):
            try:
                picture = chart.picture(prefix)
            except TwoscaleError as error:
                remarks.append(f"Not drawn: {chart.title} ({error}).")
                continue
            room -= len(picture.source)
            if room < 0:
                left = len(self.charts) - place
                remarks.append(f"{left} pictures are left out to keep the page small: {elsewhere}.")
                break
            pictures.append(picture)
        return replace(self, charts=(), pictures=pictures, remarks=remarks)


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
        generator=Markup(GENERATOR),
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


def _origins(sections: Sequence[Section]) -> dict[int, ChartTable]:
    """Return the origins of all rows by identity; rows of the same case share one."""
    return {
        id(origin): origin
        for section in sections
        for table in (*section.tables, *section.folded)
        for origin in table.origins
        if origin is not None
    }


def _sort_key(cell: TableCell) -> str:
    """Return the number by which a cell is sorted; empty if the text starts with it."""
    return "" if cell.sort is None or _NUMBER.match(cell.text) else f"{cell.sort:.6g}"
