"""The page as one text: markup, styles, scripts and data, without any address outside."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "numerics.js",
    "representations.js",
    "model.js",
    "solver.js",
    "certificate.js",
    "trust.js",
    "worker.js",
    "npy.js",
    "colours.js",
    "input.js",
    "state.js",
    "compute.js",
    "links.js",
    "panels.js",
    "specs.js",
    "cards.js",
    "profile.js",
    "pointers.js",
    "controls.js",
    "actions.js",
    "main.js",
)
"""The scripts in the order in which they run; each defines one name."""


def page_text(data: dict[str, Any], title: str) -> str:
    """Return the page that shows some runs."""
    front = files("twoscale.explore") / "front"
    colours = (files("twoscale.report") / "colours.css").read_text(encoding="utf-8")
    scripts = "\n".join(
        f'<script id="{name}">\n{(front / name).read_text(encoding="utf-8")}</script>'
        for name in SCRIPTS
    )
    content = {
        "title": _escaped(title),
        "style": colours + (front / "page.css").read_text(encoding="utf-8"),
        "data": _inline_json(data),
        "scripts": scripts,
    }
    text = (front / "page.html").read_text(encoding="utf-8")
    return re.sub(r"<!--(\w+)-->", lambda place: content[place[1]], text)


def _inline_json(data: dict[str, Any]) -> str:
    """Return data as JSON without `<`: `</script>` and `<!--` mean something to browsers."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")  # JSON has this character in strings only


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
