"""The pictures of one run, written into its folder."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from twoscale.fields.measures import median_sample
from twoscale.fields.patches import PatchLayout
from twoscale.report import figures
from twoscale.surrogate import Surrogate


def illustrate_run(folder: Path, surrogate: Surrogate, inputs: Tensor, truth: Tensor) -> None:
    """Write `figures/*.png`: fields and error with seams, spectrum, values, losses.

    Fields are (batch, channels, height, width). Of several output channels each has pictures of its
    own, with its number in the file's name; the input shown is the first channel.
    """
    place = folder / "figures"
    place.mkdir()
    predicted = surrogate.predict_fields(inputs)
    sample = median_sample(predicted, truth)
    layout = surrogate.operator_.layout
    if layout is None:
        patches = surrogate.settings.get("patches", (1, 1))
        layout = PatchLayout.seams_of(surrogate.output_space_.grid, patches)
    pictures = {}
    for channel in range(truth.shape[1]):
        end = f"-{channel}" if truth.shape[1] > 1 else ""
        true = truth[:, channel]
        prediction = {surrogate.method: predicted[:, channel]}
        panels = figures.field_panels(inputs[:, 0], true, prediction, sample, layout.seams)
        pictures[f"fields{end}"] = panels
        pictures[f"spectrum{end}"] = figures.spectra(true, prediction)
        pictures[f"density{end}"] = figures.densities(true, prediction)
    if surrogate.history_:
        pictures["losses"] = figures.loss_curves(surrogate.history_)
    for name, picture in pictures.items():
        figures.save(picture, place / f"{name}.png")
