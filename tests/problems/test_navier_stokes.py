import json
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from tests.problems.contract import ProblemContract
from twoscale import Surrogate, TwoscaleError
from twoscale.problems import NavierStokes
from twoscale.problems.navier_stokes import fields_of

PUBLISHED = json.loads((Path(__file__).parent / "data/navier_stokes.json").read_text("utf-8"))


def final_vorticity(problem, forcing, initial):
    """The vorticity at the end, in the form d_t w + div(v w), by an adaptive method of order 8."""
    height, width = forcing.shape
    k, m = (np.fft.fftfreq(size, 1 / size) for size in forcing.shape)
    k, m = k[:, None], m[None]
    squares = k**2 + m**2
    kept = (np.abs(k) < height / 3) & (np.abs(m) < width / 3)
    source = np.where(kept, np.fft.fft2(forcing), 0)

    def change(_, flat):
        w = np.fft.fft2(flat.reshape(height, width)) * kept
        stream = w / np.where(squares > 0, squares, np.inf)
        field, u, v = (np.fft.ifft2(one).real for one in (w, 1j * m * stream, -1j * k * stream))
        flux = 1j * k * np.fft.fft2(u * field) + 1j * m * np.fft.fft2(v * field)
        total = source - kept * flux - problem.viscosity * squares * w
        return np.fft.ifft2(total).real.ravel()

    options = {"method": "DOP853", "rtol": 1e-9, "atol": 1e-12}
    path = solve_ivp(change, (0, problem.time), initial.ravel(), **options)
    return path.y[:, -1].reshape(height, width)


def initial_vorticity(grid):
    """What an instant leaves of no flow at all, without forcing."""
    instant = NavierStokes(time=1e-13, steps=1)
    return instant.solve(torch.zeros(1, *grid.shape))[0].numpy()


class TestNavierStokes(ProblemContract):
    problem = NavierStokes()
    other = NavierStokes(viscosity=0.1, time=2.0, steps=7)
    rectangle = (18, 24)
    tolerance = 1e-5  # of ten steps

    @pytest.fixture(params=[(24, 24), (21, 32)], ids=str)
    def grid(self, request):
        return self.problem.grid(*request.param)

    def direct_solution(self, field):
        grid = self.problem.grid(*field.shape)
        return final_vorticity(self.problem, field, initial_vorticity(grid))

    def test_it_has_no_symmetries_and_no_residual(self):
        grid = self.small_grid()
        assert len(self.problem.symmetries(grid)) == 1
        assert not self.problem.has_residual(grid)
        with pytest.raises(TwoscaleError, match="navier-stokes has no residual"):
            self.problem.residual(torch.ones(1, 16, 16), torch.ones(1, 16, 16))


@pytest.mark.parametrize("sample", PUBLISHED["samples"], ids=["first", "second"])
def test_published_samples_are_met(sample):
    problem = NavierStokes()
    coefficients = torch.tensor(sample["theta"], dtype=torch.float64).reshape(1, -1, 2)
    vorticity = problem.solve(fields_of(coefficients, problem.grid(64, 64)))[0]
    assert float(vorticity.norm()) == pytest.approx(sample["norm"], rel=1e-5)
    for i, j, value in sample["probes"]:
        assert float(vorticity[i, j]) == pytest.approx(value, abs=1e-5 * float(vorticity.max()))


def test_time_steps_converge_with_order_four():
    grid = NavierStokes().grid(32, 32)
    forcing = NavierStokes().sample(grid, [0], seed=0)
    coarse, fine, exact = (NavierStokes(steps=n).solve(forcing) for n in (10, 20, 160))
    ratio = (coarse - exact).norm() / (fine - exact).norm()
    assert float(ratio) == pytest.approx(16, rel=0.3)


def test_the_forcing_has_the_variance_of_its_modes():
    problem = NavierStokes()
    fields = problem.sample(problem.grid(16, 16), range(2000), seed=0)
    modes = torch.tensor([[0, 1]])  # the largest one: its amplitude is that of cos and sin of y
    projected = torch.fft.rfft2(fields)[:, 0, 1].abs().square() * (2 / 256) ** 2
    scale = (9 + modes.square().sum()) ** -2.0 / (2**0.5 * torch.pi)
    assert float(projected.mean()) == pytest.approx(float(2 * scale**2), rel=0.1)


def test_a_surrogate_of_it_has_no_residual_in_its_metrics():
    problem = NavierStokes(steps=2)
    x, w = problem.pairs(problem.grid(16, 16), range(24), seed=0)
    surrogate = Surrogate("global", problem=problem, predictor="affine", device="cpu").fit(x, w)
    metrics = surrogate.evaluate(x, w)
    assert metrics["residual_rms"] is None
    with pytest.raises(TwoscaleError, match="navier-stokes has no residual on 16px16p"):
        surrogate.finetune(x, w, objective="A5")
