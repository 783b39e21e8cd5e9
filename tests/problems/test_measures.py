import pytest
import torch

from tests.finetuning.affine import Coupled
from twoscale import Darcy, Grid, Poisson
from twoscale.domain.patches import Seams
from twoscale.math.measures import Compared, measure_channels
from twoscale.problems.measures import (
    flux_measures,
    flux_trace_error,
    has_coefficient,
    has_flux,
    residual_measures,
    residual_rms,
)


def test_residual_measures_by_hand():
    """The zero field leaves minus the forcing over, at interior nodes only."""
    inputs = torch.full((2, 1, 8, 8), 3.0)
    inputs[1] = -4.0
    inputs[:, :, 0] = 100.0
    nothing = torch.zeros_like(inputs)
    measures = residual_measures(Poisson())
    batch = Compared(nothing, nothing, inputs)
    assert float(measures["residual_mean_abs"](batch)) == pytest.approx(3.5)
    assert float(measures["residual_rms"](batch)) == pytest.approx(12.5**0.5)


@pytest.mark.parametrize("count", [1, 2])
def test_equations_are_measured_one_by_one(count, generator):
    """Of fields with three channels; the residual of one equation has no channels."""
    problem = Coupled(equations=count)
    fields = torch.randn(4, 3, 6, 7, dtype=torch.float64, generator=generator)
    batch = Compared(fields, fields, torch.ones(4, 1, 6, 7, dtype=torch.float64))
    residual = problem.residual(batch.inputs, fields).reshape(4, count, -1)
    total, equations = measure_channels(residual_measures(problem), [batch])
    mean, squares = residual.abs().mean((0, 2)), residual.square().mean((0, 2))
    assert equations["residual_mean_abs"] == pytest.approx(mean.tolist())
    assert equations["residual_rms"] == pytest.approx(squares.sqrt().tolist())
    assert total["residual_mean_abs"] == pytest.approx(float(mean.mean()))
    assert total["residual_rms"] == pytest.approx(float(squares.mean().sqrt()))


def test_only_a_coefficient_that_varies_has_a_flux():
    class Wave:
        name = "wave"
        fixed_operator = False

    assert has_flux(Darcy())
    assert has_coefficient(Poisson())
    assert not has_flux(Poisson())
    assert not has_flux(Wave())
    assert not has_coefficient(Wave())
    assert not has_flux(None)
    assert not residual_rms(Darcy()).fixed
    assert not flux_trace_error(Darcy(), Grid.square(16).partition((4, 4)).seams).fixed
    assert residual_rms(Poisson()).fixed


@pytest.mark.parametrize("channels", [1, 2])
def test_flux_trace_by_hand(channels):
    inputs = Darcy().sample(Grid.square(16), range(2), seed=0)[:, None]
    generator = torch.Generator().manual_seed(0)
    fields = torch.randn(2, channels, 16, 16, generator=generator).double()
    batch = Compared(fields, torch.zeros_like(fields), inputs)
    seams = Seams(((5,), (9,)), Grid.square(16).axes)
    jump = float(flux_measures(Darcy(), seams)["flux_jump"](batch))
    total, h = [], 1 / 15
    for sample, (a,) in zip(fields, inputs, strict=True):
        for v in sample:
            for k in range(16):
                for line, grain, b in ((v[:, k], a[:, k], 5), (v[k], a[k], 9)):
                    right = (grain[b] + grain[b + 1]) / 2 * (line[b + 1] - line[b]) / h
                    left = (grain[b - 1] + grain[b]) / 2 * (line[b] - line[b - 1]) / h
                    total.append(abs(float(right - left)))
    assert jump == pytest.approx(sum(total) / len(total))
