import numpy as np
import pytest
import torch

from twoscale.math.measures import (
    Compared,
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
    return np.array([sums[r] / counts[r] for r in rings])


def make_fields(shape, generator, channels=2):
    return torch.randn(3, channels, *shape, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_spectrum_is_the_radial_mean(shape, generator):
    fields = make_fields(shape, generator)
    spectra = radial_spectrum(fields)
    assert spectra.shape[:2] == (3, 2)
    for field, spectrum in zip(fields.flatten(0, 1), spectra.flatten(0, 1), strict=True):
        np.testing.assert_allclose(spectrum, slow_spectrum(field.numpy()), rtol=1e-10)


def test_the_spectral_error_compares_mean_spectra(generator):
    truth = make_fields((12, 14), generator, channels=1)
    prediction = truth + 0.1 * make_fields((12, 14), generator, channels=1)
    means = [
        np.mean([slow_spectrum(field) for field in fields[:, 0].numpy()], axis=0)
        for fields in (prediction, truth)
    ]
    expected = np.linalg.norm(means[0] - means[1]) / np.linalg.norm(means[1])
    assert float(spectral_error(Compared(prediction, truth))) == pytest.approx(expected, rel=1e-10)
