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
    help="Learn a PDE solver from pairs of fields, and predict new solutions in milliseconds.",
    examples=("twoscale demo", "twoscale fit pairs.npz --out runs/mine"),
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


app.add("twoscale demo --out demo")(demo)
app.add("twoscale generate poisson --resolution 64 --samples 2500 --out data/p64.zarr")(generate)
app.add(
    "twoscale import pairs.npz --input a --output u --out data/mine.zarr",
    "twoscale import flow.h5 --input vx,vy --parameters nu --output p --out data/flow.zarr",
    name="import",
)(import_)
app.add(
    "twoscale check pairs.npz --input a --output u",
    "twoscale check data/p64.zarr",
    "twoscale check runs/a",
)(check)
app.add(
    "twoscale fit pairs.npz --input a --output u --out runs/mine --budget 1min",
    "twoscale fit data/p64.zarr --method two-scale --out runs/b --set epochs=200",
)(fit)
app.add("twoscale finetune runs/a --objective A3 --out runs/b")(finetune)
app.add("twoscale evaluate runs/a --data data/other.zarr --json")(evaluate)
app.add(
    "twoscale predict runs/a input.npy --out prediction.npy",
    "twoscale predict runs/b --parameters parameters.npy --out prediction.npy",
)(predict)
app.add("twoscale export runs/a model.onnx", "twoscale export runs/a model.pt2")(export)
app.add(
    "twoscale serve runs/a",
    "twoscale serve runs/a runs/b --port 0",
    "twoscale serve runs/darcy --inputs kl:64,width=0.3 --points 13x13",
)(serve)
app.add("twoscale report runs/a", "twoscale report runs/a runs/b --out compared.html")(report)
app.add(
    "twoscale explore runs/a --out explore.html --open",
    "twoscale explore runs/a runs/b --out compared.html --serve",
)(explore)

# Other packages add commands: an entry point names a function that takes the application.
for _entry in ENTRIES.select(group="twoscale.commands"):
    if find_spec(_entry.module.partition(".")[0]) is not None:
        _entry.load()(app)
