import math
from threading import Barrier

import pytest
import torch
from torch import nn

from twoscale import TwoscaleError
from twoscale.precision import precision_flags, tensor_cores
from twoscale.predictors import MLP
from twoscale.training import Pairs, Plan, Task, epochs, loop, train, train_together
from twoscale.training.learner import ModuleLearner
from twoscale.training.plan import OneCycle, Plateau

_START = nn.Sequential(nn.Linear(3, 16), nn.GELU(), nn.Linear(16, 2)).state_dict()


def mean_square(predicted, true):
    return (predicted - true).square().mean()


def make_pairs(samples, *, seed=0):
    """A smooth map of three numbers to two."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 3, generator=generator)
    targets = torch.stack([inputs.sum(1), (inputs[:, 0] * inputs[:, 1]).tanh()], 1)
    return Pairs(inputs, targets)


@pytest.fixture(scope="module")
def pairs():
    return make_pairs(70), make_pairs(20, seed=1)


def make_plan(**changes):
    """A plan with the paper's values, unless told otherwise."""
    usual = {
        "batch_size": 32,
        "learning_rate": 1e-3,
        "weight_decay": 1e-4,
        "patience": 30,
        "evaluation_batch": 8192,
    }
    return Plan(**usual | changes)


def fitted(pairs, plan, *, seed=0, network_seed=0, loss=mean_square):
    network = MLP((3, 16, 2), seed=network_seed)
    history = train(network, *pairs, loss, plan, seed=seed)
    return network, history


class Stuck(nn.Module):
    """A network whose output never changes: every validation loss is the same."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x[:, :2] * 0 + 0 * self.weight


class Recorder(nn.Module):
    """An affine network that notes the inputs it is trained on."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.seen = []

    def forward(self, x):
        if torch.is_grad_enabled():
            self.seen.append(x.clone())
        return self.layer(x)


# Learning


def test_training_learns(pairs):
    _, history = fitted(pairs, make_plan(epochs=150, batch_size=16, learning_rate=1e-2))
    assert min(history.validation_loss) < 0.1 * history.validation_loss[0]
    assert history.training_loss[-1] < 0.1 * history.training_loss[0]


def test_the_best_weights_are_restored(pairs):
    """Validated on unlike targets, the network soon gets worse, and the last epoch is not kept."""
    unlike = Pairs(pairs[1].inputs, 0.5 - pairs[1].targets)
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
    network = MLP((3, 4, 2), seed=0)
    other = MLP((3, 4, 2), seed=0)
    optimiser = torch.optim.Adam(other.parameters(), lr=0.05, weight_decay=0.1)
    mean_square(other(pairs.inputs), pairs.targets).backward()
    optimiser.step()
    plan = make_plan(epochs=1, batch_size=8, learning_rate=0.05, weight_decay=0.1)
    train(network, pairs, pairs, mean_square, plan)
    for one, two in zip(network.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two)


# The schedule


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
    pairs = Pairs(torch.zeros(4, 1), torch.zeros(4))
    plan = make_plan(epochs=6, batch_size=4, learning_rate=0.1, patience=2)
    train(network, pairs, pairs, lambda p, t: p.mean(), plan)
    steps = [a - b for a, b in zip(network.path, network.path[1:], strict=False)]
    assert steps == pytest.approx([0.1, 0.1, 0.1, 0.05, 0.05], rel=1e-4)


def test_early_stop(pairs):
    plan = make_plan(epochs=50, early_stop=6, patience=4, learning_rate=0.8)
    history = train(Stuck(), *pairs, mean_square, plan)
    assert len(history.validation_loss) == 7
    assert history.learning_rate[-1] == 0.4


def test_without_early_stop_every_epoch_is_run(pairs):
    history = train(Stuck(), *pairs, mean_square, make_plan(epochs=9, patience=2))
    assert len(history.validation_loss) == 9


# Minibatches


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


# Repetition


def test_the_same_seed_gives_the_same_weights(pairs):
    plan = make_plan(epochs=5, batch_size=16)
    one, two = fitted(pairs, plan, seed=3), fitted(pairs, plan, seed=3)
    assert one[1] == two[1]
    states = one[0].state_dict(), two[0].state_dict()
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_another_seed_gives_another_order(pairs):
    plan = make_plan(epochs=5, batch_size=16)
    assert fitted(pairs, plan, seed=3)[1] != fitted(pairs, plan, seed=4)[1]


def test_the_global_random_state_is_neither_read_nor_written(pairs):
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    one = fitted(pairs, make_plan(epochs=2))[1]
    assert torch.equal(torch.rand(3), expected)
    assert fitted(pairs, make_plan(epochs=2))[1] == one


def test_data_are_left_unchanged():
    pairs = make_pairs(40), make_pairs(10, seed=1)
    before = [t.clone() for p in pairs for t in (p.inputs, p.targets)]
    fitted(pairs, make_plan(epochs=2))
    after = [t for p in pairs for t in (p.inputs, p.targets)]
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(("small", "threads"), [(True, 1), (False, 2)])
def test_small_steps_are_done_on_one_thread(pairs, small, threads):
    """Afterwards threads and flags are as they were."""
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark
    seen = []

    def loss(predicted, true):
        seen.append(torch.get_num_threads())
        return mean_square(predicted, true)

    fitted(pairs, make_plan(epochs=1, small=small), loss=loss)
    assert set(seen) == {threads}
    assert torch.get_num_threads() == 2
    assert (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark) == before


@pytest.mark.parametrize(("on_fields", "tuned"), [(True, True), (True, False), (False, False)])
def test_only_networks_on_fields_use_tensor_cores(pairs, on_fields, tuned):
    """Fine-tuning works on large codes too, and takes differences of decoded fields."""
    before = precision_flags()
    seen = []

    def loss(predicted, true):
        seen.append((precision_flags()[0], torch.backends.cudnn.benchmark))
        return mean_square(predicted, true)

    fitted(pairs, make_plan(epochs=1, on_fields=on_fields, tuned=tuned), loss=loss)
    assert set(seen) == {(on_fields, tuned)}
    assert precision_flags() == before


@pytest.mark.usefixtures("two_threads")
def test_threads_leave_the_flags_as_they_were(pairs, monkeypatch):
    """Also if the first one to start ends first."""
    flags = torch.backends.cudnn
    monkeypatch.setattr(flags, "deterministic", False)
    started = Barrier(2)

    def loss(predicted, true):
        if len(seen) < 2:
            seen.append(flags.deterministic)
            started.wait(timeout=20)
        return mean_square(predicted, true)

    seen = []
    tasks = [
        Task(MLP((3, 4, 2), seed=seed), *pairs, loss, make_plan(epochs=1 + 20 * seed, small=True))
        for seed in range(2)
    ]
    train_together(tasks)
    assert seen == [True, True]
    assert not flags.deterministic


def test_tensor_cores_are_left_in_any_order():
    before = precision_flags()
    first, second = tensor_cores(), tensor_cores()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert precision_flags()[0]
    second.__exit__(None, None, None)
    assert precision_flags() == before


def test_a_plan_says_everything_but_when_to_stop_early():
    with pytest.raises(TypeError, match="missing"):
        Plan(epochs=3)
    plan = make_plan(epochs=3)
    assert (plan.early_stop, plan.small) == (None, False)


# Progress and failure


def test_progress_is_told_once_per_epoch(pairs):
    calls = []
    train(
        MLP((3, 2)),
        *pairs,
        mean_square,
        make_plan(epochs=3),
        progress=lambda *call: calls.append(call),
        name="latent",
    )
    assert [call[:3] for call in calls] == [("latent", k, 3) for k in (1, 2, 3)]
    assert all(call[3].startswith("validation loss ") for call in calls)


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


# CUDA


def on_cuda(pairs):
    return Pairs(pairs.inputs.cuda(), pairs.targets.cuda())


def test_large_samples_make_smaller_groups_of_the_same_minibatches(pairs, monkeypatch):
    plan = make_plan(epochs=3, batch_size=8)
    whole, _ = fitted(pairs, plan)
    monkeypatch.setattr(epochs, "_GROUP_VALUES", 1)
    single, _ = fitted(pairs, plan)
    for a, b in zip(whole.parameters(), single.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_judge_of_ones_own_chooses_the_epoch(pairs):
    losses = iter([3.0, 1.0, 2.0, 5.0])
    network = MLP((3, 16, 2), seed=0)
    history = train(network, *pairs, mean_square, make_plan(epochs=4), judge=lambda: next(losses))
    assert history.validation_loss == [3.0, 1.0, 2.0, 5.0]
    assert history.best_epoch == 1


@pytest.mark.gpu
@pytest.mark.parametrize("samples", [70, 64, 20, 32 * 50 + 5, 32 * 57 + 5, 32 * 100])
def test_replayed_graphs_are_the_eager_steps(samples, monkeypatch):
    """Whole groups, a rest of single batches, a last partial batch, and none of these."""
    data = on_cuda(make_pairs(samples)), on_cuda(make_pairs(20, seed=1))
    plan = make_plan(epochs=6, batch_size=32, patience=2, learning_rate=0.05, weight_decay=1e-3)
    results = []
    for kind in (epochs.ReplayedEpochs, epochs.Epochs):
        monkeypatch.setattr(loop, "make_epochs", kind)
        network = MLP((3, 16, 2), seed=0).cuda()
        results.append((train(network, *data, mean_square, plan, seed=2), network.state_dict()))
    (graph, weights), (eager, expected) = results
    assert graph.learning_rate == eager.learning_rate
    assert graph.best_epoch == eager.best_epoch
    assert graph.training_loss == pytest.approx(eager.training_loss, rel=1e-5)
    for key in weights:
        torch.testing.assert_close(weights[key], expected[key], rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("drawn", [64, 70, 20])
def test_replayed_draws_are_the_eager_ones(drawn, monkeypatch):
    data = on_cuda(make_pairs(100)), on_cuda(make_pairs(20, seed=1))
    plan = make_plan(epochs=4, batch_size=16, one_cycle=True, learning_rate=0.02)
    results = []
    for kind in (epochs.ReplayedEpochs, epochs.Epochs):
        monkeypatch.setattr(loop, "make_epochs", kind)
        network = nn.Sequential(nn.Linear(3, 16), nn.GELU(), nn.Linear(16, 2))
        network.load_state_dict(_START)
        task = Task(network.cuda(), *data, mean_square, plan, seed=2, per_epoch=drawn)
        results.append(train_together([task])[0])
    graph, eager = results
    assert graph.learning_rate == eager.learning_rate
    assert graph.training_loss == pytest.approx(eager.training_loss, rel=1e-4)


@pytest.mark.gpu
def test_cuda_training_repeats_itself_and_agrees_with_the_cpu():
    data = make_pairs(100), make_pairs(20, seed=1)
    there = on_cuda(data[0]), on_cuda(data[1])
    plan = make_plan(epochs=5, batch_size=16)
    histories = []
    for pairs, device in ((there, "cuda"), (there, "cuda"), (data, "cpu")):
        network = MLP((3, 16, 2), seed=0).to(device)
        histories.append(train(network, *pairs, mean_square, plan, seed=1))
    assert histories[0] == histories[1]
    assert histories[0].validation_loss == pytest.approx(histories[2].validation_loss, rel=1e-3)


@pytest.mark.gpu
def test_targets_in_host_memory_train_as_on_the_device(monkeypatch):
    """Gathered by the CPU and sent in groups: the same minibatches, bit for bit."""
    there = on_cuda(make_pairs(32 * 57 + 5)), on_cuda(make_pairs(20, seed=1))
    sent = Pairs(there[0].inputs, there[0].targets.cpu()), there[1]
    plan = make_plan(epochs=4)
    monkeypatch.setattr(epochs, "_GROUP_VALUES", 20 * 32 * 5)  # groups of twenty
    weights = []
    for pairs in (there, sent):
        network = MLP((3, 16, 2), seed=0).cuda()
        train(network, *pairs, mean_square, plan, seed=2)
        weights.append(torch.cat([value.flatten() for value in network.state_dict().values()]))
    assert torch.equal(*weights)
