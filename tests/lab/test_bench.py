"""The benchmarks: how ratios are made, that the peers are right, and that each one runs."""

import json
from functools import cache

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.conftest import make_poisson
from twoscale import Darcy, Grid, Poisson, TwoScale, TwoscaleError
from twoscale.networks import DenseNetwork, FNO2d
from twoscale.runtime.memory import peak_memory
from twoscale.training import CodePairs, Plan, train
from twoscale_lab.bench import BENCHMARKS, Comparison, Setup, measure, peers, run_benchmarks, using

SMALL = Setup(torch.device("cpu"), "small")
FAST = [name for name in BENCHMARKS if name != "memory"]


@cache
def small_results(name):
    """Return the results of a small benchmark, which is run once."""
    return list(run_benchmarks([name], SMALL))


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


@pytest.mark.parametrize(
    ("problem", "peer"),
    [(Darcy(), peers.darcy_by_sparse_lu), (Poisson(), peers.poisson_by_sparse_lu)],
)
def test_sparse_lu_solves_the_same_equation(problem, peer):
    inputs = problem.sample(Grid.square(20), range(3), seed=0)
    np.testing.assert_allclose(peer(inputs.numpy()), problem.solve(inputs).numpy(), atol=1e-9)


def test_the_scikit_learn_peer_is_the_same_representation():
    _, fields = make_poisson((32, 32), 200)
    batch = fields[:, None]
    ours = TwoScale(coarse_components=4).fit(batch)
    ranks = ours.ranks
    peer = peers.TwoScalePCA(4, 4, 4, ranks["residual"]).fit(fields.numpy())
    decoded = peer.decode(peer.encode(fields.numpy()))
    errors = [
        float((d - fields).norm())
        for d in (ours.reconstruct(batch)[:, 0], torch.from_numpy(decoded))
    ]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)


def test_the_dataloader_peer_learns():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(200, 3, generator=generator)
    pair = (inputs, inputs.sum(1, keepdim=True))
    network = peers.train_with_dataloader(
        DenseNetwork((3, 16, 1)), pair, pair, epochs=30, learning_rate=1e-2
    )
    with torch.no_grad():
        assert float((network(inputs) - pair[1]).square().mean()) < 0.1


def test_the_dataloader_peer_has_our_weights_and_our_order():
    """Given the same weights and seed, both loops take the same steps."""
    generator = torch.Generator().manual_seed(0)
    fields = torch.randn(2, 20, 1, 16, 16, generator=generator)
    pair, held_out = tuple(fields[:, :14]), tuple(fields[:, 14:])
    sizes = {"layers": 2, "width": 4, "modes": 3, "head": 6}
    ours, plain = FNO2d(**sizes, seed=1), peers.plain_fno(FNO2d(**sizes, seed=1))
    with torch.no_grad():
        torch.testing.assert_close(ours(fields[0]), plain(fields[0]))
    settings = {"epochs": 3, "batch_size": 4, "learning_rate": 1e-3, "weight_decay": 1e-4}
    plan = Plan(**settings, patience=5, evaluation_batch=64)
    history = train(ours, CodePairs(*pair), CodePairs(*held_out), functional.mse_loss, plan, seed=3)
    epochs = []
    done = epochs.append
    peers.train_with_dataloader(
        plain, pair, held_out, **settings, patience=5, seed=3, after_epoch=lambda: done(1)
    )
    assert len(epochs) == len(history.training_loss) == 3
    with torch.no_grad():
        before = FNO2d(**sizes, seed=1)(fields[0])
        moved = (ours(fields[0]) - before).norm()
        assert (ours(fields[0]) - plain(fields[0])).norm() < 1e-3 * moved


def test_laps_leave_the_first_epoch_apart(monkeypatch):
    times = iter([0.0, 10.0, 11.0, 14.0])
    monkeypatch.setattr(measure, "now", lambda: next(times))
    laps = measure.Laps()
    for epoch in range(3):
        laps("training", epoch, 3, "")
    assert laps.first == 10.0
    assert laps.later == 2.0


@pytest.mark.parametrize("name", FAST)
def test_every_benchmark_runs_small(name):
    results = small_results(name)
    assert results
    for result in results:
        assert result.name.startswith(name)
        assert result.peer
        assert result.ratio > 0
        assert json.loads(json.dumps(result.as_dict()))["name"] == result.name


def test_pca_agrees_with_its_peer():
    (result,) = small_results("pca")
    found = result.agreement
    assert found["oracle"] == pytest.approx(found["peer_oracle"], rel=1e-3)


def test_training_on_fields_agrees_with_its_peers():
    results = [r for r in small_results("train") if "two-scale" not in r.name]
    assert [result.name.split()[1] for result in results] == ["fno", "refinement"]
    for result in results:
        assert result.agreement["difference"] < 1e-3
        assert result.details["first_epoch_seconds"] > 0


def test_finetuning_agrees_with_its_peer():
    (result,) = small_results("finetune")
    found = result.agreement
    assert found["mre"] == pytest.approx(found["peer_mre"], rel=1e-3)
    assert found["mre"] < found["mre_before"]


def test_inference_is_measured_on_new_fields_for_every_batch():
    *results, fno, solver = small_results("inference")
    assert len(results) == 2 * 2 * 2  # problems, batches, peers
    assert fno.name == solver.name == "inference encoder darcy-16, batch 16"
    for result in [*results, fno, solver]:
        assert result.agreement["replay_difference"] < 1e-5
        assert 0 < result.agreement["mre"] < 1


def test_single_predictions_agree_with_the_exported_file():
    results = small_results("single")
    assert [result.name.split()[-1] for result in results] == ["affine-32", "encoder-32"]
    for result in results:
        assert result.agreement["difference"] < 1e-5
        assert result.details["module_seconds"]


def test_batches_that_take_too_long_are_left_out(monkeypatch):
    monkeypatch.setattr(using, "_per_field", lambda method, inputs, setup: [1.0])
    monkeypatch.setattr(using, "_LONGEST", 2.0)
    names = [result.name for result in run_benchmarks(["inference"], SMALL)]
    assert not [name for name in names if "batch 16" in name and "encoder" not in name]


@pytest.mark.gpu
def test_replayed_predictions_are_the_eager_ones_in_the_benchmark():
    for result in run_benchmarks(["inference"], Setup(torch.device("cuda"), "small")):
        assert result.agreement["replay_difference"] < 1e-5


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["train", "finetune"])
def test_benchmarks_of_training_run_on_a_gpu(name):
    for result in run_benchmarks([name], Setup(torch.device("cuda"), "small")):
        assert result.agreement.get("difference", 0.0) < 0.05


def test_memory_is_measured_in_a_process_of_its_own():
    assert 1e6 < using._peak(["--version"]) < peak_memory()


@pytest.mark.usefixtures("without_pages")
def test_memory_is_that_of_a_fit_and_not_of_a_search(twoscale, monkeypatch):
    commands, peaks = [], iter([0.8e9, 2e9])

    def peak(command):
        assert twoscale(*command).status == 0
        commands.append(command)
        return next(peaks)

    monkeypatch.setattr(using, "_peak", peak)
    (result,) = run_benchmarks(["memory"], SMALL)
    assert (result.seconds, result.peer_seconds) == ([0.8], [2.0])
    assert result.agreement["allowance_gigabytes"] == 0.7
    assert not result.details["within"]
    assert len(commands) == 2
    assert all("--method" in command for command in commands)


def test_unknown_names_and_scales_are_refused():
    with pytest.raises(TwoscaleError, match="no benchmark is called 'x': known are generate, pca"):
        list(run_benchmarks(["x"], SMALL))
    with pytest.raises(TwoscaleError, match="the scale is small or paper, got 'huge'"):
        list(run_benchmarks([], Setup(torch.device("cpu"), "huge")))
