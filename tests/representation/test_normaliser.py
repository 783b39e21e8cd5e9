"""One mean and one deviation for all fields."""

import pytest
import torch

from tests.representation.contract import Chunks
from twoscale.fields.source import ArraySource
from twoscale.representation import Normaliser


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
