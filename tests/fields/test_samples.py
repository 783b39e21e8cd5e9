import numpy as np
import pytest
import torch

from tests.representation.contract import Chunks
from twoscale import Grid, TwoscaleError
from twoscale.domain.space import Space
from twoscale.fields.samples import (
    as_parameters,
    as_samples,
    check_finite,
    check_prediction,
    four_axes,
    users_rank,
    with_parameters,
)
from twoscale.fields.source import Batch

RANKS = {
    2: ((5, 9), (5, 1, 1, 9)),
    3: ((5, 8, 9), (5, 1, 8, 9)),
    4: ((5, 2, 8, 9), (5, 2, 8, 9)),
}
any_rank = pytest.mark.parametrize("rank", RANKS)


def numbers(shape, dtype=np.float64):
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


# Ranks


@any_rank
@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_fields_have_four_axes_inside_and_their_own_outside(rank, kind):
    shape, inside = RANKS[rank]
    array = numbers(shape)
    samples = as_samples(kind(array), "input")
    values = samples.batch().fields
    assert values.shape == inside
    assert values.dtype == torch.float32
    assert (len(samples), samples.rank) == (5, rank)
    assert samples.space == Space(Grid(inside[2:]), inside[1])
    np.testing.assert_array_equal(users_rank(values, rank).numpy(), array.astype(np.float32))


def test_one_channel_stays_a_channel():
    samples = as_samples(numbers((5, 1, 8, 9)), "input")
    assert samples.rank == 4
    assert users_rank(samples.batch().fields, 4).shape == (5, 1, 8, 9)


def test_wraps_and_names_are_part_of_the_space():
    samples = as_samples(
        numbers((5, 2, 8, 9)), "input", periodic=(True, False), names=["pressure", "speed"]
    )
    assert samples.space == Space(
        Grid((8, 9), periodic=(True, False)), 2, names=("pressure", "speed")
    )


def test_as_many_names_as_channels():
    with pytest.raises(TwoscaleError, match="2 channels need as many different names"):
        as_samples(numbers((5, 2, 8, 9)), "input", names=["pressure"])


@pytest.mark.parametrize("channels", [1, 2])
def test_a_source_shows_channels_where_it_has_several(channels):
    source = Chunks(torch.zeros(5, channels, 8, 9))
    samples = as_samples(source, "input")
    assert samples.fields is source
    assert samples.rank == (3 if channels == 1 else 4)


def test_samples_stay_what_they_are():
    samples = as_samples(numbers((5, 8, 9)), "input")
    assert as_samples(samples, "input") is samples


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_any_real_numbers_become_float32_and_stay_unchanged(dtype):
    array = (10 * numbers((5, 8, 9))).astype(dtype)
    kept = array.copy()
    assert as_samples(array, "input").batch().fields.dtype == torch.float32
    assert as_samples(torch.from_numpy(array), "input").batch().fields.dtype == torch.float32
    np.testing.assert_array_equal(array, kept)


def test_arrays_in_any_order_of_memory():
    array = numbers((5, 8, 9), np.float32)
    for view in (array[::-1], array.transpose(0, 2, 1), np.asfortranarray(array)):
        found = as_samples(view, "input").batch().fields[:, 0].numpy()
        np.testing.assert_array_equal(found, view)
    array.flags.writeable = False
    as_samples(array, "input").batch().fields.add_(1.0)  # a copy


def test_samples_go_to_a_device_whole_or_in_chunks():
    samples = as_samples(numbers((5, 8, 9)), "input")
    for resident in (True, False):
        there = samples.to(torch.device("meta"), resident=resident)
        assert there.space == samples.space
        assert {chunk.device.type for chunk in there.fields.chunks()} == {"meta"}


# Refusals


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
def test_complex_fields_are_refused_with_what_to_do(kind):
    array = kind(numbers((5, 8, 9)) + 1j)
    message = "the input fields must be real numbers, got .*complex.*imaginary part as two channels"
    with pytest.raises(TwoscaleError, match=message):
        as_samples(array, "input")


def test_fields_in_three_dimensions_are_refused_with_what_to_do():
    message = r"\(5, 2, 4, 8, 9\): fields in three dimensions are not supported; take slices"
    with pytest.raises(TwoscaleError, match=message):
        as_samples(np.zeros((5, 2, 4, 8, 9)), "output")


@pytest.mark.parametrize("shape", [(), (5,), (2, 2, 2, 2, 2, 2), (0, 8, 9), (5, 0, 9), (5, 0)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(TwoscaleError, match=r"must have shape \(samples, height, width\), .* got"):
        as_samples(np.zeros(shape), "input")


@pytest.mark.parametrize(
    "array", [np.full((5, 8, 9), "a"), np.full((5, 8, 9), None), np.zeros((5, 8), "datetime64[s]")]
)
def test_what_is_no_number_is_refused(array):
    with pytest.raises(TwoscaleError, match="the input fields must be real numbers, got dtype"):
        as_samples(array, "input")


@pytest.mark.parametrize("thing", ["fields.npy", 3.0, None, {"a": 1}])
def test_what_is_no_array_is_refused(thing):
    kind = type(thing).__name__
    with pytest.raises(TwoscaleError, match=f"the input fields must be an array, got {kind}"):
        as_samples(thing, "input")
    with pytest.raises(TwoscaleError, match=f"the input fields must be an array, got {kind}"):
        four_axes(thing, "input")


def test_a_source_has_four_axes():
    with pytest.raises(TwoscaleError, match=r"\(samples, channels, height, width\), got \(5, 8, 9"):
        as_samples(Chunks(torch.zeros(5, 8, 9)), "input")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
@any_rank
def test_values_that_are_not_finite_are_refused(value, rank):
    array = numbers(RANKS[rank][0])
    array.flat[-1] = value
    with pytest.raises(TwoscaleError, match="the input fields contain NaN or infinite values"):
        as_samples(array, "input")


def test_large_values_are_finite_even_if_their_sum_is_not():
    check_finite(torch.full((4, 1, 8, 8), 3e38), "input")


@pytest.mark.parametrize("outputs", [(3, 1, 8, 9), (3, 2, 5, 5)])
def test_predictions_are_checked_with_their_inputs(outputs):
    inputs, predicted = torch.ones(3, 1, 8, 9), torch.ones(outputs)
    check_prediction(Batch.of(inputs), predicted)
    predicted[1, 0, 2, 2] = torch.nan
    with pytest.raises(TwoscaleError, match=r"the predicted fields .* far from those of the train"):
        check_prediction(Batch.of(inputs), predicted)
    inputs[0, 0, 0, 0] = torch.inf
    with pytest.raises(TwoscaleError, match="the input fields contain NaN"):
        check_prediction(Batch.of(inputs), predicted)


# Parameters


@pytest.mark.parametrize("shape", [(5, 3), (5, 1), (5,)])
def test_parameters_are_rows(shape):
    found = as_parameters(numbers(shape))
    assert found.shape == (5, 3 if shape == (5, 3) else 1)
    assert found.dtype == torch.float32


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((5, 2, 2)), r"must have shape \(samples, P\), got \(5, 2, 2\)"),
        (np.zeros((5, 0)), r"must have shape \(samples, P\), got \(5, 0\)"),
        (np.float64(3), "must be an array, got float64"),
        (np.full((5, 2), np.nan), "contain NaN or infinite values"),
        (np.ones((5, 2)) * 1j, "imaginary part as two channels"),
        ([[1.0, 2.0], [3.0]], "are a list whose entries differ in shape"),
    ],
)
def test_other_parameters_are_refused(wrong, message):
    with pytest.raises(TwoscaleError, match=f"the parameters {message}|{message}"):
        as_parameters(wrong)


def test_parameters_are_beside_fields():
    samples = as_samples(numbers((5, 8, 9)), "input", periodic=(True, True), names=["u"])
    wider = with_parameters(samples, as_parameters(numbers((5, 2))))
    names = ("u", "parameter 0", "parameter 1")
    assert wider.space == Space(Grid((8, 9), periodic=(True, True)), 1, names=names, parameters=2)
    assert wider.rank == 3
    batch = wider.batch()
    assert (batch.fields.shape, batch.parameters.shape) == ((5, 1, 8, 9), (5, 2))
    unnamed = with_parameters(as_samples(numbers((5, 8, 9)), "input"), torch.zeros(5, 2))
    assert unnamed.space.names is None


def test_parameters_alone_have_no_fields():
    alone = with_parameters(None, as_parameters(numbers((5, 3))))
    assert alone.space == Space(Grid((1, 1)), 0, parameters=3)
    assert (alone.rank, alone.batch().fields.shape) == (0, (5, 0, 1, 1))


def test_every_field_has_its_parameters():
    samples = as_samples(numbers((5, 8, 9)), "input")
    with pytest.raises(TwoscaleError, match="5 input fields but parameters of 4 samples"):
        with_parameters(samples, torch.zeros(4, 2))
