"""A training that is stopped anywhere goes on to the very same weights."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from tests.covering import covering
from tests.training.tools import make_pairs, make_plan, mean_square
from twoscale.files import Checkpoint, Checkpoints
from twoscale.networks import DenseNetwork
from twoscale.training import CodePairs, Task, train_together


class Stop(Exception):
    """What a test stops a training with."""


@pytest.fixture
def always_due(monkeypatch):
    monkeypatch.setattr(Checkpoint, "due", lambda self: True)
    monkeypatch.setattr(Checkpoint, "worthwhile", lambda self: True)


@pytest.fixture
def small_groups(monkeypatch):
    """Two minibatches a group, so that there are positions inside an epoch."""
    monkeypatch.setattr("twoscale.training.epochs._GROUP_STEPS", 2)
    monkeypatch.setattr("twoscale.training.epochs._CYCLE_STEPS", 2)


def mlp(seed):
    return DenseNetwork((3, 16, 2), seed=seed)


def module(seed):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 16), nn.GELU(), nn.Linear(16, 2))


def make_tasks(make, plan, members=1, device="cpu"):
    data = make_pairs(100), make_pairs(20, seed=1)
    pairs = [CodePairs(one.inputs.to(device), one.targets.to(device)) for one in data]
    return [
        Task(
            make(seed).to(device),
            *pairs,
            mean_square,
            replace(plan, weight_decay=0.01 * seed),
            seed,
        )
        for seed in range(members)
    ]


any_device = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])


def stop_after(monkeypatch, saves):
    """Stop a training after some saves, as a kill would: what was saved is saved."""
    count = 0
    save = Checkpoint.save

    def counted(self, *state):
        nonlocal count
        save(self, *state)
        count += 1
        if count == saves:
            raise Stop

    monkeypatch.setattr(Checkpoint, "save", counted)


PLANS = {
    "adam": make_plan(epochs=4, batch_size=16, patience=1),
    "early stop": make_plan(epochs=9, batch_size=16, early_stop=1, learning_rate=0.2),
    "one cycle of muon": make_plan(epochs=4, batch_size=16, one_cycle=True, optimiser="muon"),
    "clipped": make_plan(epochs=3, batch_size=16, one_cycle=True, clip=0.1),
    "small": make_plan(epochs=4, batch_size=16, small=True),
}


@pytest.mark.usefixtures("always_due", "small_groups")
@pytest.mark.parametrize(("name", "saves", "make"), covering(PLANS, [1, 3, 4, 7], [mlp, module]))
@any_device
def test_it_ends_with_the_same_weights(tmp_path, monkeypatch, make, name, saves, device):
    whole = make_tasks(make, PLANS[name], device=device)
    (expected,) = train_together(whole)
    checkpoints = Checkpoints(tmp_path / "kept")
    with monkeypatch.context() as patch:
        stop_after(patch, saves)
        with pytest.raises(Stop):
            train_together(
                make_tasks(make, PLANS[name], device=device), checkpoints=checkpoints, keys=["a"]
            )
    resumed = make_tasks(make, PLANS[name], device=device)
    seen = []
    (history,) = train_together(
        resumed, checkpoints=checkpoints, keys=["a"], progress=lambda *told: seen.append(told[1])
    )
    assert history == expected
    assert len(seen) < len(expected.training_loss) or saves < 4
    for one, two in zip(
        whole[0].network.parameters(), resumed[0].network.parameters(), strict=True
    ):
        assert torch.equal(one, two)


@pytest.mark.usefixtures("always_due", "small_groups", "two_threads")
@pytest.mark.parametrize("small", [True, False], ids=["apart", "as one bank"])
@any_device
def test_members_go_on_together(tmp_path, monkeypatch, small, device):
    plan = make_plan(epochs=4, batch_size=16, small=small)
    whole = make_tasks(mlp, plan, 3, device)
    expected = train_together(whole)
    checkpoints = Checkpoints(tmp_path / "kept")
    with monkeypatch.context() as patch:
        stop_after(patch, 5)
        with pytest.raises(Stop):
            train_together(
                make_tasks(mlp, plan, 3, device), checkpoints=checkpoints, keys=["a", "b", "c"]
            )
    resumed = make_tasks(mlp, plan, 3, device)
    assert train_together(resumed, checkpoints=checkpoints, keys=["a", "b", "c"]) == expected
    for one, two in zip(whole, resumed, strict=True):
        states = one.network.state_dict(), two.network.state_dict()
        assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


@pytest.mark.usefixtures("always_due")
def test_a_finished_training_is_not_done_again(tmp_path):
    checkpoints = Checkpoints(tmp_path / "kept")
    tasks = make_tasks(mlp, PLANS["adam"])
    (expected,) = train_together(tasks, checkpoints=checkpoints, keys=["a"])
    again = make_tasks(mlp, PLANS["adam"])
    seen = []
    (history,) = train_together(
        again, checkpoints=checkpoints, keys=["a"], progress=lambda *told: seen.append(told)
    )
    assert history == expected
    assert not seen
    assert torch.equal(tasks[0].network[0].weight, again[0].network[0].weight)


@pytest.mark.usefixtures("always_due")
@pytest.mark.parametrize("small", [True, False], ids=["apart", "as one bank"])
def test_members_that_are_finished_are_found_whoever_is_beside_them(tmp_path, small):
    """A study's cells appear one by one: after a kill, others are trained together."""
    checkpoints = Checkpoints(tmp_path / "kept")
    plan = make_plan(epochs=3, batch_size=16, small=small)
    whole = train_together(make_tasks(mlp, plan, 3), checkpoints=checkpoints, keys=["a", "b", "c"])
    rest = make_tasks(mlp, plan, 4)[1:]
    seen = []
    found = train_together(
        rest, checkpoints=checkpoints, keys=["b", "c", "d"], progress=lambda *x: seen.append(x)
    )
    assert found[:2] == whole[1:]
    assert [done for _, done, *_ in seen] == [0, 1, 2, 3]
    assert torch.equal(rest[2].network[0].weight, _trained(plan, 3).network[0].weight)


def _trained(plan, member):
    task = make_tasks(mlp, plan, member + 1)[member]
    train_together([task])
    return task


@pytest.mark.usefixtures("always_due")
def test_another_training_does_not_take_it_over(tmp_path):
    checkpoints = Checkpoints(tmp_path / "kept")
    train_together(make_tasks(mlp, PLANS["adam"]), checkpoints=checkpoints, keys=["a"])
    seen = []
    train_together(
        make_tasks(mlp, PLANS["adam"]),
        checkpoints=checkpoints,
        keys=["b"],
        progress=lambda *told: seen.append(told),
    )
    assert len(seen) == 1 + PLANS["adam"].epochs


def test_a_short_training_saves_nothing(tmp_path):
    checkpoints = Checkpoints(tmp_path / "kept")
    train_together(make_tasks(mlp, PLANS["adam"]), checkpoints=checkpoints, keys=["a"])
    assert list(tmp_path.iterdir()) == []
