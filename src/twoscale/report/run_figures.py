"""The pictures of one run, written into its folder."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from twoscale.fields.measures import median_sample
from twoscale.fields.patches import PatchLayout
from twoscale.report import figures
from twoscale.surrogate import Surrogate


def illustrate_run(folder: Path, surrogate: Surrogate, inputs: Tensor, truth: Tensor) -> None:
    """Write `figures/*.png`: fields and error with seams, spectrum, values, losses."""
    place = folder / "figures"
    place.mkdir()
    prediction = {surrogate.method: surrogate.predict(inputs)}
    layout = surrogate.operator_.layout
    if layout is None:
        layout = PatchLayout.tiling(surrogate.grid_.shape, surrogate.settings["patches"])
    sample = median_sample(prediction[surrogate.method], truth)
    pictures = {
        "fields": figures.field_panels(inputs, truth, prediction, sample, layout.seams),
        "spectrum": figures.spectra(truth, prediction),
        "density": figures.densities(truth, prediction),
    }
    if surrogate.history_:
        pictures["losses"] = figures.loss_curves(surrogate.history_)
    for name, picture in pictures.items():
        figures.save(picture, place / f"{name}.png")
