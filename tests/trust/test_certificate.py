import json
from pathlib import Path

import certificate_record as record
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from twoscale import Certificate, Darcy, DarcyFNO, Grid, Poisson, TwoscaleError, certify
from twoscale.problems import DiffusionProblem

extended = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 1e-18, reason="needs numbers of more than double precision"
)
SIDES = st.integers(3, 12)
RESULTS = Path(__file__).parents[2] / "results"


@pytest.fixture
def darcy(generator):
    """A problem, media, solutions and predictions that are some percent off."""
    problem = Darcy()
    media = problem.sample(Grid((12, 15)), range(4), seed=0)
    solutions = problem.solve(media)
    noise = torch.randn(solutions.shape, dtype=torch.float64, generator=generator)
    return problem, media, solutions, solutions + 1e-4 * noise


def energy(problem, media, error):
    """h sqrt(e'Ae) of the interior values of fields."""
    inside = error[:, 1:-1, 1:-1]
    applied = problem.system(media).apply(inside)
    rows, columns = Grid(error.shape[1:]).spacing
    return (rows * columns * (inside * applied).sum((1, 2))).sqrt().numpy()


# The bounds hold


@extended
@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(SIDES, SIDES),
    contrast=st.one_of(st.just(1.0), st.floats(3, 1000)),
    kind=st.sampled_from(record.MEDIA),
    seed=st.integers(0, 2**31),
)
def test_no_bound_is_on_the_wrong_side(shape, contrast, kind, seed):
    """Twelve predictions, from noise to the rounded solution, against a solve by other means."""
    assert record.trial(np.random.default_rng(seed), shape, contrast, kind).violations() == 0


@extended
def test_a_wrong_bound_would_be_found():
    one = record.trial(np.random.default_rng(0), (9, 7), 10.0, "smooth")
    low = {name: values / 2 for name, values in one.certificate.as_dict().items()}
    high = {name: values * 2 for name, values in one.certificate.as_dict().items()}
    for wrong in (low, high):
        changed = record.Trial(Certificate(**wrong), one.errors, one.size, one.plain)
        assert changed.violations() > 6


def test_the_recorded_run_has_no_violation_and_sharp_bounds():
    found = json.loads((RESULTS / "certificate.json").read_text())
    assert found["violations"] == 0
    assert found["pairs"] >= 10_000
    assert set(found["contrasts"]) == {"1", "3", "10", "100", "1000"}
    assert found["contrasts"]["3"]["mean_overestimate"] < 1.01


@extended
def test_the_reference_is_the_librarys_equation():
    """Another solver, another stencil, the same solution."""
    medium = Darcy().sample(Grid((9, 14)), [0], seed=0)
    one = record.Equation.solved(medium[0].numpy(), np.ones((9, 14)))
    np.testing.assert_allclose(one.solution.astype(float), Darcy().solve(medium)[0], atol=1e-10)


def test_poisson_is_an_identity(generator):
    problem = Poisson()
    forcing = problem.sample(Grid((14, 9)), range(3), seed=0)
    error = torch.randn(3, 14, 9, dtype=torch.float64, generator=generator)
    found = certify(problem.solve(forcing) + error, forcing, problem)
    true = energy(problem, forcing, error)
    for bound in (found.energy_error_lower, found.energy_error_upper):
        np.testing.assert_allclose(bound, true, rtol=1e-10)


def test_bounds_at_contrast_three_are_within_a_percent(darcy):
    problem, media, solutions, prediction = darcy
    found = certify(prediction, media, problem)
    true = energy(problem, media, solutions - prediction)
    np.testing.assert_allclose(found.energy_error_upper, true, rtol=0.01)
    np.testing.assert_allclose(found.energy_error_lower, true, rtol=0.01)
    relative = true / energy(problem, media, solutions)
    np.testing.assert_allclose(found.relative_error_upper, relative, rtol=0.01)
    np.testing.assert_allclose(found.relative_error_lower, relative, rtol=0.01)


def test_zero_is_one_hundred_percent_off(darcy):
    problem, media, solutions, _ = darcy
    found = certify(torch.zeros_like(solutions), media, problem)
    np.testing.assert_allclose(found.relative_error_lower, 1, rtol=0.05)
    np.testing.assert_allclose(found.relative_error_upper, 1, rtol=0.05)


def test_the_boundary_is_left_out_and_told(darcy):
    problem, media, _, prediction = darcy
    edged = prediction.clone()
    edged[1, 0, 3] = -0.25
    inside = prediction.clone()
    inside[:, 0] = inside[:, -1] = inside[..., 0] = inside[..., -1] = 0.0
    found, expected = certify(edged, media, problem), certify(inside, media, problem)
    np.testing.assert_array_equal(found.energy_error_upper, expected.energy_error_upper)
    assert found.boundary_error[1] == 0.25
    assert not expected.boundary_error.any()


# What comes in and out


def test_arrays_of_every_kind_and_rank(darcy):
    problem, media, _, prediction = darcy
    expected = certify(prediction, media, problem).energy_error_upper
    assert expected.dtype == np.float64
    assert expected.shape == (4,)
    for one, other in (
        (prediction.numpy(), media.numpy()),
        (prediction[:, None], media),
        (prediction.tolist(), media[:, None].numpy()),
    ):
        np.testing.assert_array_equal(certify(one, other, "darcy").energy_error_upper, expected)
    single = certify(prediction[2], media[2], problem).energy_error_upper
    np.testing.assert_allclose(single, expected[2:3], rtol=1e-12)


def test_no_sample_depends_on_its_batch(darcy, monkeypatch):
    problem, media, _, prediction = darcy
    prediction[3] = 100.0  # a field whose own size says nothing of the solution's
    whole = certify(prediction, media, problem)
    monkeypatch.setattr("twoscale.trust.certificate._VALUES", 1)
    for name, values in certify(prediction, media, problem).as_dict().items():
        np.testing.assert_allclose(values, getattr(whole, name), rtol=1e-11)


def test_arrays_on_disk_that_are_too_large_for_the_memory(darcy, tmp_path, monkeypatch):
    problem, media, _, prediction = darcy
    expected = certify(prediction, media, problem).energy_error_upper
    for name, fields in (("x", media), ("p", prediction)):
        np.save(tmp_path / f"{name}.npy", fields.numpy()[:, None])
    monkeypatch.setattr("twoscale.fields.arrays.available_memory", lambda: 10)
    p, x = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "px")
    np.testing.assert_array_equal(certify(p, x, problem).energy_error_upper, expected)


class Forced(DiffusionProblem):
    """-div(a grad u) = f with both a and f as input."""

    name = "forced"
    solver = "none"
    channels = (2, 1)
    distribution = sample = solve = None

    def coefficient(self, inputs):
        return inputs[:, :1]

    def right_side(self, inputs):
        return inputs[:, 1:, 1:-1, 1:-1]


def test_an_equation_of_ones_own_with_two_input_channels(darcy):
    problem, media, _, prediction = darcy
    both = torch.stack([media, torch.ones_like(media)], 1)
    found = certify(prediction[:, None], both, Forced()).energy_error_upper
    np.testing.assert_array_equal(found, certify(prediction, media, problem).energy_error_upper)


@pytest.mark.parametrize("forcing", [1e-160, 1e-33, 1e30, 1e150])
@pytest.mark.parametrize("medium", [1e-60, 1.0, 1e40])
def test_bounds_do_not_depend_on_units(darcy, forcing, medium):
    """Squares of such numbers leave the range of double precision."""
    _, media, _, prediction = darcy
    both = torch.stack([media, torch.ones_like(media)], 1)
    usual = certify(prediction[:, None], both, Forced())
    both = torch.stack([medium * media, torch.full_like(media, forcing)], 1)
    scaled = prediction[:, None].double() * (forcing / medium)
    found = certify(scaled, both, Forced())
    energy = forcing / medium**0.5
    for name in ("energy_error_lower", "energy_error_upper"):
        np.testing.assert_allclose(getattr(found, name) / energy, getattr(usual, name), rtol=1e-9)
    for name in ("relative_error_lower", "relative_error_upper"):
        np.testing.assert_allclose(getattr(found, name), getattr(usual, name), rtol=1e-9)


def test_a_solution_of_zeros_has_no_relative_error(darcy):
    _, media, _, prediction = darcy
    both = torch.stack([media, torch.zeros_like(media)], 1)
    found = certify(prediction[:, None], both, Forced())
    assert (found.energy_error_lower > 0).all()
    assert (found.relative_error_lower == 0).all()
    assert np.isinf(found.relative_error_upper).all()


# What is refused


@pytest.mark.parametrize("name", ["helmholtz", "navier-stokes", "cno-poisson"])
def test_other_equations_are_refused(name):
    with pytest.raises(TwoscaleError, match=f"needs an equation .* darcy.*; got {name}"):
        certify(np.ones((2, 9, 9)), np.ones((2, 9, 9)), name)


def test_an_unknown_equation_is_refused():
    with pytest.raises(TwoscaleError, match="is not known: only fields of a known problem"):
        certify(np.ones((2, 9, 9)), np.ones((2, 9, 9)), None)
    with pytest.raises(TwoscaleError, match="; got 3"):
        certify(np.ones((2, 9, 9)), np.ones((2, 9, 9)), 3)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_coefficients_that_are_not_positive_are_refused(darcy, value):
    problem, media, _, prediction = darcy
    media[2, 3, 3] = value
    with pytest.raises(TwoscaleError, match="needs a coefficient that is positive everywhere"):
        certify(prediction, media, problem)


def test_numbers_that_are_not_finite_are_refused(darcy):
    problem, media, _, prediction = darcy
    prediction[0, 5, 5] = torch.nan
    with pytest.raises(TwoscaleError, match="the predicted fields contain NaN"):
        certify(prediction, media, problem)
    with pytest.raises(TwoscaleError, match="the input fields of poisson contain NaN"):
        certify(media, prediction, "poisson")


@pytest.mark.parametrize(
    ("prediction", "inputs", "words"),
    [
        ((3, 9, 9), (2, 9, 9), "3 predicted fields but 2 input fields"),
        ((2, 9, 9), (2, 9, 8), "on one grid, got 1 on 9x8 and 1 on 9x9"),
        ((2, 2, 9, 9), (2, 9, 9), "1 input and 1 output channels"),
        ((2, 2, 9), (2, 2, 9), "at least 3 nodes per side"),
        ((2, 1, 9, 9, 9), (2, 9, 9), "three dimensions are not supported"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(prediction, inputs, words):
    with pytest.raises(TwoscaleError, match=words):
        certify(np.ones(prediction), np.ones(inputs), Darcy())


def test_thinned_fields_are_refused():
    problem = DarcyFNO(nodes=17)
    media, solutions = problem.pairs(problem.grid(9, 9), [0], seed=0)
    with pytest.raises(TwoscaleError, match="darcy-fno on 9x9 nodes are thinned"):
        certify(solutions, media, problem)
    media, solutions = problem.pairs(problem.grid(17, 17), [0], seed=0)
    assert certify(solutions, media, problem).relative_error_upper < 1e-9
