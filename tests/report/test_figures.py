import pytest
import torch

from twoscale.fields.grid import Grid
from twoscale.fields.patches import Seams
from twoscale.problems import Poisson
from twoscale.report import figures
from twoscale.surrogate import METHODS

SEAMS = Seams((4, 8), (4, 8, 12), Grid(12, 16))


@pytest.fixture
def fields():
    generator = torch.Generator().manual_seed(0)
    inputs, truth = torch.randn(2, 6, 12, 16, generator=generator)
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
    history = {"training_loss": [2.0, 1.0], "validation_loss": [3.0, 2.0], "best_epoch": 1}
    pictures = [
        figures.field_panels(inputs, truth, predictions, 1, SEAMS),
        figures.residual_panels(Poisson(), inputs, predictions, 1),
        figures.seam_profile(truth, predictions, 1, SEAMS),
        figures.spectra(truth, predictions),
        figures.densities(truth, predictions),
        figures.loss_curves({"training": history}),
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
    same = torch.full((2, 8, 8), 1e20)
    figures.save(figures.densities(same, {"local": same}), tmp_path / "picture.png")
