import math

import numpy as np
import pytest
import torch

from twoscale import Grid, TwoscaleError
from twoscale.problems.random_field import GaussianRandomField, standard_normals

CPU = torch.device("cpu")
ENTROPY = (3, 1, 9, 12)


def slow_field(noise, alpha, tau):
    """The generator's formula, summed cosine by cosine."""
    height, width = noise.shape
    y, x = (np.arange(height) + 0.5) / height, (np.arange(width) + 0.5) / width
    field = np.zeros(noise.shape)
    for k in range(height):
        for m in range(width):
            if k == m == 0:
                continue
            decay = (math.pi**2 * (k**2 + m**2) + tau**2) ** (-alpha / 2)
            coefficient = math.sqrt(height * width) * tau ** (alpha - 1) * decay * noise[k, m]
            norm = math.sqrt((1 if k == 0 else 2) / height * (1 if m == 0 else 2) / width)
            waves = np.outer(np.cos(math.pi * k * y), np.cos(math.pi * m * x))
            field += coefficient * norm * waves
    return field


@pytest.mark.parametrize("shape", [(8, 8), (11, 11), (9, 12)])
@pytest.mark.parametrize(("alpha", "tau"), [(2.0, 3.0), (1.5, 5.0)])
def test_the_field_is_the_sum_of_cosines(shape, alpha, tau):
    fields = GaussianRandomField(alpha, tau).sample(
        Grid(shape), [4, 9], entropy=ENTROPY, device=CPU
    )
    for index, field in zip([4, 9], fields.numpy(), strict=True):
        noise = standard_normals(shape, [index], entropy=ENTROPY)[0]
        np.testing.assert_allclose(field, slow_field(noise, alpha, tau), atol=1e-12)


def test_each_sample_has_its_own_stream_by_spawn_key():
    noise = standard_normals((8, 9), [5, 0, 123_456_789], entropy=ENTROPY)
    for position, index in enumerate([5, 0, 123_456_789]):
        seeds = np.random.SeedSequence(ENTROPY, spawn_key=(index,))
        expected = np.random.default_rng(seeds).standard_normal((8, 9))
        np.testing.assert_array_equal(noise[position], expected)


# Modes


@pytest.mark.parametrize("shape", [(8, 8), (9, 12)])
def test_all_modes_together_have_the_covariance_of_samples(shape):
    """Var of a node is the sum of squared modes; samples have it within chance."""
    field, grid = GaussianRandomField(), Grid(shape)
    modes = field.modes(grid, grid.nodes - 1)
    samples = field.sample(grid, range(4000), entropy=ENTROPY)
    expected = modes.square().sum(0)
    np.testing.assert_allclose(samples.square().mean(0), expected, rtol=0.15)


def test_modes_are_orthogonal_and_come_in_the_order_of_their_size():
    modes = GaussianRandomField().modes(Grid((9, 12)), 20).flatten(1)
    gram = modes @ modes.T
    sizes = gram.diagonal()
    assert bool((sizes.diff() <= 1e-12).all())
    torch.testing.assert_close(gram, torch.diag(sizes), atol=1e-12, rtol=0)


@pytest.mark.parametrize("count", [0, 72])
def test_there_are_fewer_modes_than_nodes(count):
    with pytest.raises(TwoscaleError, match="has 1 to 71 modes"):
        GaussianRandomField().modes(Grid((8, 9)), count)
