"""The command that turns records of studies into a page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli.options import JsonOption, OverwriteOption


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder of studies, or of their records.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where the result goes: a new page; DIR/report.html by default. Figures go to a "
            "folder beside it.",
        ),
    ] = None,
    overwrite: OverwriteOption = False,
    json: JsonOption = False,
) -> None:
    """Write one page from the records of studies: tables, figures, and the paper's numbers.

    The page needs no other file and no network; figures are also written to a folder beside it.
    """
    from twoscale.cli.display import print_outcome
    from twoscale.cli.paths import expect_kind
    from twoscale.data.kinds import Kind
    from twoscale.report.study_page import write_report

    expect_kind(folder, Kind.STUDIES, Kind.RECORDS, or_else=(Kind.EMPTY, Kind.FOLDER))
    page = write_report(folder, out, overwrite=overwrite)
    figures = page.parent / "figures"
    sentence = f"{page}, and every figure as PNG and SVG in {figures}"
    print_outcome(sentence, page, {"figures": str(figures)}, json=json)
