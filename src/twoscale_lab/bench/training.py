"""Benchmarks of training: networks on codes, networks on fields, fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from twoscale.fields.source import slices
from twoscale.methods.recipes import defaults
from twoscale.networks import DenseNetwork, FNO2d, RefinementNet
from twoscale.operators.operators import CodeOperator
from twoscale.predictors import FNO, CodePredictor, Refinement
from twoscale.problems import Poisson
from twoscale.representation import PatchPCA
from twoscale.settings import defaults_of
from twoscale.surrogate import Surrogate, fit_together
from twoscale.training import CodePairs, Plan
from twoscale.training import train as train_network
from twoscale.training.task import CodeLoss, code_weights
from twoscale_lab.bench import peers
from twoscale_lab.bench.measure import Comparison, Laps, Setup, relative, stopwatch


def train(setup: Setup) -> Iterator[Comparison]:
    """Networks on codes, one seed and five, and networks on fields, against DataLoader loops."""
    yield from _train_on_codes(setup)
    yield from _train_on_fields(setup)


def _train_on_codes(setup: Setup) -> Iterator[Comparison]:
    resolution = setup.size(32, 64, gpu=128)
    samples, held = setup.size(300, 8000), setup.size(50, 1000)
    epochs = setup.size(2, 10, gpu=40)
    training, (x, u) = setup.pairs(Poisson(), resolution, samples, held)
    device = str(setup.device)

    def ours(seeds: int) -> list[Surrogate]:
        surrogates = [
            Surrogate("two-scale", seed=seed, device=device, coarse_factor=4, epochs=epochs)
            for seed in range(seeds)
        ]
        fit_together(surrogates, [(*training, (x, u))] * seeds)
        return surrogates

    operator = ours(1)[0].operator_
    assert isinstance(operator, CodeOperator)
    pair = [
        (operator.inputs.encode(a[:, None]), operator.outputs.encode(b[:, None]))
        for a, b in (training, (x, u))
    ]
    sizes = (pair[0][0].shape[1], 128, 128, 128, pair[0][1].shape[1])
    loss = same_loss("two-scale", operator.outputs.block_sizes, pair[0][1])

    def theirs(epochs: int, seed: int = 0) -> nn.Module:
        torch.manual_seed(seed)  # of the loader's shuffles
        network = DenseNetwork(sizes, seed=seed).to(setup.device)
        return peers.train_with_dataloader(network, *pair, epochs=epochs, loss=loss)

    theirs(1)  # warms up
    timed = [stopwatch(partial(theirs, epochs, seed)) for seed in range(setup.size(1, 3))]
    decode = operator.outputs.decode
    with torch.no_grad():
        peer_errors = [relative(decode(net(pair[1][0]))[:, 0], u) for _, net in timed]
    steps = -(-samples // 32)
    for seeds in (1, 5):
        seconds, errors = [], []
        for _ in range(setup.size(1, 2)):
            fitted = ours(seeds)
            seconds.append(fitted[0].timings_["training"] / (epochs * steps))
            errors = [relative(one.predict(x.cpu()), u.cpu()) for one in fitted]
        yield Comparison(
            f"train two-scale poisson-{resolution}, {seeds} seed{'s' * (seeds > 1)}",
            "DataLoader loop, Adam, per seed",
            "step",
            seconds,
            [taken / (epochs * steps) for taken, _ in timed],
            {
                "validation_mre": sum(errors) / len(errors),
                "spread_over_seeds": max(errors) - min(errors),
                "peer_validation_mre": sum(peer_errors) / len(peer_errors),
                "peer_spread_over_seeds": max(peer_errors) - min(peer_errors),
            },
            {"epochs": epochs, "codes": [sizes[0], sizes[-1]]},
        )


def _train_on_fields(setup: Setup) -> Iterator[Comparison]:
    """Yield the training steps of FNO and RefinementNet; the peer's FNO uses plain FFTs."""
    resolution = setup.size(32, 64, gpu=128)
    samples, held = setup.size(24, 64, gpu=1024), setup.size(8, 16, gpu=128)
    fields = setup.fields(Poisson(), resolution, samples + held)
    x, u = (((values - values.mean()) / values.std())[:, None] for values in fields)
    assembled = PatchPCA(0.99).fit(u).reconstruct(u)
    compare = partial(_compare_training, setup, targets=u, samples=samples)
    yield compare(
        f"train fno poisson-{resolution}",
        "FFTs of whole fields, DataLoader loop, Adam",
        FNO,
        (FNO2d, lambda: peers.plain_fno(FNO2d())),
        inputs=x,
    )
    yield compare(
        f"train refinement poisson-{resolution}",
        "the same network, DataLoader loop, Adam",
        Refinement,
        (RefinementNet, RefinementNet),
        inputs=assembled,
    )


def _compare_training(
    setup: Setup,
    name: str,
    peer: str,
    kind: type[CodePredictor],
    networks: tuple[Callable[[], nn.Module], Callable[[], nn.Module]],
    *,
    inputs: Tensor,
    targets: Tensor,
    samples: int,
) -> Comparison:
    """Train a network by our loop and its twin by a plain one.

    Both have the same weights at first and the same order of samples.
    """
    names = ("batch_size", "learning_rate", "weight_decay", "patience")
    settings = {name: defaults_of(kind)[name] for name in names}
    epochs = setup.size(2, 2, gpu=5)
    parts = (slice(samples), slice(samples, None))
    data = [(inputs[part], targets[part]) for part in parts]

    def ours(network: nn.Module, laps: Laps) -> None:
        plan = Plan(epochs=epochs, evaluation_batch=64, on_fields=True, tuned=True, **settings)
        training, validation = (CodePairs(*part) for part in data)
        train_network(network, training, validation, functional.mse_loss, plan, progress=laps)

    def theirs(network: nn.Module, laps: Laps) -> None:
        peers.train_with_dataloader(network, *data, epochs=epochs, after_epoch=laps, **settings)

    laps: tuple[list[Laps], list[Laps]] = ([], [])
    losses = [0.0, 0.0]
    for _ in range(setup.size(1, 2)):
        for side, (make, run) in enumerate(zip(networks, (ours, theirs), strict=True)):
            network = make().to(setup.device)
            laps[side].append(Laps())
            run(network, laps[side][-1])
            losses[side] = _mean_squared_error(network, *data[0])
    steps = -(-samples // settings["batch_size"])
    seconds, peer_seconds = ([lap.later / steps for lap in side] for side in laps)
    found = {
        "training_loss": losses[0],
        "peer_training_loss": losses[1],
        "difference": abs(losses[0] / losses[1] - 1),
    }
    details = {
        "epochs": epochs,
        "batch_size": settings["batch_size"],
        "first_epoch_seconds": laps[0][-1].first,
        "peer_first_epoch_seconds": laps[1][-1].first,
    }
    return Comparison(name, peer, "step", seconds, peer_seconds, found, details)


@torch.no_grad()
def _mean_squared_error(network: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    parts = list(slices(len(inputs), 64))
    errors = [(network(inputs[part]) - targets[part]).square().sum() for part in parts]
    return float(sum(errors)) / targets.numel()


def finetune(setup: Setup) -> Iterator[Comparison]:
    """A3 on codes against the same objective on decoded fields, minibatch by minibatch."""
    resolution = setup.size(32, 64, gpu=128)
    samples, held = setup.size(300, 2000, gpu=8000), setup.size(50, 200)
    pairs, rest = setup.pairs(Poisson(), resolution, samples, held)
    base = Surrogate(
        "two-scale", problem="poisson", device=str(setup.device), epochs=setup.size(2, 20)
    )
    base.fit(*pairs, validation=rest)
    epochs, peer_epochs = setup.size(2, 10, gpu=20), setup.size(1, 2)
    plan: dict[str, Any] = {"objective": "A3", "warm_up": 0, "ramp": 1}

    def tune(space: str, count: int) -> tuple[float, float]:
        """Return the seconds per step and the error on the validation fields."""
        tuned = base.finetune(*pairs, validation=rest, epochs=count, space=space, **plan)
        seconds = tuned.timings_["finetuning"] / (count * -(-samples // 32))
        return seconds, relative(tuned.predict(rest[0]), rest[1])

    peer_seconds, peer_error = tune("field", peer_epochs)
    _, error = tune("code", peer_epochs)
    yield Comparison(
        f"finetune A3 poisson-{resolution}",
        "the same objective on decoded fields",
        "step",
        [tune("code", epochs)[0] for _ in range(setup.size(1, 2))],
        [peer_seconds],
        {
            "mre": error,
            "peer_mre": peer_error,
            "mre_before": relative(base.predict(rest[0]), rest[1]),
        },
        {"epochs": epochs, "peer_epochs": peer_epochs},
    )


def same_loss(method: str, blocks: list[int], codes: Tensor) -> CodeLoss:
    """Return the loss that a method minimises, for its peer."""
    objective = defaults(method)["objective"]
    return CodeLoss(code_weights(objective, blocks, codes.var(0, unbiased=False)))
