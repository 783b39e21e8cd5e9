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

_PREDICT = ("out", "samples", "shape", "outside")
JSON_KEYS: dict[str, tuple[str, ...]] = {
    "demo": ("out", "methods"),
    "generate": ("out", "problem", "seed", "samples", "fields"),
    "import": ("out", "samples", "fields", "findings"),
    "check": ("findings",),
    "fit": ("out", "mre", "oracle_mre", "timings"),
    "fit --seeds": ("out", "runs"),
    "finetune": ("out", "mre", "oracle_mre", "timings"),
    "evaluate": ("mre", "oracle_mre", "timings"),
    "predict": _PREDICT,
    "predict --assess": (*_PREDICT, "assessment", "level", "mean_radius"),
    "predict --certify": (*_PREDICT, "assessment", "relative_error_upper"),
    "predict --polish": (*_PREDICT, "assessment", "relative_error_upper", "polish"),
    "serve": ("url", "models"),
    "report": ("out", "runs"),
    "study report": ("out", "figures"),
    "explore": ("out", "runs", "bytes", "needs_serve"),
    "bench": ("results", "environment"),
    "study list": ("studies",),
    "study compare": ("cells", "times"),
}
"""Keys of the object that a command prints with `--json`; `mre` stands for all of metrics.json.

`study run` is not in it: its keys are the names of the studies.
"""
