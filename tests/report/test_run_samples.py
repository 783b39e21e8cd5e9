"""Errors of single samples, over the grid and at seams: laws, chunks, memory."""

import numpy as np
import pytest
import torch

from tests.surrogate.tiny import make
from twoscale.domain.grid import Grid
from twoscale.domain.patches import Seams
from twoscale.fields.pairs import Pairs
from twoscale.fields.samples import as_samples
from twoscale.report import run_samples
from twoscale.report.run_samples import measure_samples, most_samples


@pytest.fixture(scope="module")
def case(poisson16):
    x, u = poisson16.batch
    surrogate = make("local", predictor="affine", patches=2).fit(x[:150], u[:150])
    test = Pairs(as_samples(x[150:], "input"), as_samples(u[150:], "output"))
    return surrogate, test, list(range(150, 200))


def test_errors_are_those_of_the_samples(case):
    surrogate, test, numbers = case
    inputs, outputs = test.inputs, test.outputs
    found = measure_samples(surrogate, test, numbers)
    truth = outputs.batch().fields.double()
    error = surrogate.predict_batch(inputs.batch()).double() - truth
    expected = error.flatten(1).norm(dim=1) / truth.flatten(1).norm(dim=1)
    np.testing.assert_allclose(found.errors, expected, rtol=1e-6)
    np.testing.assert_allclose(found.channel_errors[:, 0], expected, rtol=1e-6)
    pooled = float(error.norm() / truth.norm())
    assert np.sqrt(np.square(found.error_map).mean()) == pytest.approx(pooled)
    assert surrogate.evaluate(inputs, outputs)["mre"] == pytest.approx(pooled)
    assert found.best.error == pytest.approx(found.errors.min(), rel=1e-5)
    assert found.worst.error == pytest.approx(found.errors.max(), rel=1e-5)
    assert found.worst.number == numbers[int(found.errors.argmax())]
    assert found.best.error <= found.median.error <= found.worst.error


def test_chunks_change_nothing(case, monkeypatch):
    whole = measure_samples(*case)
    monkeypatch.setattr(run_samples, "chunk_length", lambda *sides: 7)
    parts = measure_samples(*case)
    np.testing.assert_allclose(parts.errors, whole.errors, rtol=1e-5)
    np.testing.assert_allclose(parts.error_map, whole.error_map, rtol=1e-4, atol=1e-7)
    for name in whole.spectra:
        np.testing.assert_allclose(parts.spectra[name], whole.spectra[name], rtol=1e-3, atol=1e-7)
    for place, values in whole.jumps.items():
        assert parts.jumps[place] == pytest.approx(values, rel=1e-4)


def test_few_samples_of_large_fields_are_looked_at(case, monkeypatch):
    monkeypatch.setattr(run_samples, "_MOST_VALUES", 5 * 16 * 16)
    found = measure_samples(*case)
    assert len(found.errors) == 5
    assert found.tested == 50
    surrogate = case[0]
    assert most_samples(surrogate.input_space_, surrogate.output_space_) == 5


def test_lines_inside_of_patches_are_all_others(case):
    grid = Grid((6, 4), periodic=(False, True))
    inside = run_samples._inside(Seams(((3,), (0, 2)), grid.axes))
    assert inside.rows == (1, 2, 4, 5)
    assert inside.columns == (1, 3)
    found = measure_samples(*case)
    assert set(found.jumps) == {"seams", "inside"}
    assert found.seam_ratio > 1, "plain patches have seams"
    whole = make("global", predictor="affine").fit(
        case[1].inputs.batch().fields, case[1].tensors()[1]
    )
    assert measure_samples(whole, *case[1:]).seams is None


def test_outliers_are_few_and_far(case):
    found = measure_samples(*case)
    errors = np.full(50, 0.01)
    errors[[3, 8]] = 0.2, 0.5
    fields = vars(found) | {"errors": errors, "numbers": np.arange(100, 150)}
    assert run_samples.RunSamples(**fields).outliers == [108, 103]
    errors[10:20] = 0.4
    assert run_samples.RunSamples(**fields).outliers == []


def test_samples_of_zeros_have_no_error_and_are_not_shown(case):
    surrogate, test, numbers = case
    inputs, outputs = test.inputs, test.outputs
    truth = outputs.batch().fields.clone()
    truth[4] = 0
    found = measure_samples(surrogate, Pairs(inputs, as_samples(truth, "output")), numbers)
    assert len(found.finite) == 49
    assert np.isfinite(found.worst.error)
    nothing = as_samples(torch.zeros_like(truth), "output")
    assert measure_samples(surrogate, Pairs(inputs, nothing), numbers).median is None
