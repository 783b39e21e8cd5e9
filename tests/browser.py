"""A real browser for tests of pages: at the width of a desk and of a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SIZES = {"desk": (1280, 900), "phone": (390, 844)}


@contextmanager
def open_page(browser: Any, path: Path, size: tuple[int, int]) -> Iterator[Any]:
    """Open a file; afterwards it must have raised no error and asked for nothing outside."""
    width, height = size
    tab = browser.new_page(viewport={"width": width, "height": height})
    troubles: list[str] = []
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("console", lambda one: troubles.append(one.text) if one.type == "error" else None)
    tab.on("request", lambda one: troubles.append(one.url) if one.url.startswith("http") else None)
    tab.goto(path.as_uri())
    yield tab
    tab.close()
    assert troubles == []
