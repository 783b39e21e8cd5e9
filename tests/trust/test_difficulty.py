"""Scores of difficulty that the equation gives."""

import torch

from tests.trust.test_certificate import Forced
from twoscale import Darcy, Grid, Poisson, Surrogate
from twoscale.fields.source import Batch
from twoscale.trust.difficulty import RESIDUAL, Difficulty
from twoscale.trust.input_range import InputRange


def scores(problem, inputs, predicted):
    """Return the residual scores of inputs (b, C, H, W) and predictions (b, 1, H, W)."""
    space = Surrogate("global", predictor="affine").fit(inputs, predicted).input_space_
    difficulty = Difficulty(None, problem, InputRange(space), [RESIDUAL])
    return difficulty(Batch.of(inputs.float()), predicted)[:, 0]


def relative(predicted, truth):
    return ((predicted - truth).flatten(1).norm(dim=1) / predicted.flatten(1).norm(dim=1)).double()


def wrong(truth):
    """Predictions with errors of several sizes, also on the boundary."""
    generator = torch.Generator().manual_seed(0)
    sizes = torch.linspace(0.01, 0.2, len(truth))[:, None, None, None]
    noise = torch.randn(truth.shape, generator=generator)
    return (truth + sizes * truth.std() * noise).float()


def test_of_poisson_it_is_the_error_itself():
    problem = Poisson()
    x = problem.sample(Grid((17, 17)), range(40), seed=0)[:, None]
    truth = problem.solve(x)
    predicted = wrong(truth)
    torch.testing.assert_close(
        scores(problem, x, predicted), relative(predicted, truth), rtol=1e-3, atol=0
    )


def test_each_sample_of_several_channels_has_its_own_equation():
    darcy = Darcy()
    media = darcy.sample(Grid((17, 17)), range(40), seed=0)[:, None]
    truth = darcy.solve(media)
    predicted = wrong(truth)
    both = torch.cat([media, torch.ones_like(media)], 1)
    found = scores(Forced(), both, predicted)
    torch.testing.assert_close(found, scores(darcy, media, predicted))
    ratio = relative(predicted, truth) / found
    assert float(ratio.min()) > 0.9
    assert float(ratio.max()) < 1.1
