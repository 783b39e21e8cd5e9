"""The benchmarks: how ratios are made, that the peers are right, and that each one runs."""

import json

import numpy as np
import pytest
import torch

from tests.conftest import make_poisson
from twoscale import Darcy, Grid, Poisson, TwoScale, TwoscaleError
from twoscale.bench import BENCHMARKS, Comparison, Setup, measure, peers, run_benchmarks
from twoscale.predictors import MLP

SMALL = Setup(torch.device("cpu"), "small")
FAST = [name for name in BENCHMARKS if name != "memory"]


def test_the_ratio_is_of_medians_and_the_spread_of_extremes():
    found = Comparison("n", "p", "step", [1.0, 2.0, 4.0], [8.0, 10.0, 30.0])
    assert found.ratio == 5.0
    assert found.spread == (2.0, 30.0)
    assert found.as_dict()["ratio"] == 5.0
    assert found.as_dict()["spread"] == [2.0, 30.0]


def test_both_sides_take_turns_and_seconds_are_per_unit(monkeypatch):
    ticks = iter(range(100))
    monkeypatch.setattr(measure, "now", lambda: float(next(ticks)))
    calls = []
    found = measure.compare(
        "n",
        "p",
        lambda: calls.append("ours") or 1,
        lambda: calls.append("theirs") or 2,
        unit="field",
        units=(4, 2),
        repeats=2,
        agreement=lambda a, b: {"sum": a + b},
    )
    assert calls == ["ours", "ours", "theirs", "ours", "theirs"]  # the first one warms up
    assert found.seconds == [0.25, 0.25]
    assert found.peer_seconds == [0.5, 0.5]
    assert found.agreement == {"sum": 3}


def test_the_exponent_of_a_power_law():
    sizes = [64, 128, 256]
    assert measure.exponent(sizes, [3e-4 * size**1.7 for size in sizes]) == pytest.approx(1.7)


@pytest.mark.parametrize(
    ("problem", "peer"),
    [(Darcy(), peers.darcy_by_sparse_lu), (Poisson(), peers.poisson_by_sparse_lu)],
)
def test_sparse_lu_solves_the_same_equation(problem, peer):
    inputs = problem.sample(Grid.square(20), range(3), seed=0)
    np.testing.assert_allclose(peer(inputs.numpy()), problem.solve(inputs).numpy(), atol=1e-9)


def test_the_scikit_learn_peer_is_the_same_representation():
    _, fields = make_poisson((32, 32), 200)
    ours = TwoScale(coarse_components=4).fit(fields)
    ranks = ours.ranks
    peer = peers.TwoScalePCA(4, 4, 4, ranks["residual"]).fit(fields.numpy())
    decoded = peer.decode(peer.encode(fields.numpy()))
    errors = [
        float((d - fields).norm()) for d in (ours.reconstruct(fields), torch.from_numpy(decoded))
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)


def test_the_dataloader_peer_learns():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 3, generator=generator)
    pair = (inputs, inputs.sum(1, keepdim=True))
    network = peers.train_with_dataloader(
        MLP((3, 16, 1)), pair, pair, epochs=30, learning_rate=1e-2
    )
    with torch.no_grad():
        assert float((network(inputs) - pair[1]).square().mean()) < 0.1


@pytest.mark.parametrize("name", FAST)
def test_every_benchmark_runs_small(name):
    results = list(run_benchmarks([name], SMALL))
    assert results
    for result in results:
        assert result.name.startswith(name)
        assert result.peer
        assert result.ratio > 0
        assert json.loads(json.dumps(result.as_dict()))["name"] == result.name


def test_pca_agrees_with_its_peer():
    (result,) = run_benchmarks(["pca"], SMALL)
    found = result.agreement
    assert found["oracle"] == pytest.approx(found["peer_oracle"], rel=1e-3)


def test_memory_is_measured_in_processes_of_their_own():
    (result,) = run_benchmarks(["memory"], SMALL)
    assert 0 < result.seconds[0] < 50
    assert result.details["within"] == (
        result.seconds[0] <= result.agreement["allowance_gigabytes"]
    )


def test_unknown_names_and_scales_are_refused():
    with pytest.raises(TwoscaleError, match="no benchmark is called 'x': known are generate, pca"):
        list(run_benchmarks(["x"], SMALL))
    with pytest.raises(TwoscaleError, match="the scale is small or paper, got 'huge'"):
        list(run_benchmarks([], Setup(torch.device("cpu"), "huge")))
