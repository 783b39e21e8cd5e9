"""The picture of an inversion, from its record."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import matplotlib
import numpy as np

from twoscale.serve.mappings import lattice

matplotlib.use("Agg")
from matplotlib import pyplot as plt

PANELS = (
    ("truth", "truth, and where it is measured"),
    ("delayed mean", "posterior mean, delayed acceptance"),
    ("delayed sd", "standard deviation, delayed acceptance"),
    ("map", "most probable medium (MAP)"),
    ("exact mean", "posterior mean, exact chain"),
    ("exact sd", "standard deviation, exact chain"),
)


def draw(record: Path, out: Path) -> None:
    """Draw the fields of a record."""
    content = json.loads(record.read_text())
    fields = {name: np.array(one) for name, one in content["fields"].items()}
    media = [one for name, one in fields.items() if not name.endswith("sd")]
    limits = {
        False: (min(one.min() for one in media), max(one.max() for one in media)),
        True: (0.0, max(fields[name].max() for name in ("delayed sd", "exact sd"))),
    }
    figure, axes = plt.subplots(2, 3, figsize=(10.2, 6.4), layout="constrained")
    for axis, (name, title) in zip(axes.flat, PANELS, strict=True):
        spread = name.endswith("sd")
        low, high = limits[spread]
        image = axis.imshow(
            fields[name],
            cmap="magma" if spread else "viridis",
            vmin=low,
            vmax=high,
            extent=(0, 1, 1, 0),
        )
        axis.set_title(title, fontsize=10)
        axis.set_xticks([])
        axis.set_yticks([])
        figure.colorbar(image, ax=axis, shrink=0.8)
    points = lattice(content["setup"]["points"], content["setup"]["points"])
    axes[0, 0].plot(points[:, 1], points[:, 0], ".", color="white", markersize=2.5)
    figure.savefig(out, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    draw(given.record, given.out)
