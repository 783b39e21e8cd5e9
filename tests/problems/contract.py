"""What every problem must satisfy; subclassed by the tests of each one."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pytest
import torch
from torch.nn import functional

from twoscale import Grid, TwoscaleError
from twoscale.domain.symmetries import SQUARE
from twoscale.problems import (
    DiffusionProblem,
    Problem,
    describe_problem,
    make_problem,
    problem_from,
)

GRIDS = [Grid((8, 8)), Grid((9, 9)), Grid((17, 17)), Grid((33, 33)), Grid((50, 50)), Grid((12, 31))]
any_grid = pytest.mark.parametrize("grid", GRIDS, ids=str)


class ProblemContract:
    """Subclasses give the problem and an independent direct solve of one sample."""

    problem: Problem
    other: Problem  # of the same class, with all parameters unlike the defaults
    square = (16, 16)  # a small grid
    rectangle = (14, 22)
    smallest = (9, 9)
    tolerance = 1e-8  # of solutions, beside those by other means

    @pytest.fixture(params=GRIDS, ids=str)
    def grid(self, request):
        """Some grids of the problem; a subclass may have others."""
        return request.param

    def small_grid(self, shape=None):
        return self.problem.grid(*(shape or self.square))

    def direct_solution(self, field: np.ndarray) -> np.ndarray:
        """Return the solution (..., height, width) of one input field, by other means."""
        raise NotImplementedError

    def test_the_solution_is_that_of_another_solver(self, grid):
        inputs = self.problem.sample(grid, range(3), seed=1)
        for field, solution in zip(inputs.numpy(), self.problem.solve(inputs).numpy(), strict=True):
            expected = self.direct_solution(field)
            error = np.linalg.norm(solution - expected) / np.linalg.norm(expected)
            assert error < self.tolerance

    def test_fields_have_the_channels_and_axes_that_are_declared(self, grid):
        inputs = self.problem.sample(grid, range(2), seed=0)
        entering, leaving = self.problem.channels
        channels = (entering,) if max(entering, leaving) > 1 else ()
        assert inputs.shape == (2, *channels, *grid.shape)
        fields = inputs.reshape(2, entering, *grid.shape)
        solution = self.problem.solve(fields)
        assert solution.shape == (2, leaving, *grid.shape)
        before = inputs.clone()
        short = self.problem.solve(inputs)
        assert torch.equal(short.reshape(solution.shape), solution)
        assert torch.equal(inputs, before)
        assert inputs.dtype == self.problem.solve(inputs.float()).dtype == torch.float64

    def test_a_sample_depends_on_its_index_only(self, grid):
        everything = self.problem.sample(grid, range(9), seed=5)
        some = self.problem.sample(grid, [7, 2, 2, 5], seed=5)
        torch.testing.assert_close(some, everything[[7, 2, 2, 5]], rtol=1e-12, atol=1e-12)
        assert torch.equal(some.float(), everything[[7, 2, 2, 5]].float())
        chunks = [self.problem.sample(grid, range(k, k + 3), seed=5) for k in (0, 3, 6)]
        assert torch.equal(torch.cat(chunks).float(), everything.float())

    def test_a_solution_depends_on_its_own_input_only(self):
        inputs = self.problem.sample(self.small_grid(self.rectangle), range(6), seed=2)
        together = self.problem.solve(inputs)
        alone = torch.cat([self.problem.solve(field[None]) for field in inputs])
        torch.testing.assert_close(together, alone, rtol=1e-11, atol=1e-14)

    def test_other_indices_seeds_and_resolutions_give_other_samples(self):
        height, width = self.square
        samples = [
            self.problem.sample(self.problem.grid(*shape), [index], seed=seed)
            for shape, index, seed in (
                *((self.square, *case) for case in ((0, 0), (1, 0), (0, 1))),
                *((shape, 0, 0) for shape in ((height + 1, width), (height, width + 1))),
            )
        ]
        for one, two in combinations([one[..., :height, :width] for one in samples], 2):
            assert not torch.allclose(one, two, rtol=0.01)

    @pytest.mark.parametrize("shape", ["square", "rectangle"])
    def test_symmetries_commute_with_the_solution(self, shape):
        grid = self.small_grid(getattr(self, shape))
        inputs = self.problem.sample(grid, range(3), seed=4)
        solution = self.problem.solve(inputs)
        for act in self.problem.symmetries(grid):
            torch.testing.assert_close(
                self.problem.solve(act(inputs)), act(solution), rtol=1e-7, atol=1e-9
            )

    def test_pairs_are_samples_and_their_solutions(self):
        grid = self.small_grid()
        inputs, outputs = self.problem.pairs(grid, [3, 1], seed=2)
        assert torch.equal(inputs, self.problem.sample(grid, [3, 1], seed=2))
        assert torch.equal(outputs, self.problem.solve(inputs))
        assert self.problem.solves(grid)

    def test_parameters_come_back_exactly(self):
        assert type(self.other) is type(self.problem)
        assert self.other != self.problem
        for problem in (self.problem, self.other):
            stored = json.loads(json.dumps(describe_problem(problem), allow_nan=False))
            assert stored["name"] == problem.name
            assert problem_from(stored) == problem
            assert problem.from_parameters(stored["parameters"]) == problem
            assert make_problem(problem.name, problem.parameters()) == problem
        described = self.problem.distribution
        assert json.loads(json.dumps(described)) == described
        with pytest.raises(TwoscaleError, match="no parameter 'colour'"):
            problem_from({"name": self.problem.name, "parameters": {"colour": 1}})

    def test_a_grid_it_is_not_stated_on_is_refused(self):
        rows, columns = self.problem.periodic
        with pytest.raises(TwoscaleError, match=f"{self.problem.name} .*periodic"):
            self.problem.check_grid(Grid(self.square, periodic=(not rows, columns)))
        fewest = self.problem.fewest_nodes
        if fewest > 1:
            with pytest.raises(TwoscaleError, match=f"at least {fewest} nodes"):
                self.problem.solve(torch.ones(1, fewest - 1, 50))

    @pytest.mark.gpu
    def test_cuda_agrees_with_the_cpu(self):
        grid = self.small_grid(self.rectangle)
        inputs = self.problem.sample(grid, range(4), seed=0)
        there = self.problem.sample(grid, range(4), seed=0, device="cuda")
        assert there.is_cuda
        torch.testing.assert_close(there.cpu(), inputs, rtol=1e-10, atol=1e-12)
        solution = self.problem.solve(there)
        assert solution.is_cuda
        torch.testing.assert_close(
            solution.cpu(), self.problem.solve(inputs), rtol=1e-8, atol=1e-11
        )


class ResidualContract(ProblemContract):
    """What problems with a discrete residual satisfy as well."""

    def right_side_scale(self, inputs: torch.Tensor) -> float:
        """Return the size of the equation's right side, against which residuals are small."""
        raise NotImplementedError

    def test_the_residual_of_the_solution_vanishes(self, grid):
        inputs = self.problem.sample(grid, range(5), seed=3)
        residual = self.problem.residual(inputs, self.problem.solve(inputs))
        assert len(residual) == 5
        assert residual[0].numel() > 0
        scale = self.right_side_scale(inputs)
        assert residual.abs().max() < 1e-8 * scale
        wrong = self.problem.residual(inputs, -self.problem.solve(inputs))
        assert wrong.square().mean().sqrt() > 0.1 * scale

    def test_the_residual_carries_gradients(self):
        inputs = self.problem.sample(self.small_grid(self.smallest), [0], seed=0)
        outputs = self.problem.solve(inputs).requires_grad_()
        assert torch.autograd.gradcheck(lambda u: self.problem.residual(inputs, u), outputs)

    def test_the_residual_keeps_channels_and_arguments(self, grid):
        inputs = self.problem.sample(grid, range(2), seed=0)
        solution = self.problem.solve(inputs)
        before, kept = inputs.clone(), solution.clone()
        residual = self.problem.residual(inputs, solution)
        assert torch.equal(inputs, before)
        assert torch.equal(solution, kept)
        entering, leaving = self.problem.channels
        with_channels = self.problem.residual(
            inputs.reshape(2, entering, *grid.shape), solution.reshape(2, leaving, *grid.shape)
        )
        assert torch.equal(residual.flatten(1), with_channels.flatten(1))
        assert self.problem.has_residual(grid)


class DiffusionContract(ResidualContract):
    """What problems with a diffusion coefficient and u = 0 on the boundary satisfy as well."""

    problem: DiffusionProblem

    def test_the_solution_is_zero_on_the_boundary(self, grid):
        solution = self.problem.solve(self.problem.sample(grid, range(2), seed=0))
        assert solution.shape == (2, *grid.shape)
        for edge in (solution[:, 0], solution[:, -1], solution[..., 0], solution[..., -1]):
            assert not edge.any()

    def test_the_system_is_that_of_the_residual(self):
        """A u - f, with A symmetric and positive, is the residual up to the sign it is told in."""
        inputs = self.problem.sample(self.small_grid(self.rectangle), range(3), seed=0)
        inside = torch.rand_like(inputs[:, 1:-1, 1:-1])
        system = self.problem.system(inputs.float())
        residual = self.problem.residual(inputs, functional.pad(inside, (1, 1, 1, 1)))
        assert residual.shape == inside.shape
        left = system.apply(inside) - system.right_side
        torch.testing.assert_close(left.abs(), residual.abs(), rtol=1e-5, atol=1e-4)
        assert system.right_side.dtype == torch.float64
        assert bool(((inside * system.apply(inside)).sum((1, 2)) > 0).all())

    def test_a_square_has_eight_symmetries_and_a_rectangle_four(self):
        assert self.problem.symmetries(Grid.square(20)) == SQUARE
        field = torch.rand(14, 22)
        images = [act(field) for act in self.problem.symmetries(Grid((14, 22)))]
        assert {tuple(image.shape) for image in images} == {(14, 22)}
        assert len({tuple(image.flatten().tolist()) for image in images}) == 4
        assert torch.equal(images[0], field)

    @pytest.mark.parametrize("shape", [(2, 9), (9, 1)])
    def test_a_grid_without_interior_nodes_is_refused(self, shape):
        with pytest.raises(TwoscaleError, match="at least 3 nodes"):
            self.problem.sample(Grid(shape), [0], seed=0)
        with pytest.raises(TwoscaleError, match="at least 3 nodes"):
            self.problem.solve(torch.ones(1, *shape))
