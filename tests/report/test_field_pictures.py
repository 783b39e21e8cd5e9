"""Drawings of fields: seams, scales, fields on a line, and values of any size."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from twoscale.domain.grid import Grid
from twoscale.domain.patches import Seams
from twoscale.domain.space import Space
from twoscale.report import field_pictures
from twoscale.report.method_looks import colour
from twoscale.report.picture import save_figure
from twoscale.surrogate import METHODS

SEAMS = Seams(((4, 8), (4, 8, 12)), Grid((12, 16)).axes)
NAMES = ("pressure", "speed")


def drawn(inputs, truth, predictions, seams=SEAMS):
    """Return a figure with the drawings of one channel."""
    figure = Figure()
    axes = figure.subplots(2, 1 + len(predictions), squeeze=False)
    field_pictures.draw_beside(axes, truth, predictions, inputs=inputs, seams=seams)
    return figure


@pytest.fixture
def fields():
    inputs, truth = np.random.default_rng(0).standard_normal((2, 12, 16), np.float32)
    return inputs, truth, {"local": truth * 1.1, "two-scale": truth + 0.01}


def test_every_paper_method_has_its_own_colour():
    assert len({colour(name) for name in METHODS}) == len(METHODS)


def test_every_seam_is_drawn_and_errors_share_one_scale(fields):
    figure = drawn(*fields)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[:5] == ["truth", "local", "two-scale", "input", "error, 10 %"]
    errors = [axis for axis in figure.axes if axis.get_title().startswith("error")]
    assert [len(axis.lines) for axis in errors] == [5, 5]
    assert len({axis.images[0].get_clim() for axis in errors}) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-36, 1e20, 3e38])
def test_fields_of_any_size_are_drawn(fields, tmp_path, size):
    inputs, truth, _ = fields
    truth = truth / np.abs(truth).max() * np.float32(size)
    figure = drawn(inputs, truth, {"local": truth * np.float32(0.9)})
    assert any(axis.get_title() == "error, 10 %" for axis in figure.axes)
    save_figure(figure, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"


def test_channels_are_named_or_numbered():
    assert field_pictures.channel_names(Space(Grid((4, 4)), names=("u",))) == ()
    assert field_pictures.channel_names(Space(Grid((4, 4)), 2, names=NAMES)) == NAMES
    assert field_pictures.channel_names(Space(Grid((4, 4)), 2)) == ["channel 0", "channel 1"]


def test_fields_on_a_line_are_curves():
    truth = np.random.default_rng(0).standard_normal((1, 32))
    figure = drawn(
        truth, truth, {"local": 1.1 * truth}, Seams(((), (8, 16, 24)), Grid((1, 32)).axes)
    )
    assert not any(axis.images for axis in figure.axes)
    shown, error = figure.axes[0], figure.axes[3]
    assert len(shown.lines) == 1
    assert shown.lines[0].get_ydata() == pytest.approx(truth[0])
    assert len(error.lines) == 1 + 3
