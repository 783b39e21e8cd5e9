import pytest
import torch

from twoscale import TwoscaleError
from twoscale.representation import WholeField
from twoscale.runtime.timing import Clock


@pytest.fixture
def fields():
    return 3 + 2 * torch.randn(20, 6, 4, generator=torch.Generator().manual_seed(0))


def test_nothing_is_left_out(fields):
    whole = WholeField((6, 4)).fit(fields)
    codes = whole.encode(fields)
    assert codes.shape == (20, whole.code_size) == (20, 24)
    assert abs(float(codes.mean())) < 1e-6
    assert float(codes.std(unbiased=False)) == pytest.approx(1.0)
    torch.testing.assert_close(whole.reconstruct(fields), fields)
    assert whole.explained_variance == {"field": 1.0}
    assert whole.ranks == {"field": [24]}
    assert whole.layout is None


def test_it_comes_back_from_its_state(fields):
    whole = WholeField((6, 4)).fit(fields, clock=Clock())
    again = WholeField((6, 4)).restore(whole.state_dict())
    assert torch.equal(again.encode(fields), whole.encode(fields))
    with pytest.raises(TwoscaleError, match="is missing"):
        WholeField((6, 4)).restore({})


def test_it_is_for_one_shape():
    WholeField((6, 4)).check((6, 4), 1)
    with pytest.raises(TwoscaleError, match=r"\(6, 4\) were expected, these are \(4, 6\)"):
        WholeField((6, 4)).check((4, 6), 9)
