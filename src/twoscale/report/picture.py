"""A figure with its caption and numbers, as PNG, SVG, and an address within a page."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

from matplotlib.figure import Figure

from twoscale.errors import missing_extra
from twoscale.report import figures
from twoscale.report.drawing import compact_svg

try:
    from markupsafe import Markup
    from PIL import Image
except ImportError as error:
    raise missing_extra(error.name or "pillow", "report") from error

_HALF = 6.2  # inches that fit into half of the page
_PLAIN = " !$'()*+,/:;<=>?@[]^`{|}"  # allowed in a data URL within double quotes
_QUALITY = 85  # of lossy WebP: letters stay sharp
_PIXELS = 96  # per inch, as browsers count


@dataclass(frozen=True)
class Numbers:
    """The numbers behind a picture or a row: a header and rows of text, and where they are from."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    @property
    def csv(self) -> str:
        """Return them as comma-separated values."""
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([self.header, *self.rows])
        return buffer.getvalue()

    @property
    def content(self) -> dict[str, object]:
        """Return them as the page stores them."""
        found = {"header": list(self.header), "rows": [list(row) for row in self.rows]}
        return found | ({"note": self.note} if self.note else {})


@dataclass(frozen=True)
class Picture:
    """A figure with its caption.

    The page shows a `vector` picture as SVG and any other one as WebP. It shows `numbers` on
    request. On a phone it shows the figure `narrow` instead, if there is one.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    vector: bool = False
    numbers: Numbers | None = None
    narrow: Figure | None = None

    @property
    def wide(self) -> bool:
        """Return whether the picture needs the page's whole width."""
        return bool(self.figure.get_figwidth() > _HALF)

    @property
    def inches(self) -> float:
        """Return the picture's width."""
        return round(float(self.figure.get_figwidth()), 1)

    @property
    def size(self) -> tuple[int, int]:
        """Return width and height in the pixels of a page."""
        width, height = self.figure.get_size_inches()
        return round(_PIXELS * width), round(_PIXELS * height)

    @cached_property
    def png(self) -> bytes:
        """Return the rendered picture."""
        return _rendered(self.figure, "png")

    @cached_property
    def svg(self) -> bytes:
        """Return the picture as a drawing."""
        return compact_svg(_rendered(self.figure, "svg"))

    def render(self) -> None:
        """Render the picture in both formats now, so that errors come early."""
        for kind in ("png", "svg"):
            getattr(self, kind)

    @cached_property
    def source(self) -> Markup:
        """Return the picture as a data URL, so that the page needs no other file."""
        if self.vector:
            return _svg_url(self.svg)
        buffer = io.BytesIO()
        Image.open(io.BytesIO(self.png)).convert("RGB").save(buffer, "webp", quality=_QUALITY)
        return Markup("data:image/webp;base64," + base64.b64encode(buffer.getvalue()).decode())

    @cached_property
    def narrow_source(self) -> Markup | None:
        """Return the drawing for phones as a data URL without spaces, which `srcset` needs."""
        if self.narrow is None:
            return None
        return Markup(_svg_url(compact_svg(_rendered(self.narrow, "svg"))).replace(" ", "%20"))

    def write(self, folder: Path, *, kinds: Sequence[str] = ("png",)) -> None:
        """Write the picture into a folder, as PNG or SVG or both, and its numbers as CSV."""
        for kind in kinds:
            content = self.svg if kind == "svg" else self.png
            (folder / f"{self.name}.{kind}").write_bytes(content)
        if self.numbers is not None:
            (folder / f"{self.name}.csv").write_text(self.numbers.csv, encoding="utf-8")


def _rendered(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    figures.save(figure, buffer, kind=kind)
    figure.set_layout_engine("none")  # the layout, which takes most of the time, is done
    return buffer.getvalue()


def _svg_url(svg: bytes) -> Markup:
    """Return an SVG as a data URL: text, which is a quarter smaller than base 64."""
    return Markup("data:image/svg+xml," + _inline(svg.decode()))


def _inline(svg: str) -> str:
    """Return an SVG as part of a URL: on one line, with quotes that need no escape."""
    root = svg[svg.index("<svg") :].replace("'", "&#39;").replace('"', "'")
    return quote(re.sub(r"\s+", " ", root), safe=_PLAIN)
