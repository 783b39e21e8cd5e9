import numpy as np
import pytest
import scipy.fft
import torch

from twoscale.math.transforms import (
    _cosine_matrix,
    inverse_cosine_transform,
    sine_matrix,
    sine_transform,
)

SHAPES = [(1, 1), (2, 3), (6, 6), (7, 13), (31, 16), (62, 62)]
any_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
CPU = torch.device("cpu")


@pytest.fixture
def fields(shape, generator):
    return torch.randn(3, *shape, dtype=torch.float64, generator=generator)


def by_matrices(fields, left, right):
    """The products that stand for the transform on a GPU."""
    return left @ fields @ right


@any_shape
def test_the_sine_transform_is_its_own_inverse(fields):
    torch.testing.assert_close(sine_transform(sine_transform(fields)), fields)


@any_shape
def test_the_sine_transform_is_scipys(fields):
    for field, image in zip(fields, sine_transform(fields), strict=True):
        expected = scipy.fft.dstn(field.numpy(), type=1, norm="ortho")
        np.testing.assert_allclose(image.numpy(), expected, atol=1e-12)


@any_shape
def test_the_sine_matrices_give_the_same_transform(shape, fields):
    rows, columns = (sine_matrix(size, CPU) for size in shape)
    torch.testing.assert_close(by_matrices(fields, rows, columns), sine_transform(fields))


@any_shape
def test_the_inverse_cosine_transform_is_scipys(fields):
    for field, image in zip(fields, inverse_cosine_transform(fields), strict=True):
        expected = scipy.fft.idctn(field.numpy(), type=2, norm="ortho")
        np.testing.assert_allclose(image.numpy(), expected, atol=1e-12)


@any_shape
def test_the_cosine_matrices_give_the_same_transform(shape, fields):
    rows, columns = (_cosine_matrix(size, CPU) for size in shape)
    expected = inverse_cosine_transform(fields)
    torch.testing.assert_close(by_matrices(fields, rows.T, columns), expected)


@pytest.mark.parametrize("transform", [sine_transform, inverse_cosine_transform])
def test_dtype_is_kept_and_the_argument_unchanged(transform, generator):
    fields = torch.randn(2, 9, 10, generator=generator)
    before = fields.clone()
    assert transform(fields).dtype == torch.float32
    assert torch.equal(fields, before)


@pytest.mark.gpu
@pytest.mark.parametrize("transform", [sine_transform, inverse_cosine_transform])
@any_shape
def test_cuda_agrees_with_the_cpu(transform, fields):
    torch.testing.assert_close(transform(fields.cuda()).cpu(), transform(fields))
