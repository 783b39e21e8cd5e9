"""Rates, steps and their end."""

import pytest
import torch
from torch import nn

from tests.training.tools import Recorder, Stuck, make_plan, mean_square
from twoscale.training import CodePairs, Task, epochs, train, train_together
from twoscale.training.learner import ModuleLearner
from twoscale.training.plan import OneCycle, Plateau


def test_the_rate_is_halved_after_patience_epochs_without_progress(pairs):
    plan = make_plan(epochs=12, learning_rate=0.8, patience=4)
    history = train(Stuck(), *pairs, mean_square, plan)
    # Epoch 0 is the best; epochs 1 to 4 bring nothing; the rate of epoch 5 is half.
    assert history.learning_rate == pytest.approx([0.8] * 5 + [0.4] * 4 + [0.2] * 3)
    assert history.best_epoch == 0


def test_progress_starts_the_waiting_anew():
    schedule = Plateau(make_plan(epochs=9, learning_rate=1.0, patience=2))
    rates = []
    for loss in (5.0, 6.0, 4.0, 4.0, 3.9, 7.0, 7.0, 7.0, 7.0):
        schedule.update(loss)
        rates.append(schedule.rate(0))
    assert rates == [1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.25]
    assert schedule.best == 3.9


def test_one_cycle_rises_and_falls_to_zero():
    schedule = OneCycle(make_plan(epochs=100, learning_rate=2.0))
    assert 0 < schedule.rate(0) < 0.1
    assert schedule.rate(5) == pytest.approx(1.0)
    assert schedule.rate(10) == pytest.approx(2.0)
    assert schedule.rate(55) == pytest.approx(1.0)
    assert schedule.rate(100) == pytest.approx(0.0)
    assert [schedule.update(loss) for loss in (2.0, 3.0, 1.0)] == [True, False, True]


def test_the_rate_of_a_cycle_changes_within_an_epoch(pairs, monkeypatch):
    set_rates = []
    monkeypatch.setattr(
        ModuleLearner, "set_rate", lambda self, member, rate: set_rates.append(rate)
    )
    monkeypatch.setattr(epochs, "_CYCLE_STEPS", 2)
    plan = make_plan(epochs=2, batch_size=4, one_cycle=True, learning_rate=1.0)
    train(Stuck(), *pairs, mean_square, plan)
    middles = [(start + min(start + 8, 68)) / 2 / 70 for start in range(0, 68, 8)]
    expected = [OneCycle(plan).rate(epoch + middle) for epoch in (0, 1) for middle in middles]
    assert set_rates == pytest.approx(expected)


def test_an_epoch_may_draw_some_of_the_pairs(pairs):
    plan = make_plan(epochs=3, batch_size=8)
    network = Recorder()
    train_together([Task(network, *pairs, mean_square, plan, per_epoch=20)])
    epochs_seen = torch.cat(network.seen)[:, 0].reshape(3, 20)
    assert all(len(set(epoch.tolist())) == 20 for epoch in epochs_seen)
    assert len(set(epochs_seen.flatten().tolist())) > 20


def test_gradients_are_clipped_together():
    network = nn.Linear(2, 1, bias=False)
    plan = make_plan(epochs=1, clip=0.5)
    learner = ModuleLearner(network, mean_square, plan, torch.device("cpu"))
    learner.step(100 * torch.ones(1, 4, 2), torch.zeros(1, 4, 1))
    assert float(network.weight.grad.norm()) == pytest.approx(0.5, rel=1e-4)


def test_the_optimiser_uses_the_rate_of_the_schedule():
    """Of a constant gradient Adam's step is the rate: the weight tells how far it went."""

    class Slope(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.zeros(()))
            self.path = []

        def forward(self, x):
            if torch.is_grad_enabled():
                self.path.append(float(self.weight.detach()))
                return self.weight * torch.ones(len(x))
            return torch.zeros(len(x))

    network = Slope()
    pairs = CodePairs(torch.zeros(4, 1), torch.zeros(4))
    plan = make_plan(epochs=6, batch_size=4, learning_rate=0.1, patience=2)
    train(network, pairs, pairs, lambda p, t: p.mean(), plan)
    steps = [a - b for a, b in zip(network.path, network.path[1:], strict=False)]
    assert steps == pytest.approx([0.1, 0.1, 0.1, 0.05, 0.05], rel=1e-4)


def test_early_stop(pairs):
    plan = make_plan(epochs=50, early_stop=6, patience=4, learning_rate=0.8)
    history = train(Stuck(), *pairs, mean_square, plan)
    assert len(history.validation_loss) == 7
    assert history.learning_rate[-1] == 0.4
