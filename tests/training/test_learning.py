"""What is learned, and what is told of it."""

import math

import pytest
import torch

from tests.training.tools import fitted, make_pairs, make_plan, mean_square
from twoscale import TwoscaleError
from twoscale.networks import DenseNetwork
from twoscale.training import CodePairs, train


def test_training_learns(pairs):
    _, history = fitted(pairs, make_plan(epochs=150, batch_size=16, learning_rate=1e-2))
    assert min(history.validation_loss) < 0.1 * history.validation_loss[0]
    assert history.training_loss[-1] < 0.1 * history.training_loss[0]


def test_the_best_weights_are_restored(pairs):
    """Validated on unlike targets, the network soon gets worse, and the last epoch is not kept."""
    unlike = CodePairs(pairs[1].inputs, 0.5 - pairs[1].targets)
    network, history = fitted((pairs[0], unlike), make_plan(epochs=40, batch_size=16))
    assert history.best_epoch == history.validation_loss.index(min(history.validation_loss))
    assert history.best_epoch < 39
    with torch.no_grad():
        loss = mean_square(network(unlike.inputs), unlike.targets)
    assert float(loss) == pytest.approx(min(history.validation_loss), rel=1e-5)


def test_the_history_is_complete(pairs):
    _, history = fitted(pairs, make_plan(epochs=7))
    record = history.as_dict()
    assert set(record) == {"training_loss", "validation_loss", "learning_rate", "best_epoch"}
    for name in ("training_loss", "validation_loss", "learning_rate"):
        assert len(record[name]) == 7
        assert all(isinstance(value, float) for value in record[name])


def test_the_validation_loss_does_not_depend_on_its_batches(pairs):
    whole = fitted(pairs, make_plan(epochs=3))[1].validation_loss
    parts = fitted(pairs, make_plan(epochs=3, evaluation_batch=7))[1].validation_loss
    assert parts == pytest.approx(whole, rel=1e-5)


def test_one_step_is_adams():
    """The first epoch of a single batch, against torch's own optimiser."""
    pairs = make_pairs(8)
    network = DenseNetwork((3, 4, 2), seed=0)
    other = DenseNetwork((3, 4, 2), seed=0)
    optimiser = torch.optim.Adam(other.parameters(), lr=0.05, weight_decay=0.1)
    mean_square(other(pairs.inputs), pairs.targets).backward()
    optimiser.step()
    plan = make_plan(epochs=1, batch_size=8, learning_rate=0.05, weight_decay=0.1)
    train(network, pairs, pairs, mean_square, plan)
    for one, two in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two)


def test_a_judge_of_ones_own_chooses_the_epoch(pairs):
    losses = iter([3.0, 1.0, 2.0, 5.0])
    network = DenseNetwork((3, 16, 2), seed=0)
    history = train(
        network, *pairs, mean_square, make_plan(epochs=4), validate=lambda: next(losses)
    )
    assert history.validation_loss == [3.0, 1.0, 2.0, 5.0]
    assert history.best_epoch == 1


def test_progress_is_told_at_the_start_and_once_per_epoch(pairs):
    calls = []
    train(
        DenseNetwork((3, 2)),
        *pairs,
        mean_square,
        make_plan(epochs=3),
        progress=lambda *call: calls.append(call),
        name="latent",
    )
    assert [call[:3] for call in calls] == [("latent", k, 3) for k in (0, 1, 2, 3)]
    assert all(call[3].startswith("validation loss ") for call in calls[1:])


def test_training_that_never_has_a_finite_loss_is_refused(pairs):
    with pytest.raises(TwoscaleError, match="training diverged: no validation loss was finite"):
        fitted(pairs, make_plan(epochs=2), loss=lambda p, t: (p - t).square().mean() * float("nan"))


def test_an_exploding_rate_is_told_with_the_remedy(pairs):
    loss = lambda p, t: torch.exp((p - t).abs().sum() * 1e4)  # noqa: E731
    with pytest.raises(TwoscaleError, match="try a smaller learning_rate"):
        fitted(pairs, make_plan(epochs=3, learning_rate=10.0), loss=loss)


def test_a_late_divergence_keeps_the_best_weights_so_far(pairs):
    calls = []

    def loss(predicted, true):
        calls.append(torch.is_grad_enabled())
        broken = calls.count(False) > 3
        return mean_square(predicted, true) * (math.nan if broken else 1.0)

    network, history = fitted(pairs, make_plan(epochs=6), loss=loss)
    assert history.best_epoch <= 2
    assert all(math.isnan(value) for value in history.validation_loss[3:])
    assert all(bool(torch.isfinite(p).all()) for p in network.parameters())
