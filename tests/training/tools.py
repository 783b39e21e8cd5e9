"""A small map to learn, a plan, and networks that tell what happens to them."""

import torch
from torch import nn

from twoscale.networks import DenseNetwork
from twoscale.training import CodePairs, Plan, train

START = nn.Sequential(nn.Linear(3, 16), nn.GELU(), nn.Linear(16, 2)).state_dict()


def mean_square(predicted, true):
    return (predicted - true).square().mean()


def make_pairs(samples, *, seed=0):
    """A smooth map of three numbers to two."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(samples, 3, generator=generator)
    targets = torch.stack([inputs.sum(1), (inputs[:, 0] * inputs[:, 1]).tanh()], 1)
    return CodePairs(inputs, targets)


def make_plan(**changes):
    """A plan with the paper's values by default."""
    usual = {
        "batch_size": 32,
        "learning_rate": 1e-3,
        "weight_decay": 1e-4,
        "patience": 30,
        "evaluation_batch": 8192,
    }
    return Plan(**usual | changes)


def fitted(pairs, plan, *, seed=0, network_seed=0, loss=mean_square):
    network = DenseNetwork((3, 16, 2), seed=network_seed)
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
