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
any_transform = pytest.mark.parametrize("transform", [sine_transform, inverse_cosine_transform])
CPU = torch.device("cpu")


@pytest.fixture
def fields(shape, generator):
    return torch.randn(3, *shape, dtype=torch.float64, generator=generator)


def scipys(transform, field):
    if transform is sine_transform:
        return scipy.fft.dstn(field, type=1, norm="ortho")
    return scipy.fft.idctn(field, type=2, norm="ortho")


def by_matrices(transform, fields):
    """The products that stand for the transform on a GPU."""
    if transform is sine_transform:
        left, right = (sine_matrix(size, CPU) for size in fields.shape[1:])
    else:
        left, right = (_cosine_matrix(size, CPU) for size in fields.shape[1:])
        left = left.T
    return left @ fields @ right


@any_transform
@any_shape
def test_transforms_are_scipys_also_by_matrices(transform, fields):
    image = transform(fields)
    expected = [scipys(transform, field) for field in fields.numpy()]
    np.testing.assert_allclose(image.numpy(), expected, atol=1e-12)
    torch.testing.assert_close(by_matrices(transform, fields), image)


@any_transform
def test_dtype_is_kept_and_the_argument_unchanged(transform, generator):
    fields = torch.randn(2, 9, 10, generator=generator)
    before = fields.clone()
    assert transform(fields).dtype == torch.float32
    assert torch.equal(fields, before)


@pytest.mark.gpu
@any_transform
@any_shape
def test_cuda_agrees_with_the_cpu(transform, fields):
    torch.testing.assert_close(transform(fields.cuda()).cpu(), transform(fields))
