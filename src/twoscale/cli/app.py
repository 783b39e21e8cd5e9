"""The commands. Each one reads its arguments, calls the library, and shows the result."""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Annotated

import typer

from twoscale._version import __version__
from twoscale.cli.common import Application, DebugOption, QuietOption
from twoscale.cli.data import check, generate, import_
from twoscale.cli.demo import demo
from twoscale.cli.evaluate import evaluate
from twoscale.cli.explore import explore
from twoscale.cli.export import export
from twoscale.cli.finetune import finetune
from twoscale.cli.fit import fit
from twoscale.cli.predict import predict
from twoscale.cli.report import report
from twoscale.cli.serve import serve

app = Application(
    help="Learn a PDE solver from pairs of fields, and predict new solutions in milliseconds.",
    epilog="First steps: twoscale demo",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"twoscale {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    ctx: typer.Context,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
    quiet: QuietOption = False,
    debug: DebugOption = False,  # the door has taken it out of the arguments
) -> None:
    ctx.obj = {"quiet": quiet}


app.command(epilog="Example: twoscale demo --out demo")(demo)
app.command(
    epilog="Example: twoscale generate poisson --resolution 64 --samples 2500 --out data/p64.zarr"
)(generate)
app.command(
    "import",
    epilog="Examples: twoscale import pairs.npz --input a --output u --out data/mine.zarr · "
    "twoscale import flow.h5 --input vx,vy --parameters viscosity --output p --out data/flow.zarr",
)(import_)
app.command(
    epilog="Examples: twoscale check pairs.npz --input a --output u · "
    "twoscale check data/p64.zarr · twoscale check runs/a"
)(check)
app.command(
    epilog="Examples: twoscale fit pairs.npz --input a --output u --out runs/mine --budget 1min · "
    "twoscale fit data/p64.zarr --method two-scale --out runs/b --set epochs=200"
)(fit)
app.command(epilog="Example: twoscale finetune runs/a --objective A3 --out runs/b")(finetune)
app.command(epilog="Example: twoscale evaluate runs/a --data data/other.zarr --json")(evaluate)
app.command(
    epilog="Examples: twoscale predict runs/a input.npy --out prediction.npy · "
    "twoscale predict runs/b --parameters parameters.npy --out prediction.npy"
)(predict)
app.command(
    epilog="Examples: twoscale export runs/a model.onnx · twoscale export runs/a model.pt2"
)(export)
app.command(
    epilog="Examples: twoscale serve runs/a · twoscale serve runs/a runs/b --port 0 · "
    "twoscale serve runs/darcy --inputs kl:64,width=0.3 --points 13x13"
)(serve)
app.command(
    epilog="Examples: twoscale report runs/a · twoscale report runs/a runs/b --out compared.html"
)(report)
app.command(
    epilog="Examples: twoscale explore runs/a --out explore.html --open · "
    "twoscale explore runs/a runs/b --out compared.html --serve"
)(explore)

# Other packages add commands: an entry point names a function that takes the application.
for _entry in entry_points(group="twoscale.commands"):
    if find_spec(_entry.module.partition(".")[0]) is not None:
        _entry.load()(app)
