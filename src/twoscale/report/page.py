"""One self-contained HTML page from text, tables and pictures."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

from matplotlib.figure import Figure

from twoscale.errors import missing_extra
from twoscale.report import figures

try:
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup
    from PIL import Image
except ImportError as error:
    raise missing_extra(error.name or "jinja2", "report") from error

_HALF = 6.2  # inches that fit into half of the page
_PLAIN = " !$'()*+,/:;<=>?@[]^`{|}"  # allowed in a data URL within double quotes


@dataclass(frozen=True)
class Picture:
    """A figure with its caption.

    The page shows a `vector` picture as SVG and any other one as WebP.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    vector: bool = False

    @property
    def wide(self) -> bool:
        """Return whether the picture needs the page's whole width."""
        return bool(self.figure.get_figwidth() > _HALF)

    @cached_property
    def png(self) -> bytes:
        """Return the rendered picture."""
        return self._rendered("png")

    @cached_property
    def svg(self) -> bytes:
        """Return the picture as a drawing."""
        return re.sub(rb"<!--.*?-->|(?<=\n) +", b"", self._rendered("svg"))

    def render(self) -> None:
        """Render the picture in both formats now, so that errors come early."""
        for kind in ("png", "svg"):
            getattr(self, kind)

    def _rendered(self, kind: str) -> bytes:
        buffer = io.BytesIO()
        figures.save(self.figure, buffer, kind=kind)
        self.figure.set_layout_engine("none")  # the layout, which takes most of the time, is done
        return buffer.getvalue()

    @property
    def source(self) -> Markup:
        """Return the picture as a data URL, so that the page needs no other file.

        SVG is written as text, which is a quarter smaller than in base 64. Pixels are written as
        lossless WebP, which is a third smaller than PNG.
        """
        if self.vector:
            return Markup("data:image/svg+xml," + _inline(self.svg.decode()))
        buffer = io.BytesIO()
        Image.open(io.BytesIO(self.png)).convert("RGB").save(buffer, "webp", lossless=True)
        return Markup("data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode())

    def write(self, folder: Path, *, kinds: Sequence[str] = ("png",)) -> None:
        """Write the picture into a folder, as PNG or SVG or both."""
        for kind in kinds:
            content = self.svg if kind == "svg" else self.png
            (folder / f"{self.name}.{kind}").write_bytes(content)


def _inline(svg: str) -> str:
    """Return an SVG as part of a URL: on one line, without its metadata."""
    root = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    if "'" not in root:
        root = root.replace('"', "'")  # a double quote would be written as %22
    return quote(re.sub(r"\s+", " ", root), safe=_PLAIN)


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
    origin: Table | None = None


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
class Section:
    """A part of the page: question, tables, pictures, and tables that are hidden at first."""

    title: str
    lead: str = ""
    facts: Sequence[tuple[str, str]] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    remarks: Sequence[str] = ()
    folded: Sequence[Table] = ()
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
) -> str:
    """Return the page's text."""
    environment = Environment(
        loader=PackageLoader("twoscale", "report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("page.html").render(
        title=title, summary=summary, sections=sections, footer=footer, tiles=tiles
    )
    return re.sub(r"\n\s+", "\n", text.strip()) + "\n"  # indentation is half of a large page
