"""The page of some runs as one file: markup, styles, scripts and data; nothing from outside."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.explore.book import describe_runs
from twoscale.files import atomic_output, check_target
from twoscale.report.runs_page import distinct_names
from twoscale.run import Run
from twoscale.run.folder import CONFIG
from twoscale.runtime.progress import Progress

_MOST_RUNS = 12


@dataclass(frozen=True)
class ExplorePage:
    """A page that was written.

    `reasons` says of each run that the page cannot compute, by name, why.
    """

    path: Path
    runs: dict[str, Run]
    reasons: dict[str, str]
    bytes: int


def write_page(
    folders: Sequence[Path],
    out: Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> ExplorePage:
    """Write a page on which the surrogates of some runs can be tried out."""
    if len(folders) > _MOST_RUNS:
        raise TwoscaleError(
            f"{len(folders)} runs are too many for one page: give at most {_MOST_RUNS}"
        )
    if out.is_dir():
        raise TwoscaleError(
            f"{out} is a folder, and the result is a page: give a file, such as {out / 'page.html'}"
        )
    check_target(out, overwrite=overwrite)
    runs = {}
    for done, (name, folder) in enumerate(zip(distinct_names(folders), folders, strict=True)):
        if progress:
            progress("runs", done, len(folders), folder.name)
        runs[name] = _open(folder)
    data = describe_runs(runs)
    text = page_text(data, f"Explore {', '.join(runs)}")
    with atomic_output(out, overwrite=overwrite) as prepared:
        prepared.write_text(text, encoding="utf-8")
    if progress:
        progress("runs", len(folders), len(folders), "")
    reasons = {one["name"]: one["reason"] for one in data["runs"] if one["reason"]}
    return ExplorePage(out, runs, reasons, len(text.encode()))


def _open(folder: Path) -> Run:
    if folder.is_dir() and not (folder / CONFIG).exists():
        raise TwoscaleError(
            f"{folder} is a surrogate saved from Python, without its data: a page is of a run, "
            "which 'twoscale fit' writes"
        )
    run = Run.open(folder, device="cpu")  # pages compute on CPUs too
    if run.surrogate.input_space_.grid.nodes * run.surrogate.input_space_.channels > 2**22:
        raise TwoscaleError(
            f"the fields of {folder} are too large for a page: explore smaller ones"
        )
    return run


def page_text(data: dict[str, Any], title: str) -> str:
    """Return the page that shows some runs.

    A comment of its markup stands for a script of that name, or for what is inserted by that name.
    """
    front = files("twoscale.explore") / "front"
    colours = (files("twoscale.report") / "colours.css").read_text(encoding="utf-8")
    content = {
        "title": escape(title, quote=False),
        "style": colours + (front / "page.css").read_text(encoding="utf-8"),
        # `</script>` and `<!--` mean something to browsers; JSON has `<` in strings only.
        "data": json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
    }

    def inserted(comment: re.Match[str]) -> str:
        name = comment[1]
        if name in content:
            return content[name]
        return f'<script id="{name}">\n{(front / name).read_text(encoding="utf-8")}</script>'

    return re.sub(r"<!--([\w.]+)-->", inserted, (front / "page.html").read_text(encoding="utf-8"))
