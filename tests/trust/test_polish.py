import numpy as np
import pytest
import torch

from twoscale import Darcy, Grid, Poisson, TwoscaleError, TwoscaleWarning, certify, polish


@pytest.fixture
def darcy(generator):
    """A problem, media, solutions and predictions that are some percent off."""
    problem = Darcy()
    media = problem.sample(Grid((14, 17)), range(5), seed=0)
    solutions = problem.solve(media)
    noise = torch.randn(solutions.shape, dtype=torch.float64, generator=generator)
    return problem, media, solutions, solutions + 1e-4 * noise


def test_each_step_makes_the_error_smaller(darcy):
    problem, media, _, prediction = darcy
    before = certify(prediction, media, problem).energy_error_lower
    for steps in (1, 2, 4):
        polished = polish(prediction, media, problem, steps=steps)
        assert bool((polished.certificate.energy_error_upper < before).all())
        assert polished.steps.tolist() == [steps] * 5
        before = polished.certificate.energy_error_lower


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-10])
def test_every_sample_ends_with_a_proven_error(darcy, tolerance):
    problem, media, solutions, prediction = darcy
    polished = polish(prediction, media, problem, tolerance=tolerance)
    assert bool((polished.certificate.relative_error_upper <= tolerance).all())
    error = (polished.fields - solutions).flatten(1).norm(dim=1) / solutions.flatten(1).norm(dim=1)
    assert bool((error < 2 * max(tolerance, 1e-9)).all())


def test_a_good_start_saves_steps(darcy):
    problem, media, _, prediction = darcy
    start = polish(prediction, media, problem, tolerance=1e-6).steps
    zero = polish(torch.zeros_like(media), media, problem, tolerance=1e-6).steps
    assert bool((start < zero).all())


def test_steps_bound_those_of_a_tolerance(darcy):
    problem, media, _, prediction = darcy
    polished = polish(prediction, media, problem, steps=2, tolerance=1e-9)
    assert polished.steps.tolist() == [2] * 5
    assert bool((polished.certificate.relative_error_upper > 1e-9).all())
    early = polish(prediction, media, problem, steps=50, tolerance=1e-3)
    assert bool((early.steps < 50).all())


@pytest.mark.parametrize("amount", [{"steps": 1}, {"tolerance": 1e-12}])
def test_poisson_takes_one_step(amount, generator):
    problem = Poisson()
    forcing = problem.sample(Grid((12, 9)), range(3), seed=0)
    prediction = torch.randn(3, 12, 9, dtype=torch.float64, generator=generator)
    polished = polish(prediction, forcing, problem, **amount)
    assert polished.steps.tolist() == [1, 1, 1]
    assert polished.certificate.relative_error_upper.max() < 1e-12


def test_fields_come_back_as_they_came(darcy):
    problem, media, _, prediction = darcy
    expected = polish(prediction, media, problem, steps=2)
    arrays = polish(prediction.float().numpy()[:, None], media.numpy(), problem, steps=2)
    assert isinstance(arrays.fields, np.ndarray)
    assert (arrays.fields.shape, arrays.fields.dtype) == ((5, 1, 14, 17), np.float64)
    np.testing.assert_allclose(arrays.fields[:, 0], expected.fields, atol=1e-7)
    single = polish(prediction[1], media[1], problem, steps=2)
    torch.testing.assert_close(single.fields, expected.fields[1], rtol=1e-9, atol=1e-12)


def test_the_certificate_is_that_of_the_fields(darcy):
    problem, media, _, prediction = darcy
    polished = polish(prediction, media, problem, steps=2)
    expected = certify(polished.fields, media, problem).as_dict()
    for name, values in polished.certificate.as_dict().items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-12)


def test_what_rounding_keeps_out_of_reach_is_told(darcy):
    problem, media, _, prediction = darcy
    with pytest.warns(TwoscaleWarning, match="5 of 5 fields stayed above the tolerance 1e-16"):
        polished = polish(prediction, media, problem, tolerance=1e-16)
    assert polished.certificate.relative_error_upper.max() < 1e-11
    assert polished.steps.max() < 40


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ({}, "give a number of steps, or a tolerance"),
        ({"steps": 0}, "steps must be a whole number from 1, got 0"),
        ({"steps": 1.5}, "steps must be a whole number from 1, got 1.5"),
        ({"tolerance": 0.0}, "the tolerance must be between 0 and 1"),
        ({"tolerance": 1.0}, "the tolerance must be between 0 and 1"),
        ({"tolerance": float("nan")}, "the tolerance must be between 0 and 1"),
    ],
)
def test_amounts_out_of_range_are_refused(darcy, amount, words):
    problem, media, _, prediction = darcy
    with pytest.raises(TwoscaleError, match=words):
        polish(prediction, media, problem, **amount)
