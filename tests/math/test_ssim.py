import numpy as np
import pytest
import torch

from twoscale.math.measures import Compared, ssim
from twoscale.math.ssim import structural_similarity


def scikit_image(prediction, truth, **options):
    """The SSIM (batch, channels) of scikit-image; fields of one row are passed as lines."""
    metrics = pytest.importorskip("skimage.metrics")
    values = [
        metrics.structural_similarity(
            np.squeeze(t), np.squeeze(p), data_range=t.max() - t.min(), **options
        )
        for p, t in zip(prediction.flatten(0, 1).numpy(), truth.flatten(0, 1).numpy(), strict=True)
    ]
    return np.reshape(values, truth.shape[:2])


def make_pair(shape, noise, generator, channels=1):
    truth = torch.randn(4, channels, *shape, dtype=torch.float64, generator=generator).cumsum(-1)
    error = torch.randn(truth.shape, dtype=torch.float64, generator=generator)
    return truth + noise * error, truth


@pytest.mark.parametrize("shape", [(8, 8), (12, 14), (33, 20), (7, 9)])
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_structural_similarity_is_that_of_scikit_image(shape, noise, generator):
    prediction, truth = make_pair(shape, noise, generator)
    expected = scikit_image(prediction, truth)
    got = structural_similarity(prediction, truth)
    np.testing.assert_allclose(got.numpy(), expected, rtol=0, atol=1e-10)
    assert float(ssim(Compared(prediction, truth))) == pytest.approx(np.mean(expected), abs=1e-10)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (1, 2), (2, 9), (3, 40)])
def test_any_grid_has_a_similarity(shape, generator):
    prediction, truth = make_pair(shape, 0.3, generator, channels=2)
    got = structural_similarity(prediction, truth)
    assert got.shape == (4, 2)
    assert bool(torch.isfinite(got).all())
    torch.testing.assert_close(structural_similarity(truth, truth), torch.ones_like(got))


def test_each_channel_has_its_own_data_range(generator):
    prediction, truth = make_pair((12, 14), 0.1, generator, channels=2)
    scale = torch.tensor([1.0, 1e6], dtype=torch.float64)[:, None, None]
    alone = structural_similarity(prediction, truth)
    torch.testing.assert_close(structural_similarity(prediction * scale, truth * scale), alone)
    torch.testing.assert_close(structural_similarity(prediction[:, 1:], truth[:, 1:]), alone[:, 1:])


def test_many_fields_are_compared_part_by_part(generator, monkeypatch):
    prediction, truth = make_pair((12, 14), 0.1, generator, channels=3)
    whole = structural_similarity(prediction, truth)
    monkeypatch.setattr("twoscale.math.ssim._SSIM_VALUES", 5 * 12 * 14)
    torch.testing.assert_close(structural_similarity(prediction, truth), whole)


def test_similarity_to_a_constant_truth_is_finite():
    truth = torch.full((2, 1, 9, 9), 0.3)
    assert bool(torch.isfinite(structural_similarity(truth + 0.1, truth)).all())
    torch.testing.assert_close(
        structural_similarity(truth, truth), torch.ones(2, 1, dtype=torch.float64)
    )
