import copy

import pytest
import torch

from tests.spaces import poisson_fields
from twoscale import GlobalPCA, PatchPCA, RankRule, TwoScale
from twoscale.representation.geometry import NearestCodes

DECODERS = {
    "two-scale": lambda: TwoScale(coarse_components=4),
    "local": lambda: PatchPCA(RankRule(variance=0.98)),
    "overlap": lambda: PatchPCA(RankRule(variance=0.98), overlap=True),
    "global": lambda: GlobalPCA(RankRule(variance=0.98)),
}


@pytest.fixture(scope="module")
def fields():
    return poisson_fields((32, 32), 120)


@pytest.fixture(scope="module", params=DECODERS)
def representation(request, fields):
    return DECODERS[request.param]().fit(fields[:100])


def test_no_other_code_is_nearer(representation, fields):
    """By least squares on the decoder's matrix."""
    exact, new = copy.deepcopy(representation).double(), fields[100:].double()
    units = torch.eye(exact.code_size, dtype=torch.float64)
    zero = exact.decode(torch.zeros_like(units[:1])).flatten(1)
    matrix = exact.decode(units).flatten(1) - zero
    left = (new.flatten(1) - zero).T
    expected = matrix.T @ torch.linalg.lstsq(matrix.T, left, driver="gelsd").solution
    got = exact.decode(NearestCodes(exact)(new)).flatten(1) - zero
    torch.testing.assert_close(got, expected.T, rtol=1e-6, atol=1e-8)


def test_it_is_nearer_than_the_encoders(representation, fields):
    new = fields[100:]
    nearest = representation.decode(NearestCodes(representation)(new))
    encoded = representation.reconstruct(new)
    assert float((nearest - new).norm()) < float((encoded - new).norm())


def test_it_leaves_no_gradient_behind(representation, fields):
    with torch.no_grad():
        codes = NearestCodes(representation)(fields[:3])
    assert not codes.requires_grad
    assert codes.dtype == torch.float32
