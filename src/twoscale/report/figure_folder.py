"""Write the page of a report and the folder of its figures, without replacing other files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from twoscale.errors import TwoscaleError
from twoscale.files import check_target, claimed, read_json, write_json
from twoscale.files.checksums import file_digest
from twoscale.files.work_folder import tidy
from twoscale.report.page import Picture
from twoscale.surrogate.artifact import PAGE

FIGURES = "figures"
_NOTE = "twoscale-figures.json"  # names the page and the figures' checksums
_FORMAT = "twoscale-figures"


def check_page_file(page: Path, *, overwrite: bool) -> None:
    """Raise if a page must not be written."""
    if os.path.isdir(page):
        raise TwoscaleError(
            f"{page} is a folder, and a report is a page: give a file, such as {page / PAGE}"
        )
    check_target(page, overwrite=overwrite)


def check_page(page: Path, *, overwrite: bool) -> None:
    """Raise if a page and the folder of its figures must not be written."""
    place = page.parent / FIGURES
    check_page_file(page, overwrite=overwrite)
    if page.name == FIGURES:
        raise TwoscaleError(f"a page cannot be called {FIGURES}, as the folder beside it is")
    tidy(place.resolve())
    if os.path.lexists(place) and not _are_figures_of(page)(place):
        raise TwoscaleError(
            f"{place} is not the figures of {page.name} alone, and is not replaced: move it, or "
            "write the page into another folder"
        )
    check_target(place, overwrite=_replaceable(page, overwrite), may_replace=_are_figures_of(page))


def _replaceable(page: Path, overwrite: bool) -> bool:
    """Say whether figures may be replaced: on request, or if a kill left them without a page."""
    return overwrite or not os.path.lexists(page)


def write_with_figures(
    page: Path, text: str, pictures: Iterable[Picture], *, kinds: Sequence[str], overwrite: bool
) -> None:
    """Write a page and the figures beside it, each in one step."""
    place = page.parent / FIGURES
    with (
        claimed(page, overwrite=overwrite) as written,
        claimed(
            place, overwrite=_replaceable(page, overwrite), may_replace=_are_figures_of(page)
        ) as drawn,
    ):
        for output in (written, drawn):
            output.work.clear()
        drawn.content.mkdir()
        for picture in pictures:
            picture.write(drawn.content, kinds=kinds)
        sums = {file.name: file_digest(file) for file in sorted(drawn.content.iterdir())}
        note = {"format": _FORMAT, "page": page.name, "files": sums}
        write_json(drawn.content / _NOTE, note)
        written.content.write_text(text, encoding="utf-8")
        drawn.commit()
        written.commit()


def _are_figures_of(page: Path) -> Callable[[Path], bool]:
    """Return a check that a folder holds the unchanged figures of a page and nothing else."""

    def are_figures(place: Path) -> bool:
        try:
            note = read_json(place / _NOTE, require={"files": dict})
            held = [entry for entry in place.iterdir() if entry.name != _NOTE]
            unchanged = all(file_digest(one) == note["files"].get(one.name) for one in held)
        except (TwoscaleError, OSError):
            return False
        return unchanged and note.get("format") == _FORMAT and note.get("page") == page.name

    return are_figures
