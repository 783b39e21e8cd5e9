"""The demonstration: a search first, then the paper's methods, on data made for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli import options
from twoscale.cli.terminal import is_quiet, print_answer


def demo(
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Where the result goes: a folder of data, runs and a page."
        ),
    ] = Path("demo"),
    samples: Annotated[
        int, typer.Option(min=100, metavar="N", help="Pairs of Poisson fields to make.")
    ] = 4000,
    resolution: Annotated[
        int, typer.Option(min=16, metavar="N", help="Nodes per side of a field.")
    ] = 64,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="Time of the search, such as 20s, 2min or 1h.")
    ] = "20s",
    epochs: Annotated[
        int, typer.Option(min=1, metavar="N", help="Epochs of each of the paper's methods.")
    ] = 150,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    overwrite: options.Overwrite = False,
    json: options.Json = False,
) -> None:
    """Make data, search for a surrogate, fit the paper's methods, write a page. About a minute.

    \b
    Examples:
      twoscale demo --out demo
    """
    from twoscale.cli.demo_parts import PAGE, DemoOptions, run_demo
    from twoscale.cli.display import print_json
    from twoscale.cli.terminal import print_table, say
    from twoscale.report.demo_page import demo_table
    from twoscale.report.run_record import read_run
    from twoscale.runtime.progress import parse_duration

    asked = DemoOptions(samples, resolution, parse_duration(budget), epochs, seed, device)
    runs = run_demo(out, asked, overwrite=overwrite)
    if json:
        print_json({"out": str(out), "methods": {name: run.metrics for name, run in runs.items()}})
        return
    if is_quiet():
        print_answer(out)
        return
    shown = {name: read_run(run, look=False) for name, run in runs.items()}
    tests = next(iter(shown.values())).metrics["samples"]
    say(f"Errors on {tests} test fields of Poisson's equation, {resolution}\u00b2 nodes:")
    print_table(*demo_table(shown))
    say(f"The page with pictures: {out / PAGE}")
    say("Your own data next:")
    print("  twoscale fit PAIRS.npz --input a --output u --out runs/mine --budget 1min")
    print("  twoscale predict runs/mine NEW.npz --out predicted.npy")
    print("  twoscale report runs/mine")
