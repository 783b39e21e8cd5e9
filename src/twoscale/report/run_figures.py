"""The pictures of one run, written into its folder."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from twoscale.fields.grid import Space
from twoscale.fields.measures import median_sample
from twoscale.fields.patches import PatchLayout
from twoscale.report import figures
from twoscale.surrogate import Surrogate


def illustrate_run(folder: Path, surrogate: Surrogate, inputs: Tensor, truth: Tensor) -> None:
    """Write `figures/*.png`: fields and error with seams, spectrum, values, losses.

    Fields are (batch, channels, height, width); among the inputs' channels are the parameters.
    """
    place = folder / "figures"
    place.mkdir()
    prediction = {surrogate.method: surrogate.predict_fields(inputs).cpu()}
    inputs, truth = inputs.cpu(), truth.cpu()
    sample = median_sample(prediction[surrogate.method], truth)
    space, names = surrogate.output_space_, figures.channel_names(surrogate.output_space_)
    layout = surrogate.operator_.layout
    if layout is None:
        layout = PatchLayout.seams_of(space.grid, surrogate.settings.get("patches", (1, 1)))
    shown = input_fields(surrogate.input_space_, inputs)
    pictures = {
        "fields": figures.field_panels(shown, truth, prediction, sample, layout.seams, names),
        "spectrum": figures.spectra(truth, prediction, names),
        "density": figures.densities(truth, prediction, names),
    }
    if surrogate.history_:
        pictures["losses"] = figures.loss_curves(surrogate.history_)
    for name, picture in pictures.items():
        figures.save(picture, place / f"{name}.png")


def input_fields(space: Space, inputs: Tensor) -> Tensor | None:
    """Return the channels of inputs that are fields; None if all are parameters."""
    return inputs[:, : space.field_channels] if space.field_channels else None
