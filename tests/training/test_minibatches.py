"""Every sample once per epoch."""

import pytest
import torch

from tests.training.tools import Recorder, Stuck, fitted, make_plan, mean_square
from twoscale.training import epochs, train


def test_every_sample_is_used_once_per_epoch_the_last_partial_batch_included(pairs):
    network = Recorder()
    train(network, *pairs, mean_square, make_plan(epochs=2, batch_size=32))
    assert [len(batch) for batch in network.seen] == [32, 32, 6] * 2
    expected = pairs[0].inputs.sort(0).values
    first, second = torch.cat(network.seen[:3]), torch.cat(network.seen[3:])
    assert torch.equal(first.sort(0).values, expected)
    assert torch.equal(second.sort(0).values, expected)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(("batch_size", "count"), [(1, 70), (2, 35), (69, 2)])
def test_any_number_of_steps_covers_the_set(pairs, batch_size, count):
    """More steps than are taken in one group, or few."""
    network = Recorder()
    train(network, *pairs, mean_square, make_plan(epochs=1, batch_size=batch_size))
    assert len(network.seen) == count
    assert torch.equal(torch.cat(network.seen).sort(0).values, pairs[0].inputs.sort(0).values)


def test_the_training_loss_is_the_mean_over_samples(pairs):
    """At rate zero nothing changes, so that it is the loss of the whole set."""
    network = Stuck()
    history = train(network, *pairs, mean_square, make_plan(epochs=1, batch_size=32))
    expected = mean_square(torch.zeros_like(pairs[0].targets), pairs[0].targets)
    assert history.training_loss[0] == pytest.approx(float(expected), rel=1e-5)


def test_a_batch_larger_than_the_set(pairs):
    network = Recorder()
    train(network, *pairs, mean_square, make_plan(epochs=2, batch_size=1000))
    assert [len(batch) for batch in network.seen] == [70, 70]


def test_large_samples_make_smaller_groups_of_the_same_minibatches(pairs, monkeypatch):
    plan = make_plan(epochs=3, batch_size=8)
    whole, _ = fitted(pairs, plan)
    monkeypatch.setattr(epochs, "_GROUP_VALUES", 1)
    single, _ = fitted(pairs, plan)
    for a, b in zip(whole.parameters(), single.parameters(), strict=True):
        assert torch.equal(a, b)
