"""One self-contained HTML page from tables and pictures."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from matplotlib.figure import Figure

from twoscale.errors import missing_extra
from twoscale.report import figures

try:
    from jinja2 import Environment, PackageLoader
except ImportError as error:
    raise missing_extra("jinja2", "report") from error


@dataclass(frozen=True)
class Picture:
    """A figure with the sentence that says what to see in it."""

    name: str
    title: str
    caption: str
    figure: Figure

    @cached_property
    def png(self) -> bytes:
        """Return the rendered picture."""
        buffer = io.BytesIO()
        figures.save(self.figure, buffer)
        return buffer.getvalue()

    @property
    def source(self) -> str:
        """Return the picture as a data address, so that the page needs no other file."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


@dataclass(frozen=True)
class Table:
    """Rows of text under a header, and what the header means; cells come formatted."""

    header: list[str]
    rows: list[list[str]]
    note: str = ""


def write_page(
    path: Path, *, title: str, summary: str, table: Table, pictures: list[Picture], footer: str
) -> None:
    """Write the page."""
    environment = Environment(loader=PackageLoader("twoscale", "report"), autoescape=True)
    template = environment.get_template("page.html")
    text = template.render(
        title=title, summary=summary, table=table, pictures=pictures, footer=footer
    )
    path.write_text(text, encoding="utf-8")
