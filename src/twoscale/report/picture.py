"""A figure with its caption and its table: as PNG, small SVG, CSV, and an address within a page."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from itertools import zip_longest
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, ParamSpec
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np

from twoscale.errors import TwoscaleError, missing_extra
from twoscale.report.axes import Figure, chart_style, matplotlib
from twoscale.report.display import ABSENT
from twoscale.runtime.texts import short_number

try:
    from markupsafe import Markup
    from PIL import Image
except ImportError as error:
    raise missing_extra(error.name or "pillow", "report") from error

Arguments = ParamSpec("Arguments")
ChartValue = str | float | None

_HALF = 6.2  # inches that fit into half of the page
_PLAIN = " !$'()*+,/:;<=>?@[]^`{|}"  # allowed in a data URL within double quotes
_QUALITY = 85  # of lossy WebP: letters stay sharp
_PIXELS = 96  # per inch, as browsers count
_DIGITS = 5  # of a number below a chart
_MOST = 200  # letters of another library's message
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_COORDINATES = frozenset({"d", "x", "y", "width", "height", "transform", "points"})
_FONT = "text{font-family:DejaVu Sans,Verdana,sans-serif}"  # Verdana has the same widths
_FAMILY = re.compile(r"font-family: [^;]*;? ?")


@dataclass(frozen=True)
class ChartTable:
    """What a chart shows, or where a row is from: the picture, the numbers and the CSV follow.

    Values are numbers or words. What is None or not finite is shown as a dash.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[ChartValue]]
    note: str = ""

    @classmethod
    def of(cls, columns: Mapping[str, Iterable[ChartValue]], note: str = "") -> ChartTable:
        """Return a table of columns by their headings; short ones end with dashes."""
        return cls(list(columns), list(zip_longest(*columns.values())), note)

    def __getitem__(self, heading: str) -> np.ndarray:
        """Return the numbers under a heading (rows,)."""
        place = self.header.index(heading)
        return np.array([row[place] for row in self.rows], dtype=float)

    @property
    def lines(self) -> list[list[str]]:
        """Return the header and the rows as text."""
        return [list(self.header), *([_text(value) for value in row] for row in self.rows)]

    @property
    def csv(self) -> str:
        """Return them as comma-separated values."""
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows(self.lines)
        return buffer.getvalue()

    @property
    def content(self) -> dict[str, object]:
        """Return them as the page stores them."""
        header, *rows = self.lines
        return {"header": header, "rows": rows} | ({"note": self.note} if self.note else {})


def _text(value: ChartValue) -> str:
    """Return a value as text.

    >>> _text(0.01234567), _text(12), _text(True), _text(float("nan"))
    ('0.012346', '12', 'yes', '–')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool):
        return "yes" if value else "no"
    if value is None or not math.isfinite(value):
        return ABSENT
    return str(value) if isinstance(value, Integral) else short_number(value, _DIGITS)


@dataclass(frozen=True)
class Picture:
    """A figure with its caption.

    The page shows a `vector` picture as SVG and any other one as WebP. It shows the `table` on
    request. On a phone it shows the figure `narrow` instead, if there is one.
    """

    name: str
    title: str
    caption: str
    figure: Figure
    vector: bool = False
    table: ChartTable | None = None
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
        """Write the picture into a folder, as PNG or SVG or both, and its table as CSV."""
        for kind in kinds:
            content = self.svg if kind == "svg" else self.png
            (folder / f"{self.name}.{kind}").write_bytes(content)
        if self.table is not None:
            (folder / f"{self.name}.csv").write_text(self.table.csv, encoding="utf-8")


class Drawing(NamedTuple):
    """A figure, the table that it shows, and what else is to say below it.

    On a phone the figure `narrow` is shown instead, if there is one.
    """

    figure: Figure
    table: ChartTable | None = None
    more: str = ""
    narrow: Figure | None = None


@dataclass(frozen=True)
class PicturePlan:
    """A picture that is not drawn yet: its words, and what draws it."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Drawing]
    vector: bool = True

    def picture(self, prefix: str = "") -> Picture:
        """Return the drawn picture, or raise a TwoscaleError that says why it cannot be drawn."""
        with reporting_errors({}), warnings.catch_warnings(), chart_style():
            warnings.simplefilter("ignore")  # letters that the font lacks, empty axes
            figure, table, more, narrow = self.draw()
            caption = f"{self.caption} {more}".strip()
            words = (f"{prefix}{self.name}", self.title, caption)
            drawn = Picture(*words, figure, self.vector, table, narrow)
            _ = drawn.source
        return drawn


def chart(
    title: str, *, vector: bool = True
) -> Callable[[Callable[Arguments, Drawing]], Callable[Arguments, PicturePlan]]:
    """Return a decorator of a function that draws: it then plans a picture instead.

    The function's name is that of the picture, its docstring the caption.
    """

    def decorate(draw: Callable[Arguments, Drawing]) -> Callable[Arguments, PicturePlan]:
        name, caption = draw.__name__.replace("_", "-"), " ".join((draw.__doc__ or "").split())

        @wraps(draw)
        def plan(*arguments: Arguments.args, **options: Arguments.kwargs) -> PicturePlan:
            make = partial(draw, *arguments, **options)
            return PicturePlan(name, title, caption, make, vector)

        return plan

    return decorate


def _rendered(figure: Figure, kind: str) -> bytes:
    buffer = io.BytesIO()
    save_figure(figure, buffer, kind=kind)
    figure.set_layout_engine("none")  # the layout, which takes most of the time, is done
    return buffer.getvalue()


def _svg_url(svg: bytes) -> Markup:
    """Return an SVG as a data URL: text, which is a quarter smaller than base 64."""
    return Markup("data:image/svg+xml," + _inline(svg.decode()))


def _inline(svg: str) -> str:
    """Return an SVG as part of a URL: on one line, with quotes that need no escape."""
    root = svg[svg.index("<svg") :].replace("'", "&#39;").replace('"', "'")
    return quote(re.sub(r"\s+", " ", root), safe=_PLAIN)


def save_figure(figure: Figure, file: Path | BinaryIO, *, kind: str = "png") -> None:
    """Write a figure as PNG or SVG, the same bytes for the same figure.

    The text of an SVG stays text, which is small and can be searched and selected.
    """
    with matplotlib.rc_context({"svg.hashsalt": "twoscale", "svg.fonttype": "none"}):
        date = {"Date": None} if kind == "svg" else {}
        figure.savefig(file, format=kind, dpi=130, metadata=date)


@contextmanager
def reporting_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Turn any error while a figure of these options is made into a TwoscaleError.

    Options come from a user's YAML file and numbers from a record. The functions that draw check
    neither, so that NumPy or Matplotlib raise errors of many types.
    """
    try:
        yield
    except TwoscaleError:
        raise
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST]
        reason = "options are wrong" if options else "numbers cannot be drawn"
        raise TwoscaleError(f"its {reason}: {said}") from error


def compact_svg(svg: bytes) -> bytes:
    """Return Matplotlib's SVG with the same shapes in a fraction of its size.

    Metadata, names of groups and groups without attributes are left out. Coordinates are rounded
    to a hundredth of a point. Styles become classes.
    """
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(svg)
    for one in root.findall(f"{{{_SVG}}}metadata"):
        root.remove(one)
    for one in root.iter():
        _shorten(one)
    _unwrap(root)
    sheet = root.find(f".//{{{_SVG}}}style")
    if sheet is not None:
        sheet.text = (sheet.text or "") + _FONT + _classes(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def _shorten(one: ElementTree.Element) -> None:
    """Round an element's coordinates, and drop names and styles that change nothing."""
    if one.tag == f"{{{_SVG}}}g":
        one.attrib.pop("id", None)
    for name in _COORDINATES & one.attrib.keys():
        one.attrib[name] = _rounded(one.attrib[name])
    if one.attrib.get("transform", "").startswith("rotate(-0 "):
        del one.attrib["transform"]
    if "style" in one.attrib:
        one.attrib["style"] = _FAMILY.sub("", one.attrib["style"]).strip("; ")
    one.tail = ""
    if one.tag not in (f"{{{_SVG}}}{name}" for name in ("text", "tspan", "style")):
        one.text = ""


def _rounded(text: str) -> str:
    """Return coordinates with two decimals and no space that is not needed.

    >>> _rounded("M 102.61345 170.6 L 1.50000 -0.001 ")
    'M102.61 170.6L1.5 0'
    """
    short = re.sub(r"-?\d+\.\d+", lambda found: f"{round(float(found[0]), 2) + 0:g}", text)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", re.sub(r"\s+", " ", short)).strip()


def _unwrap(parent: ElementTree.Element) -> None:
    """Replace groups without attributes by their children."""
    children = list(parent)
    for one in children:
        _unwrap(one)
    kept: list[ElementTree.Element] = []
    for one in children:
        bare = one.tag == f"{{{_SVG}}}g" and not one.attrib
        kept += list(one) if bare else [one]
    parent[:] = kept


def _classes(root: ElementTree.Element) -> str:
    """Replace styles that occur several times by classes, and return their definitions."""
    counts = Counter(one.attrib["style"] for one in root.iter() if "style" in one.attrib)
    often = [style for style, count in counts.most_common() if count > 1 and style]
    names = {style: f"s{number}" for number, style in enumerate(often)}
    for one in root.iter():
        style = one.attrib.get("style")
        if style == "":
            del one.attrib["style"]
        elif style in names:
            del one.attrib["style"]
            one.attrib["class"] = names[style]
    return "".join(f".{name}{{{style.replace(': ', ':')}}}" for style, name in names.items())
