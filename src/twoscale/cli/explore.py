"""The command that writes a page on which surrogates can be tried out."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twoscale.cli import options

if TYPE_CHECKING:
    from twoscale.explore.page import ExplorePage


def explore(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run folders, or folders of runs."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where the result goes: a new page.")],
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    serve: Annotated[
        bool,
        typer.Option(
            "--serve",
            help="Serve the page to this machine only, until Ctrl-C. Predictions that a page "
            "cannot compute are then computed in Python.",
        ),
    ] = False,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, metavar="N", help="Port of --serve; 0 takes a free one."),
    ] = 0,
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Write a page to paint inputs and see predictions, errors and their parts at once.

    The page needs no other file and no network.

    \b
    Examples:
      twoscale explore runs/a --out explore.html --open
      twoscale explore runs/a runs/b --out compared.html --serve
    """
    from twoscale.cli.display import print_outcome, progress_bar
    from twoscale.cli.paths import RUNS, expect
    from twoscale.explore.page import write_page
    from twoscale.report.run_report import find_runs
    from twoscale.serve import require

    if serve:
        require()
    expect(RUNS, *runs)
    folders = list(dict.fromkeys(run for path in runs for run in find_runs(path) or [path]))
    with progress_bar("explore") as progress:
        page = write_page(folders, out, overwrite=overwrite, progress=progress)
    content: dict[str, Any] = {"runs": list(page.runs), "bytes": page.bytes}
    content |= {"needs_serve": page.reasons}
    if serve:
        _serve(page, content, port, opened=open_, json=json)
        return
    more = [f"{name} needs --serve: {reason}" for name, reason in page.reasons.items()]
    print_outcome(f"{out} ({page.bytes / 1e6:.1f} MB)", out, content, *more, json=json)
    if open_:
        webbrowser.open(out.resolve().as_uri())


def _serve(
    page: ExplorePage, content: dict[str, Any], port: int, *, opened: bool, json: bool
) -> None:
    """Serve a page until the command is interrupted."""
    from twoscale.cli.display import print_outcome
    from twoscale.cli.serve import log_to_stderr
    from twoscale.explore.server import PageService
    from twoscale.serve import HttpServer

    text = page.path.read_text(encoding="utf-8")
    surrogates = [run.surrogate for run in page.runs.values()]
    server = HttpServer(PageService(text, surrogates), port=port)
    address = f"{server.url}/"
    sentence = f"{page.path} is served at {address} until Ctrl-C"
    print_outcome(sentence, page.path, content | {"address": address}, json=json)
    sys.stdout.flush()  # somebody may wait for the address
    if opened:
        webbrowser.open(address)
    log_to_stderr()
    server.run()
