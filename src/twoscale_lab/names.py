"""Names of studies and benchmarks, which help and completion show without waiting for torch."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Literal

BENCHMARKS = {
    "generate": "fitting.generate",
    "pca": "fitting.pca",
    "train": "training.train",
    "finetune": "training.finetune",
    "inference": "using.inference",
    "single": "using.single",
    "end-to-end": "fitting.end_to_end",
    "scaling": "scaling.scaling",
    "memory": "using.memory",
}
"""The benchmarks, and where in `twoscale_lab.bench` the function of each is."""


def _studies() -> tuple[str, ...]:
    """Return the studies that come with the lab, in the order of their positions."""
    found: dict[str, int] = {}
    for file in (files("twoscale_lab.study") / "definitions").iterdir():
        position = re.search(r"^position: (\d+)", file.read_text(encoding="utf-8"), re.MULTILINE)
        assert position is not None, f"{file.name} has no position"
        found[file.name.removesuffix(".yaml")] = int(position[1])
    return tuple(sorted(found, key=lambda name: found[name]))


STUDIES = _studies()

Scale = Literal["paper", "small"]
SCALES: tuple[Scale, ...] = ("paper", "small")
