"""Names that the help and completion of studies and benchmarks show.

Help must not wait for torch, so that they are written down here; a test compares them with the lab.
"""

from __future__ import annotations

from typing import Annotated

import typer

from twoscale.cli import options

BENCHMARKS = (
    "generate",
    "pca",
    "train",
    "finetune",
    "inference",
    "single",
    "end-to-end",
    "scaling",
    "memory",
)

STUDIES = (
    "headline",
    "mechanism",
    "resolution",
    "darcy",
    "coarse-design",
    "latent-objective",
    "loss-ladder",
    "sample-efficiency",
    "svd-solver",
    "frontier",
    "beyond",
    "leaderboard",
)

SCALES = ("paper", "small")

ScaleOption = Annotated[
    str,
    typer.Option(
        help="paper, or small for a few minutes on two cores.",
        autocompletion=options.one_of(SCALES),
    ),
]
