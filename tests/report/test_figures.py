import pytest
import torch

from twoscale.fields.grid import Grid, Space
from twoscale.fields.patches import Seams
from twoscale.problems import Poisson
from twoscale.report import figures
from twoscale.surrogate import METHODS

SEAMS = Seams((4, 8), (4, 8, 12), Grid(12, 16))


@pytest.fixture
def fields():
    generator = torch.Generator().manual_seed(0)
    inputs, truth = torch.randn(2, 6, 1, 12, 16, generator=generator)
    return inputs, truth, {"local": truth * 1.1, "two-scale": truth + 0.01}


def test_every_paper_method_has_its_own_colour():
    colours = [figures.colour(name) for name in METHODS]
    assert len(set(colours)) == len(METHODS)


def test_field_panels_draw_every_seam(fields):
    inputs, truth, predictions = fields
    figure = figures.field_panels(inputs, truth, predictions, 0, SEAMS)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles[:3] == ["truth", "local", "two-scale"]
    assert any("error, 10 %" in title for title in titles)
    errors = [axis for axis in figure.axes if axis.get_title().startswith("error")]
    assert [len(axis.lines) for axis in errors] == [5, 5]
    limits = {axis.images[0].get_clim() for axis in errors}
    assert len(limits) == 1


def test_all_pictures_render(fields, tmp_path):
    inputs, truth, predictions = fields
    pictures = [
        figures.field_panels(inputs, truth, predictions, 1, SEAMS),
        figures.residual_panels(Poisson(), inputs, predictions, 1),
        figures.seam_profile(truth, predictions, 1, SEAMS),
        figures.spectra(truth, predictions),
        figures.densities(truth, predictions),
        figures.bars({"error": {"local": 1.0, "two-scale": 0.1}}),
    ]
    for number, picture in enumerate(pictures):
        path = tmp_path / f"{number}.png"
        figures.save(picture, path)
        assert path.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-36, 1e20, 3e38])
def test_fields_of_any_size_are_drawn(fields, tmp_path, size):
    inputs, truth, _ = fields
    truth = truth / truth.abs().max() * size
    predictions = {"local": truth * 0.9}
    panels = figures.field_panels(inputs, truth, predictions, 1, SEAMS)
    assert any(axis.get_title() == "error, 10 %" for axis in panels.axes)
    pictures = [panels, figures.spectra(truth, predictions), figures.densities(truth, predictions)]
    for picture in pictures:
        figures.save(picture, tmp_path / "picture.png")


@pytest.mark.filterwarnings("error")
def test_values_that_are_all_the_same_have_a_density(tmp_path):
    same = torch.full((2, 1, 8, 8), 1e20)
    figures.save(figures.densities(same, {"local": same}), tmp_path / "picture.png")


@pytest.fixture
def channels():
    """Two output channels of very different size, one input channel on another grid."""
    generator = torch.Generator().manual_seed(0)
    truth = (
        torch.randn(4, 2, 12, 16, generator=generator) * torch.tensor([1e5, 1e-3])[:, None, None]
    )
    return torch.randn(4, 1, 6, 8, generator=generator), truth, {"local": truth * 1.1}


NAMES = ("pressure", "speed")


def test_every_channel_has_its_rows_and_its_name(channels):
    inputs, truth, predictions = channels
    axes = figures.field_panels(inputs, truth, predictions, 0, SEAMS, NAMES).axes
    titles = [axis.get_title() for axis in axes if axis.get_title()]
    rows = ["truth, pressure", "local", "input", "error, 10 %"]
    assert titles == [*rows, "truth, speed", "local", "error, 10 %"]  # there is one input
    assert [axis.axison for axis in axes[:8]] == [True] * 6 + [False, True]
    tops = [axis.images[0].get_clim()[1] for axis in axes if axis.get_title() == "error, 10 %"]
    assert tops[0] > 1e7 * tops[1]


def test_every_channel_has_panels_of_its_own(channels):
    _, truth, predictions = channels
    for figure in (
        figures.seam_profile(truth, predictions, 0, SEAMS, NAMES),
        figures.spectra(truth, predictions, NAMES),
        figures.densities(truth, predictions, NAMES),
    ):
        assert [axis.get_title() for axis in figure.axes] == list(NAMES)


def test_many_channels_are_not_all_drawn():
    truth = torch.randn(2, 40, 8, 8)
    seams = Seams((4,), (4,), Grid(8, 8))
    figure = figures.field_panels(truth, truth, {"local": truth + 1}, 0, seams)
    assert figure.get_figheight() < 50
    assert len(figures.spectra(truth, {}).axes) < 10


def test_channels_are_named_or_numbered():
    assert figures.channel_names(Space(1, Grid(4, 4), names=("u",))) == ()
    assert figures.channel_names(Space(2, Grid(4, 4), names=NAMES)) == NAMES
    assert figures.channel_names(Space(2, Grid(4, 4))) == ["channel 0", "channel 1"]


def test_parameters_alone_are_not_drawn(fields):
    _, truth, predictions = fields
    figure = figures.field_panels(None, truth, predictions, 0, SEAMS)
    assert "input" not in [axis.get_title() for axis in figure.axes]
    assert not figure.axes[3].axison


def test_fields_on_a_line_are_curves(tmp_path):
    truth = torch.randn(3, 1, 1, 32)
    seams = Seams((), (8, 16, 24), Grid(1, 32))
    figure = figures.field_panels(truth, truth, {"local": 1.1 * truth}, 0, seams)
    assert not any(axis.images for axis in figure.axes)
    shown, error = figure.axes[0], figure.axes[3]
    assert len(shown.lines) == 1
    assert shown.lines[0].get_ydata() == pytest.approx(truth[0, 0, 0].numpy())
    assert len(error.lines) == 1 + 3
    pictures = [
        figure,
        figures.seam_profile(truth, {"local": 1.1 * truth}, 0, seams),
        figures.spectra(truth, {"local": 1.1 * truth}),
    ]
    for picture in pictures:
        figures.save(picture, tmp_path / "picture.png")


@pytest.mark.parametrize(
    ("rows", "height", "row"),
    [((32, 64, 96), 128, 48), ((0, 8, 16, 24), 32, 12), ((), 10, 5), ((), 1, 0), ((5,), 10, 7)],
)
def test_the_profile_runs_through_the_middle_of_a_patch(rows, height, row):
    truth = torch.randn(1, 1, height, 8)
    seams = Seams(rows, (4,), Grid(height, 8))
    figure = figures.seam_profile(truth, {"local": truth + 1}, 0, seams)
    assert figure.axes[0].get_ylabel() == f"error in row {row}"


def test_residuals_of_several_equations_have_a_row_each():
    class Pair:
        def residual(self, inputs, outputs):
            return outputs - inputs

    inputs = torch.randn(3, 2, 8, 8)
    predictions = {"local": inputs + 1, "two-scale": inputs + 0.1}
    figure = figures.residual_panels(Pair(), inputs, predictions, 1)
    titles = [axis.get_title() for axis in figure.axes if axis.get_title()]
    assert titles == ["local", "two-scale"] * 2
