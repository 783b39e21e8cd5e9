import json
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import torch

from tests.problems.contract import ResidualContract
from twoscale.problems import Helmholtz
from twoscale.problems.helmholtz import right_side, wave_numbers

PUBLISHED = json.loads((Path(__file__).parent / "data/helmholtz.json").read_text("utf-8"))
POINTS = np.array([-math.sqrt(0.6), 0, math.sqrt(0.6)]) / 2 + 0.5
WEIGHTS = np.array([5, 8, 5]) / 18


def between(values, points):
    """Values (nodes,) at points of the unit interval, by the cosine series through the nodes."""
    size = len(values)
    nodes, k = np.arange(size) / (size - 1), np.arange(size)
    series = np.linalg.solve(np.cos(np.pi * np.outer(nodes, k)), values)
    return np.cos(np.pi * np.outer(points, k)) @ series


class TestHelmholtz(ResidualContract):
    problem = Helmholtz(frequency=150.0)
    other = Helmholtz(frequency=200.0, speed=5.0, modes=7)
    square = (13, 13)
    rectangle = (11, 14)

    @pytest.fixture(params=[(12, 12), (19, 14)], ids=str)
    def grid(self, request):
        return self.problem.grid(*request.param)

    def direct_solution(self, field):
        """Assemble cell by cell, with 2 x 2 hat functions at 3 x 3 points."""
        height, width = field.shape
        dx, dy = 1 / (height - 1), 1 / (width - 1)
        rows, columns = (
            (np.arange(size - 1)[:, None] + POINTS).ravel() / (size - 1) for size in field.shape
        )
        speed = between(between(field, rows).T, columns).T
        matrix = scipy.sparse.lil_array((field.size, field.size))
        hats = np.array([1 - POINTS, POINTS])
        slopes = np.array([-np.ones(3), np.ones(3)])
        for i in range(height - 1):
            for j in range(width - 1):
                inside = speed[3 * i : 3 * i + 3, 3 * j : 3 * j + 3]
                nodes = [(i + a) * width + j + b for a in (0, 1) for b in (0, 1)]
                value = np.array([np.outer(hats[a], hats[b]) for a in (0, 1) for b in (0, 1)])
                by_x = np.array([np.outer(slopes[a], hats[b]) for a in (0, 1) for b in (0, 1)]) / dx
                by_y = np.array([np.outer(hats[a], slopes[b]) for a in (0, 1) for b in (0, 1)]) / dy
                reaction = (self.problem.frequency / inside) ** 2
                weight = np.outer(WEIGHTS, WEIGHTS) * dx * dy
                for one in range(4):
                    for two in range(4):
                        entry = by_x[one] * by_x[two] + by_y[one] * by_y[two]
                        entry = entry - reaction * value[one] * value[two]
                        matrix[nodes[one], nodes[two]] += (weight * entry).sum()
        load = np.zeros(field.shape)
        driven = np.abs(np.arange(height) * dx - 0.5) < 0.15
        for i in range(height - 1):
            for a in (0, 1):
                flux = driven[i] * hats[0] + driven[i + 1] * hats[1]
                load[i + a, -1] += dx * (WEIGHTS * flux * hats[a]).sum()
        return scipy.sparse.linalg.spsolve(matrix.tocsc(), load.ravel()).reshape(field.shape)

    def right_side_scale(self, inputs):
        height, width = inputs.shape[-2:]
        load = right_side(self.problem.grid(height, width), torch.device("cpu"))
        return float(load.square().mean().sqrt()) * (height - 1) * (width - 1)

    def test_the_medium_may_be_mirrored_only_along_the_driven_side(self):
        field = torch.rand(3, 4)
        images = [act(field) for act in self.problem.symmetries(self.small_grid())]
        assert len(images) == 2
        assert torch.equal(images[1], field.flip(0))


def test_published_samples_are_met():
    """The published coefficients, with our wave speeds and solutions."""
    problem, samples = Helmholtz(), PUBLISHED["samples"]
    coefficients = torch.tensor([one["theta"] for one in samples], dtype=torch.float64)
    solutions = problem.solve(problem.wave_speed(coefficients, problem.grid(101, 101)))
    for sample, solution in zip(samples, solutions, strict=True):
        assert float(solution.norm()) == pytest.approx(sample["norm"], rel=1e-8)
        for i, j, value in sample["probes"]:
            assert float(solution[i, j]) == pytest.approx(value, abs=1e-8 * float(solution.max()))


def test_waves_of_a_constant_speed_converge_with_second_order():
    """With constant c and a flux of 1 on the whole side, u = -cos(k y) / (k sin(k))."""
    problem = Helmholtz(frequency=100.0)
    k = 5.0

    def error(size):
        speeds = torch.full((1, size, size), 20.0, dtype=torch.float64)
        y = torch.linspace(0, 1, size, dtype=torch.float64)
        exact = (-torch.cos(k * y) / (k * math.sin(k))).expand(size, size)
        # The flux through the middle alone, averaged over x, is that of the mean flux.
        mean = problem.solve(speeds)[0]
        weights = torch.ones(size, dtype=torch.float64)
        weights[[0, -1]] = 0.5
        weights /= size - 1
        flux = right_side(problem.grid(size, size), torch.device("cpu")).sum()
        return float(((weights @ mean) / flux - exact[0]).abs().max())

    assert error(17) / error(33) == pytest.approx(4, rel=0.1)


def test_pairs_of_wave_numbers_are_in_the_published_order():
    pairs = wave_numbers(100)
    assert pairs[:8] == [(0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1), (2, 2)]
    assert len(set(pairs)) == 100
    assert wave_numbers(9) == pairs[:9]
    assert wave_numbers(1) == [(0, 1)]
