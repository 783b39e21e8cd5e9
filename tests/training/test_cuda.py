"""Training on a GPU."""

import pytest
import torch
from torch import nn

from tests.training.tools import START, make_pairs, make_plan, mean_square
from twoscale.networks import DenseNetwork
from twoscale.training import CodePairs, Task, epochs, loop, train, train_together


def on_cuda(pairs):
    return CodePairs(pairs.inputs.cuda(), pairs.targets.cuda())


@pytest.mark.gpu
@pytest.mark.parametrize("samples", [70, 64, 20, 32 * 50 + 5, 32 * 57 + 5, 32 * 100])
def test_replayed_graphs_are_the_eager_steps(samples, monkeypatch):
    """Whole groups, a rest of single batches, a last partial batch, and none of these."""
    data = on_cuda(make_pairs(samples)), on_cuda(make_pairs(20, seed=1))
    plan = make_plan(epochs=6, batch_size=32, patience=2, learning_rate=0.05, weight_decay=1e-3)
    results = []
    for kind in (epochs.ReplayedEpochs, epochs.Epochs):
        monkeypatch.setattr(loop, "make_epochs", kind)
        network = DenseNetwork((3, 16, 2), seed=0).cuda()
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
        network.load_state_dict(START)
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
        network = DenseNetwork((3, 16, 2), seed=0).to(device)
        histories.append(train(network, *pairs, mean_square, plan, seed=1))
    assert histories[0] == histories[1]
    assert histories[0].validation_loss == pytest.approx(histories[2].validation_loss, rel=1e-3)


@pytest.mark.gpu
def test_targets_in_host_memory_train_as_on_the_device(monkeypatch):
    """Gathered by the CPU and sent in groups: the same minibatches, bit for bit."""
    there = on_cuda(make_pairs(32 * 57 + 5)), on_cuda(make_pairs(20, seed=1))
    sent = CodePairs(there[0].inputs, there[0].targets.cpu()), there[1]
    plan = make_plan(epochs=4)
    monkeypatch.setattr(epochs, "_GROUP_VALUES", 20 * 32 * 5)  # groups of twenty
    weights = []
    for pairs in (there, sent):
        network = DenseNetwork((3, 16, 2), seed=0).cuda()
        train(network, *pairs, mean_square, plan, seed=2)
        weights.append(torch.cat([value.flatten() for value in network.state_dict().values()]))
    assert torch.equal(*weights)
