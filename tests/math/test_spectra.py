import numpy as np
import pytest
import torch

from twoscale.math.measures import (
    Compared,
    spectral_distance,
    spectral_error,
)
from twoscale.math.spectra import radial_spectrum

SHAPES = [(8, 8), (9, 9), (12, 15), (1, 16), (1, 9), (16, 1), (3, 40), (2, 2), (1, 1)]


def slow_spectrum(field):
    """Radial mean of |FFT|^2, mode by mode."""
    height, width = field.shape
    energy = np.abs(np.fft.fft2(field)) ** 2
    sums, counts = {}, {}
    for i in range(height):
        for j in range(width):
            k = i if i <= (height - 1) // 2 else i - height
            m = j if j <= (width - 1) // 2 else j - width
            ring = round(float(np.hypot(k, m)))
            sums[ring] = sums.get(ring, 0.0) + energy[i, j]
            counts[ring] = counts.get(ring, 0) + 1
    rings = range(max(sums) + 1)
    return np.array([sums[r] / counts[r] for r in rings]), np.array([counts[r] for r in rings])


def make_fields(shape, generator, channels=2):
    return torch.randn(3, channels, *shape, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_spectrum_is_the_radial_mean(shape, generator):
    fields = make_fields(shape, generator)
    spectra = radial_spectrum(fields)
    assert spectra.shape[:2] == (3, 2)
    for field, spectrum in zip(fields.flatten(0, 1), spectra.flatten(0, 1), strict=True):
        np.testing.assert_allclose(spectrum, slow_spectrum(field.numpy())[0], rtol=1e-10)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_rings_hold_all_the_energy(shape, generator):
    """Parseval: the sum over rings is the number of nodes times the sum of squares."""
    fields = make_fields(shape, generator)
    counts = torch.from_numpy(slow_spectrum(fields[0, 0].numpy())[1])
    energy = (radial_spectrum(fields) * counts).sum(2)
    torch.testing.assert_close(energy, shape[0] * shape[1] * fields.square().sum((2, 3)))


def test_the_bins_of_a_line_are_its_wave_numbers():
    x = torch.arange(16, dtype=torch.float64) / 16
    spectrum = radial_spectrum(torch.cos(2 * torch.pi * 3 * x).reshape(1, 1, 1, 16))[0, 0]
    assert len(spectrum) == 9
    assert int(spectrum.argmax()) == 3
    assert float(spectrum[3]) == pytest.approx(64.0)


def test_the_spectral_error_compares_mean_spectra(generator):
    truth = make_fields((12, 14), generator, channels=1)
    prediction = truth + 0.1 * make_fields((12, 14), generator, channels=1)
    means = [
        np.mean([slow_spectrum(field)[0] for field in fields[:, 0].numpy()], axis=0)
        for fields in (prediction, truth)
    ]
    expected = np.linalg.norm(means[0] - means[1]) / np.linalg.norm(means[1])
    assert float(spectral_error(Compared(prediction, truth))) == pytest.approx(expected, rel=1e-10)


def test_the_distance_over_channels_is_the_root_mean_square():
    truth = torch.tensor([[3.0, 4.0], [0.0, 10.0]])
    prediction = torch.tensor([[3.0, 5.0], [4.0, 10.0]])
    expected = ((0.2**2 + 0.4**2) / 2) ** 0.5
    assert float(spectral_distance(prediction, truth)) == pytest.approx(expected)


def test_a_channel_of_zeros_has_no_distance_and_no_part_in_that_of_all():
    truth = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
    prediction = torch.tensor([[3.0, 5.0], [1.0, 0.0]], requires_grad=True)
    value = spectral_distance(prediction, truth)
    assert float(value.detach()) == pytest.approx(0.2)
    value.backward()
    assert bool(torch.isfinite(prediction.grad).all())
