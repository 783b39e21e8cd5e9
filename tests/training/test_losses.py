import pytest
import torch

from twoscale import TwoscaleError
from twoscale.representation.geometry import Isometry
from twoscale.runtime.threads import one_thread
from twoscale.training.task import OBJECTIVES, CodeLoss, RelativeLoss, code_weights

SIZES = [3, 7]  # coarse and residual


@pytest.fixture
def codes(generator):
    """Predicted and true codes of a minibatch, and the training variances of the coordinates."""
    predicted, true = torch.randn(2, 5, 10, dtype=torch.float64, generator=generator)
    variance = torch.rand(10, dtype=torch.float64, generator=generator) * 100
    return predicted, true, variance


def loss_of(objective, codes, sizes=SIZES):
    predicted, true, variance = codes
    return CodeLoss(code_weights(objective, sizes, variance))(predicted, true)


def mean_square(values):
    return values.square().mean()


def test_vector_is_the_mean_over_everything(codes):
    predicted, true, _ = codes
    torch.testing.assert_close(loss_of("vector", codes), mean_square(predicted - true))


def test_block_balanced_is_half_and_half(codes):
    error = codes[0] - codes[1]
    expected = 0.5 * mean_square(error[:, :3]) + 0.5 * mean_square(error[:, 3:])
    torch.testing.assert_close(loss_of("block-balanced", codes), expected)


def test_block_balanced_in_the_norms_of_the_paper(codes):
    """|z_G error|^2 / (2 z_G) + |z_R error|^2 / (2 z_R), averaged over the minibatch."""
    error = codes[0] - codes[1]
    expected = sum(
        row[:3].norm() ** 2 / (2 * 3) + row[3:].norm() ** 2 / (2 * 7) for row in error
    ) / len(error)
    torch.testing.assert_close(loss_of("block-balanced", codes), expected)


def test_score_normalised_divides_by_the_variances_first(codes):
    predicted, true, variance = codes
    error = (predicted - true) / variance.sqrt()
    expected = 0.5 * mean_square(error[:, :3]) + 0.5 * mean_square(error[:, 3:])
    torch.testing.assert_close(loss_of("score-normalised", codes), expected)


def test_variances_are_floored():
    weights = code_weights("score-normalised", [2], torch.tensor([0.0, 4.0], dtype=torch.float64))
    assert weights.tolist() == pytest.approx([0.5 / 1e-8, 0.5 / 4.0])


def test_three_blocks_count_a_third_each(codes):
    error = codes[0] - codes[1]
    expected = sum(mean_square(part) for part in error.split([2, 3, 5], 1)) / 3
    torch.testing.assert_close(loss_of("block-balanced", codes, [2, 3, 5]), expected)


def test_with_one_block_balancing_changes_nothing(codes):
    balanced = loss_of("block-balanced", codes, [10])
    torch.testing.assert_close(balanced, loss_of("vector", codes, [10]))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_perfect_prediction_costs_nothing(objective, codes):
    _, true, variance = codes
    weights = code_weights(objective, SIZES, variance)
    assert weights.shape == (10,)
    assert bool((weights > 0).all())
    assert CodeLoss(weights)(true, true) == 0


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_gradients_are_those_of_the_formula(objective, codes):
    predicted, true, variance = codes
    loss = CodeLoss(code_weights(objective, SIZES, variance))
    assert torch.autograd.gradcheck(lambda z: loss(z, true), predicted.requires_grad_())


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_weights_follow_dtype_and_leave_the_variances_alone(objective):
    variance = torch.rand(10)
    before = variance.clone()
    assert code_weights(objective, SIZES, variance).dtype == torch.float32
    assert torch.equal(variance, before)


def test_the_field_objective_is_a_plain_mean_in_its_coordinates(codes):
    torch.testing.assert_close(loss_of("field", codes), loss_of("vector", codes))


def test_distances_in_the_coordinates_are_those_of_fields(generator):
    decoder = torch.randn(4, 9, generator=generator, dtype=torch.float64)
    isometry = Isometry.of(decoder @ decoder.T)
    codes = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    torch.testing.assert_close(
        (codes @ isometry.to_coordinates).norm(dim=1), (codes @ decoder).norm(dim=1)
    )
    torch.testing.assert_close(codes @ isometry.to_coordinates @ isometry.from_coordinates, codes)


def test_directions_that_no_field_shows_are_left_out(generator):
    decoder = torch.randn(4, 9, generator=generator, dtype=torch.float64)
    decoder[3] = 2 * decoder[1] - decoder[0]
    isometry = Isometry.of(decoder @ decoder.T)
    assert isometry.to_coordinates.shape == (4, 3)
    codes = torch.randn(6, 4, generator=generator, dtype=torch.float64)
    shown = codes @ isometry.to_coordinates @ isometry.from_coordinates
    torch.testing.assert_close(shown @ decoder, codes @ decoder)


def test_the_relative_loss_leaves_out_fields_of_zeros():
    true = torch.tensor([[3.0, 4.0, 5.0], [0.0, 0.0, 0.0]])  # codes, and the field's norm
    predicted = torch.ones(2, 2, requires_grad=True)
    loss = RelativeLoss(torch.ones(2))(predicted, true)
    loss.backward()
    assert loss.item() == pytest.approx((13**0.5 / 5) / 2)
    assert predicted.grad[1].tolist() == [0.0, 0.0]


def test_an_unknown_objective_is_told_with_those_that_are_known():
    with pytest.raises(TwoscaleError, match="called 'mse': known are vector, block-balanced, sco"):
        code_weights("mse", SIZES, torch.ones(10))


@pytest.mark.usefixtures("two_threads")
def test_coordinates_do_not_depend_on_threads(generator):
    """Nearly equal values have other vectors as soon as a last digit differs."""
    decoder = torch.randn(300, 290, generator=generator, dtype=torch.float64)
    several = Isometry.of(decoder @ decoder.T)
    with one_thread():
        alone = Isometry.of(decoder @ decoder.T)
    assert torch.equal(several.to_coordinates, alone.to_coordinates)
    assert torch.equal(several.from_coordinates, alone.from_coordinates)
