"""The command that writes a run as one file for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from twoscale.cli import options


def export(
    run: options.SavedRun,
    out: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Where the result goes: a new file that ends in .onnx, or in .pt2 for programs "
            "with torch.",
        ),
    ],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.")] = False,
    json: options.Json = False,
) -> None:
    """Write a run as one file that predicts without twoscale.

    An ONNX file needs onnxruntime only, in Python, C++ or JavaScript. It takes 'fields' (batch,
    channels, height, width), and 'parameters' (batch, P) if the run reads any, and gives
    'prediction'. Its metadata tell grid, channels, method and errors. Before the file appears, its
    predictions are compared with those of the run.

    \b
    Examples:
      twoscale export runs/a model.onnx
      twoscale export runs/a model.pt2
    """
    from twoscale.cli.display import print_outcome
    from twoscale.cli.paths import SAVED, expect
    from twoscale.data.kinds import ContentKind
    from twoscale.export import format_of
    from twoscale.files import check_target
    from twoscale.run import Run
    from twoscale.surrogate import Surrogate

    (kind,) = expect(SAVED, run)
    format_of(out)
    check_target(out, overwrite=overwrite)
    metrics = None
    if kind is ContentKind.RUN:
        opened = Run.open(run, device="cpu")
        surrogate, metrics = opened.surrogate, opened.metrics
    else:
        surrogate = Surrogate.load(run, device="cpu")
    made = surrogate.export(out, overwrite=overwrite, metrics=metrics)
    content = {
        "size": made.size,
        "checked_with": made.checked_with,
        "difference": made.difference,
        "metadata": made.metadata,
    }
    inputs = surrogate.input_space_.contents
    sentence = f"{surrogate.method} in {out}: {inputs} to {surrogate.output_space_.contents}"
    print_outcome(sentence, out, content, made.check_text, json=json)
