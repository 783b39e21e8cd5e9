"""Channels of very different size are learned as well as each of them alone."""

import numpy as np
import pytest

from twoscale import Grid, Poisson, Surrogate

RATIO = 1e6  # of the sizes of the two output channels
FACTOR = 2.0  # what a channel may lose beside the other


@pytest.fixture(scope="module")
def elastic():
    """Two forces to two displacements that each depend on both, as in elasticity."""
    problem, grid = Poisson(), Grid.square(16)
    first, second = (problem.sample(grid, range(260), seed=seed) for seed in (0, 1))
    along = problem.solve(first + 0.5 * second)
    across = problem.solve(0.3 * first - second)
    outputs = np.stack([along, RATIO * (across + 0.2 * along * across / along.std())], 1)
    return np.stack([first, second], 1).astype(np.float32), outputs.astype(np.float32)


SURROGATES = {
    "mlp": {"method": "two-scale", "epochs": 30},
    "local": {"method": "local", "epochs": 30},
    "affine": {"method": "two-scale", "predictor": "affine"},
    "kernel": {"method": "two-scale", "predictor": "kernel"},
    "field objective": {"method": "two-scale", "predictor": "affine", "objective": "field"},
    "conforming": {"method": "conforming", "predictor": "affine"},
    "encoder": {"method": "two-scale", "predictor": "encoder", "epochs": 2, "width": 4},
    "fno": {"method": "fno", "epochs": 2, "width": 6, "layers": 1, "modes": 6},
}


@pytest.mark.parametrize("name", SURROGATES)
def test_no_channel_drowns_another(elastic, name):
    inputs, outputs = elastic
    settings = dict(SURROGATES[name])
    method = settings.pop("method")

    def errors(targets):
        surrogate = Surrogate(method, seed=0, device="cpu", **settings)
        surrogate.fit(inputs[:200], targets[:200])
        metrics = surrogate.evaluate(inputs[200:], targets[200:])
        return [one["mre"] for one in metrics.get("channels", {"": metrics}).values()]

    together = errors(outputs)
    for channel, error in enumerate(together):
        (alone,) = errors(outputs[:, channel : channel + 1])
        assert error < FACTOR * alone, f"channel {channel}: {error:.3g}, alone {alone:.3g}"
