"""Several networks trained together are each what they would be alone."""

from dataclasses import replace

import pytest
import torch

from twoscale import TwoscaleError
from twoscale.networks import DenseNetwork
from twoscale.training import CodePairs, Plan, Task, train, train_together
from twoscale.training.bank import MLPBank
from twoscale.training.learner import ModuleLearner
from twoscale.training.task import CodeLoss

PLAN = Plan(
    epochs=6,
    batch_size=16,
    learning_rate=5e-3,
    weight_decay=1e-3,
    patience=1,
    evaluation_batch=50,
    small=True,
)


def make_task(seed, *, codes=(9, 7), hidden=(12, 10), samples=70, plan=PLAN, device="cpu"):
    generator = torch.Generator().manual_seed(100 + seed)
    mixing = torch.randn(*codes, generator=generator)

    def pairs(count):
        inputs = torch.randn(count, codes[0], generator=generator)
        return CodePairs(inputs.to(device), (inputs @ mixing).tanh().to(device))

    network = DenseNetwork((codes[0], *hidden, codes[1]), seed=seed).to(device)
    loss = CodeLoss(torch.rand(codes[1], generator=generator).to(device))
    return Task(network, pairs(samples), pairs(20), loss, plan, seed)


def alone(task):
    history = train(
        task.network, task.training, task.validation, task.loss, task.plan, seed=task.seed
    )
    return history, task.network.state_dict()


def check_members(make, tolerance):
    together = [make(k) for k in range(3)]
    histories = train_together(together)
    for k, (task, history) in enumerate(zip(together, histories, strict=True)):
        expected, weights = alone(make(k))
        assert history.best_epoch == expected.best_epoch
        assert history.learning_rate == expected.learning_rate
        assert history.validation_loss == pytest.approx(expected.validation_loss, rel=tolerance)
        assert history.training_loss == pytest.approx(expected.training_loss, rel=1e-5)
        for name, value in task.network.state_dict().items():
            torch.testing.assert_close(value, weights[name], rtol=tolerance, atol=tolerance)


def test_members_of_equal_shape_are_bit_for_bit_those_trained_alone():
    check_members(make_task, 0.0)


def test_members_of_the_papers_size():
    plan = replace(PLAN, epochs=2, batch_size=32)
    check_members(lambda k: make_task(k, codes=(144, 162), hidden=(128,) * 3, plan=plan), 0.0)


@pytest.mark.usefixtures("two_threads")
def test_members_shared_out_among_threads_keep_their_order():
    check_members(make_task, 0.0)
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_an_error_in_one_share_ends_the_others():
    tasks = [make_task(k, plan=replace(PLAN, epochs=10**6)) for k in range(3)]

    def broken():
        raise RuntimeError("boom")

    for place in range(2):  # in the first share, and in the second
        some = [
            replace(task, validate=broken) if k == place else task for k, task in enumerate(tasks)
        ]
        with pytest.raises(RuntimeError, match="boom"):
            train_together(some)
    assert torch.get_num_threads() == 2


def test_members_with_codes_of_different_size():
    sizes = [(9, 7), (11, 4), (6, 8)]
    check_members(lambda k: make_task(k, codes=sizes[k]), 2e-5)


def test_members_with_their_own_rate_decay_and_patience():
    changes = [
        {},
        {"learning_rate": 1e-3, "patience": 3},
        {"learning_rate": 2e-2, "weight_decay": 0.0},
    ]
    check_members(lambda k: make_task(k, plan=replace(PLAN, **changes[k])), 0.0)


@pytest.mark.parametrize("hidden", [(), (12,), (12, 10, 8)])
@pytest.mark.parametrize("samples", [70, 64, 10])
def test_the_written_out_steps_are_those_of_automatic_differentiation(hidden, samples, monkeypatch):
    bank, module = (make_task(0, hidden=hidden, samples=samples) for _ in range(2))
    history, weights = alone(bank)
    monkeypatch.setattr("twoscale.training.loop._make_learner", _module_learner)
    expected, expected_weights = alone(module)
    assert history.validation_loss == pytest.approx(expected.validation_loss, rel=1e-5)
    assert history.training_loss == pytest.approx(expected.training_loss, rel=1e-5)
    for name, value in weights.items():
        torch.testing.assert_close(value, expected_weights[name], rtol=1e-3, atol=1e-5)


def _module_learner(tasks):
    (task,) = tasks
    learner = ModuleLearner(task.network, task.loss, task.plan, task.training.inputs.device)
    return learner, CodePairs(task.training.inputs[None], task.training.targets[None])


def test_a_loss_of_any_kind_is_differentiated_automatically():
    def quartic(predicted, true):
        return (predicted - true).pow(4).mean()

    tasks = [replace(make_task(k), loss=quartic) for k in range(2)]
    histories = train_together(tasks)
    for k, history in enumerate(histories):
        expected, _ = alone(replace(make_task(k), loss=quartic))
        assert history.validation_loss == pytest.approx(expected.validation_loss, rel=1e-6)


def test_a_member_that_stops_early_keeps_its_best_weights():
    plan = replace(PLAN, epochs=30, early_stop=2, learning_rate=0.05)
    check_members(lambda k: make_task(k, plan=plan), 0.0)


def test_networks_are_independent_modules_afterwards():
    tasks = [make_task(k) for k in range(2)]
    train_together(tasks)
    weights = [task.network[0].weight for task in tasks]
    assert all(weight.is_contiguous() for weight in weights)
    before = weights[1].clone()
    with torch.no_grad():
        weights[0].zero_()
    assert torch.equal(weights[1], before)


def test_padding_stays_zero():
    tasks = [make_task(0, codes=(9, 7)), make_task(1, codes=(5, 3))]
    bank = MLPBank(*([getattr(t, name) for t in tasks] for name in ("network", "loss", "plan")))
    stacked = bank.stack([task.training for task in tasks])
    for _ in range(3):
        bank.step(stacked.inputs[:, :16], stacked.targets[:, :16])
    first, last = bank.matrices[0], bank.matrices[-1]
    assert float(first[1, :, 5:-1].abs().max()) == 0.0
    assert float(last[1, 3:].abs().max()) == 0.0
    assert float(last[1, :3].abs().max()) > 0.0


def test_only_mlps_are_trained_together():
    tasks = [replace(make_task(k), network=torch.nn.Linear(9, 7)) for k in range(2)]
    with pytest.raises(TwoscaleError, match="only MLPs can be trained together"):
        train_together(tasks)


@pytest.mark.gpu
def test_members_on_cuda():
    sizes = [(9, 7), (11, 4), (6, 8)]
    check_members(lambda k: make_task(k, codes=sizes[k], device="cuda"), 1e-3)


def test_long_inputs_are_summed_in_parts(monkeypatch):
    def make(k):
        return make_task(k, codes=((50, 7), (43, 4), (50, 8))[k])

    whole = [make(k) for k in range(3)]
    expected = train_together(whole)
    monkeypatch.setattr("twoscale.training.bank._parts", lambda width, like: 3)
    parts = [make(k) for k in range(3)]
    histories = train_together(parts)
    for task, other, history, one in zip(parts, whole, histories, expected, strict=True):
        assert history.validation_loss == pytest.approx(one.validation_loss, rel=1e-4)
        torch.testing.assert_close(
            task.network[0].weight, other.network[0].weight, atol=1e-5, rtol=1e-4
        )


@pytest.mark.gpu
def test_members_with_long_inputs_on_cuda():
    sizes = [(2500, 7), (2100, 4), (300, 8)]
    check_members(lambda k: make_task(k, codes=sizes[k], device="cuda"), 1e-3)
