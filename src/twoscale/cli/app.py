"""The commands. Each one reads its arguments, calls the library, and shows the result."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated

import typer

from twoscale._version import __version__
from twoscale.cli.application import Application
from twoscale.cli.data import check, generate, import_
from twoscale.cli.demo import demo
from twoscale.cli.evaluate import evaluate
from twoscale.cli.explore import explore
from twoscale.cli.export import export
from twoscale.cli.finetune import finetune
from twoscale.cli.fit import fit
from twoscale.cli.names import ENTRIES
from twoscale.cli.predict import predict
from twoscale.cli.report import report
from twoscale.cli.serve import serve

app = Application(
    help="Learn a PDE solver from pairs of fields, and predict new solutions in milliseconds. "
    "First steps: twoscale demo",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"twoscale {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            help="Print only errors and the result's path, or its JSON with --json. This option "
            "and the next one may stand anywhere in a command.",
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Both options are for the help: `main` has taken them out of the arguments."""


for _command in (
    *(demo, generate, import_, check, fit, finetune, evaluate, predict),
    *(export, serve, report, explore),
):
    app.add(_command)

# Other packages add commands: an entry point names a function that takes the application.
for _entry in ENTRIES.select(group="twoscale.commands"):
    if find_spec(_entry.module.partition(".")[0]) is not None:
        _entry.load()(app)
