import pytest
import torch

from tests.representation.contract import Chunks, RepresentationContract
from twoscale import TwoscaleError
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.fields.source import ArraySource
from twoscale.representation import Normaliser, WholeField


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


# One mean and one deviation for all fields


@pytest.mark.parametrize("lengths", [(100,), (3,), (1, 5)])
def test_one_mean_and_one_deviation_for_everything(lengths, generator):
    fields = 5 + 0.3 * torch.randn(20, 1, 8, 9, generator=generator)
    scale = Normaliser().fit(Chunks(fields, lengths))
    assert float(scale.mean) == pytest.approx(float(fields.double().mean()), rel=1e-6)
    expected = float(fields.double().std(unbiased=False))
    assert float(scale.std) == pytest.approx(expected, rel=1e-6)


def test_a_first_value_of_zero_is_a_value_like_any_other(generator):
    """Solutions vanish in the corner, where the shift of the sums is taken."""
    fields = torch.randn(6, 1, 8, 8, generator=generator)
    fields[0, 0, 0, 0], fields[2, 0, 0, 0] = 0.0, 50.0
    scale = Normaliser().fit(Chunks(fields, (2,)))
    assert float(scale.mean) == pytest.approx(float(fields.mean()), rel=1e-5)
    assert float(scale.std) == pytest.approx(float(fields.std(unbiased=False)), rel=1e-5)


def test_normalising_and_its_inverse(generator):
    fields = 3 + 2 * torch.randn(10, 1, 8, 8, generator=generator)
    scale = Normaliser().fit(ArraySource(fields))
    normalised = scale(fields)
    assert float(normalised.mean()) == pytest.approx(0, abs=1e-5)
    assert float(normalised.std(unbiased=False)) == pytest.approx(1, rel=1e-5)
    torch.testing.assert_close(scale.undo(normalised), fields)


@pytest.mark.parametrize("value", [0.0, 0.1, -7.0])
def test_constant_fields_are_only_shifted(value):
    fields = torch.full((3, 1, 8, 8), value)
    scale = Normaliser().fit(ArraySource(fields))
    assert float(scale.std) == 1.0
    assert not scale(fields).any()
