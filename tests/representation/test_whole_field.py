import pytest
import torch

from tests.representation.contract import RepresentationContract
from twoscale import TwoscaleError
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.representation import WholeField


class TestWholeField(RepresentationContract):
    projects = True
    error_on_new_fields = 1e-6

    @classmethod
    def make(cls, variance=0.99):
        return WholeField()

    @classmethod
    def timed_stages(cls, representation):
        return {"transform"}

    def test_more_variance_never_gives_a_larger_training_error(self, fields):
        """There is no variance to choose, and no error."""
        torch.testing.assert_close(WholeField().fit(fields)(fields), fields)

    def test_training_codes_are_centred_and_have_the_stored_variances(self, fitted, fields):
        codes = fitted.encode(fields)
        assert abs(float(codes.mean())) < 1e-5
        assert float(codes.std(unbiased=False)) == pytest.approx(1.0)


@pytest.fixture
def fields():
    return 3 + 2 * torch.randn(20, 1, 6, 4, generator=torch.Generator().manual_seed(0))


def test_nothing_is_left_out(fields):
    whole = WholeField().fit(fields)
    codes = whole.encode(fields)
    assert codes.shape == (20, whole.code_size) == (20, 24)
    assert abs(float(codes.mean())) < 1e-6
    assert float(codes.std(unbiased=False)) == pytest.approx(1.0)
    torch.testing.assert_close(whole.reconstruct(fields), fields)
    assert whole.explained_variance == {"field": 1.0}
    assert whole.ranks == {"field": [24]}
    assert whole.layout is None
    assert not whole.compresses


def test_every_channel_has_a_scale_of_its_own(fields):
    both = torch.cat([fields, 1e6 * fields], 1)
    codes = WholeField().fit(both).encode(both)
    torch.testing.assert_close(codes[:, :24], codes[:, 24:])


def test_a_state_that_lacks_the_scale_is_refused(fields):
    state = WholeField().fit(fields).state_dict()
    space = Space(Grid((6, 4)))
    for damaged in ({}, {"scale.mean": state["scale.mean"]}):
        with pytest.raises(TwoscaleError, match="is missing"):
            WholeField().restore(damaged, space)
    with pytest.raises(TwoscaleError, match="is missing"):
        WholeField().restore(state, Space(Grid((6, 4)), 2))


def test_any_number_of_fields_will_do():
    WholeField().check(Space(Grid((6, 4))), 1)
