"""The two problems of CNO: closed forms, against finite differences."""

import math

import numpy as np
import pytest
import torch

from tests.problems.contract import ProblemContract, ResidualContract
from twoscale import TwoscaleError
from twoscale.math.transforms import sine_transform
from twoscale.problems import CNOPoisson, CNOWave, make_problem


def sine_sum(field, factor):
    """The interior's sines, found by a dense linear system, each times factor(i^2 + j^2)."""
    sines, numbers = [], []
    for size in field.shape:
        k = np.arange(1, size - 1)
        sines.append(np.sin(np.pi * np.outer(k, k) / (size - 1)))
        numbers.append(k)
    modes = np.linalg.solve(sines[0], np.linalg.solve(sines[1], field[1:-1, 1:-1].T).T)
    squares = numbers[0][:, None] ** 2 + numbers[1] ** 2
    return np.pad(sines[0] @ (modes * factor(squares)) @ sines[1], 1)


class SineContract(ProblemContract):
    square = (12, 12)
    rectangle = (11, 15)

    @pytest.fixture(params=[(16, 16), (10, 21)], ids=str)
    def grid(self, request):
        return self.problem.grid(*request.param)

    def test_fields_are_zero_on_the_boundary(self, grid):
        for field in self.problem.pairs(grid, [0], seed=0):
            for edge in (field[:, 0], field[:, -1], field[..., 0], field[..., -1]):
                assert not edge.any()

    def test_more_waves_than_the_grid_has_are_refused(self):
        waves = self.problem.waves
        with pytest.raises(TwoscaleError, match=f"waves={waves} .* {waves + 2} nodes"):
            self.problem.grid(waves + 1, 40)

    def test_the_solution_does_not_depend_on_the_grid(self):
        coefficients = 2 * torch.rand(2, *[self.problem.waves] * 2, dtype=torch.float64) - 1
        coarse, fine = (
            self.problem.solve(self.problem.series(coefficients, self.problem.grid(n, n)))
            for n in (12, 23)
        )
        torch.testing.assert_close(fine[:, ::2, ::2], coarse, rtol=1e-10, atol=1e-14)


class TestCNOPoisson(SineContract, ResidualContract):
    problem = CNOPoisson(waves=7)
    other = CNOPoisson(waves=3)

    def direct_solution(self, field):
        return sine_sum(field, lambda squares: 1 / (np.pi**2 * squares))

    def right_side_scale(self, inputs):
        return float(inputs.square().mean().sqrt())


class TestCNOWave(SineContract):
    problem = CNOWave(waves=8)
    other = CNOWave(waves=3, speed=0.2, time=1.0)

    def direct_solution(self, field):
        return sine_sum(field, lambda squares: np.cos(0.5 * np.pi * np.sqrt(squares)))

    def test_it_has_no_residual(self):
        assert not self.problem.has_residual(self.small_grid())


def test_waves_are_those_of_steps_in_time():
    """Leapfrog steps on the five-point Laplacian come near with second order."""
    coefficients = torch.rand(1, 2, 2, dtype=torch.float64)

    def error(size):
        problem = CNOWave(waves=2)
        spacing = 1 / (size - 1)
        steps = round(problem.time * problem.speed / (0.5 * spacing))
        ratio = (problem.speed * problem.time / steps / spacing) ** 2
        start = problem.series(coefficients, problem.grid(size, size))

        def push(u):
            around = sum(u.roll(by, axis) for by in (1, -1) for axis in (1, 2)) - 4 * u
            around[:, [0, -1]], around[..., [0, -1]] = 0, 0
            return ratio * around

        before, now = start, start + push(start) / 2
        for _ in range(steps - 1):
            before, now = now, 2 * now - before + push(now)
        return float((now - problem.solve(start)).abs().max())

    assert error(17) / error(33) == pytest.approx(4, rel=0.1)


def test_coefficients_are_uniform():
    problem = CNOPoisson(waves=1)
    peaks = problem.sample(problem.grid(3, 3), range(2000), seed=0)[:, 1, 1]
    size = math.pi * math.sqrt(2)
    assert float(peaks.abs().max()) <= size
    assert float(peaks.mean()) == pytest.approx(0, abs=0.06 * size)
    assert float(peaks.square().mean()) == pytest.approx(size**2 / 3, rel=0.06)


@pytest.mark.parametrize(("name", "waves"), [("cno-poisson", 20), ("cno-wave", 32)])
def test_fields_out_of_distribution_have_more_waves(name, waves):
    problem = make_problem(name, {"waves": str(waves)})
    field = problem.sample(problem.grid(64, 64), [0], seed=0)
    modes = sine_transform(field[:, 1:-1, 1:-1])[0].abs()
    assert float(modes[:waves, :waves].min()) > 1e-9
    assert float(modes[waves:].max()) < 1e-12
    assert float(modes[:, waves:].max()) < 1e-12
