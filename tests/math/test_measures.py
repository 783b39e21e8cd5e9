import numpy as np
import pytest
import torch

from twoscale.domain.grid import Grid
from twoscale.domain.patches import Seams
from twoscale.math.measures import (
    ACCURACY,
    Compared,
    affine_measure,
    in_unit,
    mean_absolute_error,
    mean_squared_error,
    measure_all,
    measure_channels,
    median_sample,
    relative_l2,
    seam_measures,
    spectral_error,
    ssim,
    trace_error,
)
from twoscale.math.traces import TRACES, flux_trace

SEAMS = Seams(((0, 4, 8), (3, 7, 11)), Grid((12, 14), periodic=(True, False)).axes)
flux_error = affine_measure(
    lambda b: flux_trace(b.error, b.known_inputs, SEAMS), power=1, fixed=False
)
MEASURES = {**ACCURACY, **seam_measures(SEAMS), "flux": flux_error}
ROOT_MEAN_SQUARE = ("mre", "spectral_error")


def make_batch(channels, generator, shape=(12, 14)):
    """A batch of six predictions and truths, float64."""
    shape = (6, channels, *shape)
    truth = torch.randn(shape, dtype=torch.float64, generator=generator).cumsum(2).cumsum(3)
    noise = torch.randn(shape, dtype=torch.float64, generator=generator)
    inputs = torch.rand(6, 1, *shape[2:], dtype=torch.float64, generator=generator)
    return Compared(truth + 0.1 * noise, truth, inputs)


@pytest.fixture(params=[1, 3], ids=["one channel", "three channels"])
def batch(request, generator):
    return make_batch(request.param, generator)


# Accuracy

TINY = Compared(
    prediction=torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]], [[[0.0, 0.0], [1.0, 0.0]]]]),
    truth=torch.tensor([[[[1.0, 0.0], [3.0, 3.0]]], [[[0.0, 1.0], [1.0, 2.0]]]]),
)
"""Errors 0, 2, 0, 1 and 0, -1, 0, -2: sum of squares 10; of the truth 19 + 6 = 25."""


@pytest.mark.parametrize(
    ("measure", "value"),
    [(relative_l2, (10 / 25) ** 0.5), (mean_squared_error, 10 / 8), (mean_absolute_error, 6 / 8)],
)
def test_errors_by_hand(measure, value):
    assert float(measure(TINY)) == pytest.approx(value)


# Channels


@pytest.mark.parametrize("name", MEASURES)
def test_each_channel_is_measured_as_if_alone(name, generator):
    batch = make_batch(3, generator)
    together, channels = measure_channels({name: MEASURES[name]}, [batch])
    alone = [
        float(MEASURES[name](Compared(prediction[:, None], truth[:, None], batch.inputs)))
        for prediction, truth in zip(batch.prediction.unbind(1), batch.truth.unbind(1), strict=True)
    ]
    assert channels[name] == pytest.approx(alone, rel=1e-12)
    mean = np.mean(np.square(alone)) ** 0.5 if name in ROOT_MEAN_SQUARE else np.mean(alone)
    assert together[name] == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("name", ROOT_MEAN_SQUARE)
def test_a_channel_of_zeros_has_no_relative_error(name, generator):
    batch = make_batch(3, generator)
    batch.truth[:, 1] = 0
    leaf = batch.prediction.clone().requires_grad_()
    value = MEASURES[name](Compared(leaf, batch.truth))
    value.backward()
    assert bool(torch.isfinite(leaf.grad).all())
    _, channels = measure_channels({name: MEASURES[name]}, [batch])
    assert [bool(np.isfinite(one)) for one in channels[name]] == [True, False, True]
    others = Compared(batch.prediction[:, ::2], batch.truth[:, ::2])
    assert float(value.detach()) == pytest.approx(float(MEASURES[name](others)), rel=1e-12)


@pytest.mark.parametrize("name", MEASURES)
def test_what_is_not_a_number_is_never_left_out(name, generator):
    batch = make_batch(3, generator)
    batch.prediction[2, 1] = torch.nan
    assert bool(MEASURES[name](batch).isnan())


# Units

UNITS = torch.tensor([4.0**-3, 4.0**7])[:, None, None]


@pytest.mark.parametrize("trace", TRACES)
def test_means_in_units_are_divided_channel_by_channel(trace, generator):
    batch = make_batch(2, generator)
    measure = trace_error(TRACES[trace], SEAMS)
    parts = in_unit(measure, UNITS).parts(batch)
    expected = measure.channels(*measure.parts(batch)) / UNITS.flatten()
    assert torch.equal(measure.channels(*parts), expected)


def test_equations_take_the_largest_unit(generator):
    batch = make_batch(2, generator)
    sums = affine_measure(lambda b: b.prediction.sum(1, keepdim=True).flatten(2), power=2)
    sums = affine_measure(sums.values, power=2, equations=True)
    assert torch.equal(in_unit(sums, UNITS)(batch) * 4.0**7, sums(batch))


def test_squares_of_huge_and_tiny_channels_stay_finite(generator):
    batch = make_batch(2, generator)
    size = torch.tensor([1e-30, 1e30])[:, None, None]
    huge = Compared(batch.prediction.float() * size, batch.truth.float() * size)
    leaf = huge.prediction.clone().requires_grad_()
    value = in_unit(relative_l2, size)(Compared(leaf, huge.truth))
    assert float(value.detach()) == pytest.approx(float(relative_l2(batch)), rel=1e-5)


# Batches, gradients, purity


@pytest.mark.parametrize("cuts", [[6], [1, 5], [2, 2, 2], [1, 1, 1, 1, 1, 1]], ids=str)
def test_batches_add_up(batch, cuts):
    sides = (batch.prediction, batch.truth, batch.inputs)
    batches = [
        Compared(*parts) for parts in zip(*(side.split(cuts) for side in sides), strict=True)
    ]
    values = measure_all(MEASURES, batches)
    for name, measure in MEASURES.items():
        assert values[name] == pytest.approx(float(measure(batch)), rel=1e-12), name


@pytest.mark.parametrize("name", MEASURES)
def test_every_measure_is_a_loss(batch, name):
    leaf = batch.prediction.clone().requires_grad_()
    value = MEASURES[name](Compared(leaf, batch.truth, batch.inputs))
    assert value.shape == ()
    value.backward()
    assert bool(torch.isfinite(leaf.grad).all())
    assert bool((leaf.grad != 0).any())


@pytest.mark.parametrize("measure", [relative_l2, spectral_error, ssim], ids=["l2", "f", "s"])
def test_gradients_agree_with_differences(measure, batch):
    leaf = batch.prediction[:1, :, :8, :8].clone().requires_grad_()
    truth = batch.truth[:1, :, :8, :8]
    assert torch.autograd.gradcheck(lambda p: measure(Compared(p, truth)), leaf, fast_mode=True)


def test_sums_over_many_float32_values_stay_accurate():
    """Sums without gradient are kept in float64."""
    truth = torch.full((64, 1, 256, 256), 0.1)
    value = measure_all({"mae": mean_absolute_error}, [Compared(truth, torch.zeros_like(truth))])
    assert value["mae"] == pytest.approx(float(torch.tensor(0.1)), rel=1e-9)


# The sample that pictures show


def test_the_median_sample_is_the_middle_one(generator):
    """Also of fields whose squares are infinite."""
    truth = torch.rand(3, 1, 8, 8, generator=generator)
    prediction = truth * torch.tensor([1.3, 1.1, 1.2])[:, None, None, None]
    for size in (1e-30, 1.0, 1e30):
        assert median_sample(prediction * size, truth * size) == 2
