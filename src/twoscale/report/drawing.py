"""Figures as small SVG: text stays text, coordinates are short, styles are written once."""

from __future__ import annotations

import re
from collections import Counter
from xml.etree import ElementTree

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_COORDINATES = frozenset({"d", "x", "y", "width", "height", "transform", "points"})
_FONT = "text{font-family:DejaVu Sans,Verdana,sans-serif}"  # Verdana has the same widths
_FAMILY = re.compile(r"font-family: [^;]*;? ?")


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
