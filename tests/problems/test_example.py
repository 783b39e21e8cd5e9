"""The example of a problem of one's own keeps the contract, and is found once it is installed."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
import torch

from tests.problems.contract import ResidualContract
from tests.problems.example import FOLDER, load_example, pretend_installed
from twoscale import Grid
from twoscale.problems import (
    GaussianRandomField,
    describe_problem,
    make_problem,
    problem_from,
)

AdvectionDiffusion = load_example().AdvectionDiffusion


class TestAdvectionDiffusion(ResidualContract):
    problem = AdvectionDiffusion()
    other = AdvectionDiffusion(
        diffusivity=0.5, speed=1 / 3, variation=GaussianRandomField(alpha=3.0, tau=4.0)
    )

    def direct_solution(self, field):
        """Assemble node by node; a neighbour beyond a side with du/dn = 0 is the mirrored one."""
        source, wind = field
        height, width = source.shape
        dy, dx = 1 / (height - 1), 1 / (width - 1)
        matrix = scipy.sparse.lil_array((source.size, source.size))
        right_side = np.zeros(source.size)
        for i in range(height):
            for j in range(width):
                here = i * width + j
                if j == 0:
                    matrix[here, here] = 1.0
                    continue
                right_side[here] = source[i, j]
                matrix[here, here] += 0.2 / dy**2 + 0.2 / dx**2 + wind[i, j] / dx
                matrix[here, here - 1] -= wind[i, j] / dx
                for di, dj, spacing in ((1, 0, dy), (-1, 0, dy), (0, 1, dx), (0, -1, dx)):
                    row = i + di if 0 <= i + di < height else i - di
                    column = j + dj if j + dj < width else j - dj
                    matrix[here, row * width + column] -= 0.1 / spacing**2
        return scipy.sparse.linalg.spsolve(matrix.tocsc(), right_side).reshape(1, height, width)

    def right_side_scale(self, inputs):
        return float(inputs[:, 0].square().mean().sqrt())

    def test_the_solution_is_zero_at_the_left_side_only(self):
        solution = self.problem.solve(self.problem.sample(Grid((9, 12)), range(3), seed=0))
        assert not solution[..., 0].any()
        assert bool((solution[..., 1:] != 0).all())


def analytic_case(size, *, wind):
    """The source of u = sin(pi x / 2) cos(pi y), which satisfies all boundary conditions."""
    x = torch.linspace(0, 1, size, dtype=torch.float64)
    y = x[:, None]
    u = torch.sin(math.pi * x / 2) * torch.cos(math.pi * y)
    u_x = math.pi / 2 * torch.cos(math.pi * x / 2) * torch.cos(math.pi * y)
    source = wind * u_x + 0.1 * (1 + 1 / 4) * math.pi**2 * u
    return torch.stack([source, torch.full_like(source, wind)])[None], u[None, None]


@pytest.mark.parametrize(("wind", "order"), [(0.0, 2), (2.0, 1)])
def test_an_analytic_solution_is_approached(wind, order):
    """Centred differences are of second order, upwind ones of first."""
    errors = []
    for size in (17, 33, 65):
        inputs, exact = analytic_case(size, wind=wind)
        errors.append(float((AdvectionDiffusion().solve(inputs) - exact).abs().max()))
    assert errors[-1] < 0.02
    ratios = [errors[0] / errors[1], errors[1] / errors[2]]
    assert ratios == pytest.approx([2**order] * 2, rel=0.1)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    pretend_installed(tmp_path, monkeypatch)


@pytest.mark.usefixtures("installed")
def test_it_is_found_once_it_is_installed():
    problem = make_problem("advection-diffusion", {"diffusivity": "0.05"})
    assert problem.diffusivity == 0.05
    assert problem_from(describe_problem(problem)) == problem


@pytest.mark.usefixtures("installed")
def test_the_python_lines_of_its_readme_run():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names = {}
    exec(block.replace("500", "3"), names)
    assert names["inputs"].shape == (3, 2, 32, 32)
    assert names["outputs"].shape == (3, 1, 32, 32)
    assert len(text.split()) <= 300
