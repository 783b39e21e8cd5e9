"""Trainings that end in time, by a clock that moves with their steps."""

import pytest
import torch
from torch import nn

from tests.training.tools import make_pairs, make_plan, mean_square
from twoscale.files import Checkpoint, Checkpoints
from twoscale.training import Deadline, Task, TimeLimit, train_together
from twoscale.training.learner import ModuleLearner


class Slow(nn.Module):
    """A network whose steps take a second each, and whose validations take three."""

    def __init__(self, step=1.0):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)
        self.time, self.step, self.steps = 0.0, step, 0

    def forward(self, x):
        self.time += self.step if torch.is_grad_enabled() else 3.0
        self.steps += torch.is_grad_enabled()
        return self.layer(x)


@pytest.fixture(autouse=True, params=[1, 4])
def steps_of_a_group(monkeypatch, request):
    monkeypatch.setattr("twoscale.training.epochs._CYCLE_STEPS", request.param)


PLAN = make_plan(epochs=4, batch_size=10, one_cycle=True, learning_rate=0.1)  # of 10 steps each


def trained(network, end, *, plan=PLAN, **options):
    limit = TimeLimit(Deadline(end, lambda: network.time)) if end else None
    task = Task(network, make_pairs(100), make_pairs(20, seed=1), mean_square, plan)
    (history,) = train_together([task], limit=limit, **options)
    return history


def rates_of(monkeypatch, network, end):
    rates = []
    monkeypatch.setattr(ModuleLearner, "set_rate", lambda self, member, rate: rates.append(rate))
    return trained(network, end), rates


def test_a_training_with_too_many_epochs_ends_in_time_with_a_small_rate(monkeypatch):
    network = Slow()
    history, rates = rates_of(monkeypatch, network, 30.0)
    assert history.cut_after == network.steps / 10
    assert 27.0 <= network.time <= 31.5
    assert network.steps < 30
    assert max(rates) == pytest.approx(0.1, rel=0.05)
    assert rates[-1] < 0.002
    assert len(history.validation_loss) == len(history.learning_rate) == 3
    assert history.as_dict()["cut_after"] == history.cut_after


def test_a_deadline_inside_the_first_epoch_leaves_a_part_of_it():
    network = Slow()
    history = trained(network, 5.0)
    assert network.steps == 5
    assert history.best_epoch == 0
    assert history.cut_after == 0.5


def test_steps_have_half_of_the_time_if_libraries_take_long_to_start():
    network = Slow()
    limit = TimeLimit(Deadline(20.0, lambda: network.time))
    network.time = 19.0  # what was before the first step
    task = Task(network, make_pairs(100), make_pairs(20, seed=1), mean_square, PLAN)
    train_together([task], limit=limit)
    assert 29.0 <= network.time <= 33.0
    assert network.steps >= 7


def test_a_limit_starts_once():
    time = 0.0
    limit = TimeLimit(Deadline(20.0, lambda: time))
    time = 5.0
    limit.start()
    time = 15.0
    limit.start()
    assert limit.begun == 5.0
    assert limit.end == 20.0
    assert limit.share == pytest.approx(10 / 15)


def test_a_deadline_that_is_over_leaves_one_step():
    network = Slow()
    assert trained(network, -1.0).cut_after == 0.1
    assert network.steps == 1


def test_without_haste_nothing_changes():
    alone, timed = Slow(), Slow()
    plain, limited = trained(alone, None), trained(timed, 1000.0)
    assert plain == limited
    assert "cut_after" not in limited.as_dict()
    assert torch.equal(alone.layer.weight, timed.layer.weight)


def test_a_training_that_is_continued_counts_the_time_before(tmp_path, monkeypatch):
    whole = Slow()
    expected = trained(whole, 40.0)
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    checkpoints = {"checkpoints": Checkpoints(tmp_path), "keys": ["a"]}
    killed = Slow()
    save = Checkpoint.save

    def saved_once_more(self, *state):
        save(self, *state)
        if killed.steps == 14:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", saved_once_more)
        with pytest.raises(KeyboardInterrupt):
            trained(killed, 40.0, **checkpoints)
    later = Slow()
    later.time = killed.time  # as the clock of a search, which goes on where it was
    history = trained(later, 40.0, **checkpoints)
    assert history.validation_loss == expected.validation_loss
    assert torch.equal(later.layer.weight, whole.layer.weight)
