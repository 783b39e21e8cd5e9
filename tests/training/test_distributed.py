"""Processes that train together find what one process finds."""

import json
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from tests.free_port import free_port
from tests.training.together import fit, make_fields, make_surrogates
from twoscale import Surrogate, fit_auto
from twoscale.cli.workers import workers_at
from twoscale.data import Dataset, generate
from twoscale.errors import TwoscaleError
from twoscale.fields.source import ArraySource
from twoscale.problems import Poisson
from twoscale.run import RunRequest, fit_run, fit_runs
from twoscale.run.pairs import own_scratch
from twoscale.runtime import processes
from twoscale.training.task import CodePairs, Shard

ROOT = Path(__file__).parents[2]
SAFETY = 240  # seconds after which a hanging process is ended


def environment_of(rank, port, local_rank=None):
    """The environment that torchrun gives to one of two processes."""
    local_rank = rank if local_rank is None else local_rank
    own = {"RANK": rank, "LOCAL_RANK": local_rank, "WORLD_SIZE": 2, "MASTER_PORT": port}
    return (
        os.environ
        | {"MASTER_ADDR": "127.0.0.1", "OMP_NUM_THREADS": "1"}
        | {name: str(value) for name, value in own.items()}
    )


def run_both(*arguments, share_gpu=False):
    """Run a command in two processes; return them with what they printed to stderr.

    With `share_gpu` both think that they are the first one on their machine.
    """
    port = free_port()
    both = [
        subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            cwd=ROOT,
            env=environment_of(rank, port, 0 if share_gpu else None),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        return [(one, one.communicate(timeout=SAFETY)[1]) for one in both]
    finally:
        for one in both:
            one.kill()


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """What each of two processes has found."""
    folder = tmp_path_factory.mktemp("together")
    return run_together(folder, "cpu")


def run_together(folder, device):
    """Return what each of two processes finds on a device."""
    launch = ["-m", "tests.training.together", folder, device]
    for one, errors in run_both(*launch, share_gpu=device == "cuda"):
        assert one.returncode == 0, errors
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "poisson.zarr"
    generate(Poisson(), path, resolution=8, samples=30, seed=0)
    return path


def fitted_alone(name, device):
    return fit(name, make_surrogates(device)["fno" if name == "continued" else name])


def check_curves(together, name, alone, tolerance):
    """Check that both processes have one result, and the loss curves of one process alone."""
    first, second = (one[name] for one in together)
    stage = "refinement" if name == "correction" else "training"
    for kind in ("training_loss", "validation_loss", "learning_rate"):
        curves = [one["history"][stage][kind] for one in (first, second)]
        assert curves[0] == curves[1], kind
        assert curves[0] == pytest.approx(alone.history_[stage][kind], rel=tolerance), kind
    assert first["weights"] == second["weights"]
    return first, second


@pytest.mark.gpu
def test_two_processes_on_one_gpu_find_what_one_does(tmp_path):
    """They talk by gloo, since NCCL wants a GPU for each."""
    together = run_together(tmp_path, "cuda")
    for name in [*make_surrogates(), "continued"]:
        check_curves(together, name, fitted_alone(name, "cuda"), 1e-2)


@pytest.mark.gpu
def test_one_process_talks_by_nccl(tmp_path):
    """All that processes tell each other, by the way of several GPUs; there is one here."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.training.by_nccl", tmp_path],
        cwd=ROOT,
        env=environment_of(0, free_port(), 0) | {"WORLD_SIZE": "1"},
        capture_output=True,
        text=True,
        timeout=SAFETY,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "0.json").read_text())
    assert found.pop("backend") == "nccl"
    for name in found:
        check_curves([found, found], name, fitted_alone(name, "cuda"), 1e-2)


@pytest.mark.parametrize("name", [*make_surrogates(), "continued"])
def test_two_processes_find_what_one_does(together, name):
    alone = fitted_alone(name, "cpu")
    first, _ = check_curves(together, name, alone, 1e-5)
    for key, value in alone.operator_.state_dict().items():
        found = torch.tensor(first["weights"][key], dtype=torch.double).reshape(value.shape)
        error = (found - value).norm() / value.double().norm().clamp_min(1e-3)
        assert error < 1e-4, key


def test_one_run_folder_is_written(data, tmp_path):
    out = tmp_path / "run"
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    fit = ["-m", "twoscale", "fit", data, "--method", "fno", "--device", "cpu", "--out", out]
    fit += ["--memory", "24kB"]  # tensors of more than 1.5 kB are files, in both processes
    sizes = {"epochs": 2, "width": 4, "modes": 2, "batch_size": 7}
    chosen = [text for name, value in sizes.items() for text in ("--set", f"{name}={value}")]
    done = subprocess.run(
        [sys.executable, *map(str, [*launch, *fit, *chosen])],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=SAFETY,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("MRE %") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    alone = fit_run(Dataset(data), tmp_path / "alone", method="fno", settings=sizes, device="cpu")
    history = json.loads((out / "history.json").read_text())["training"]
    expected = alone.surrogate.history_["training"]["validation_loss"]
    assert history["validation_loss"] == pytest.approx(expected, rel=1e-5)
    metrics = json.loads((out / "metrics.json").read_text())
    assert metrics["mre"] == pytest.approx(alone.metrics["mre"], rel=1e-4)


FAILS_IN_ONE = """
import os, sys
from twoscale.training.learner import SharedLearner

step = SharedLearner.share_step
def failing(self, *minibatch):
    if os.environ["RANK"] == "1":
        raise MemoryError
    step(self, *minibatch)
SharedLearner.share_step = failing

from twoscale.cli import main
main()
"""


def test_an_error_in_one_process_ends_both_with_one_sentence(data, tmp_path):
    script = tmp_path / "fit.py"
    script.write_text(FAILS_IN_ONE)
    fit = ["fit", data, "--method", "fno", "--device", "cpu", "--out", tmp_path / "out" / "run"]
    both = run_both(script, *fit)
    assert [one.returncode for one, _ in both] == [2, 2]
    assert both[0][1] == ""
    assert both[1][1].startswith("twoscale: there is not enough memory")
    assert both[1][1].count("\n") == 1
    assert not (tmp_path / "out" / "run").exists()


@pytest.fixture
def two(monkeypatch):
    """As the first of two processes that train together."""
    monkeypatch.setattr(processes, "count", lambda: 2)
    monkeypatch.setattr(processes, "rank", lambda: 0)


def test_what_several_processes_cannot_train_is_refused(two, data, tmp_path):
    dataset = Dataset(data)
    with pytest.raises(TwoscaleError, match="only networks on fields are trained by several"):
        fit_run(dataset, tmp_path / "run", method="global", settings={"predictor": "affine"})
    with pytest.raises(TwoscaleError, match="several seeds are fitted in one process"):
        fit_runs(dataset, [RunRequest(tmp_path / name, "fno") for name in "01"])
    with pytest.raises(TwoscaleError, match="a search runs in one process, and 2 have been"):
        fit_auto(*make_fields())
    assert not list(tmp_path.iterdir())


def test_different_data_are_refused(two, data, tmp_path, monkeypatch):
    generate(Poisson(), tmp_path / "other.zarr", resolution=8, samples=30, seed=1)
    other = Dataset(tmp_path / "other.zarr")

    def gather(found, value):
        found[:] = [value, value.replace(Dataset(data).identity, other.identity)]

    monkeypatch.setattr("torch.distributed.all_gather_object", gather)
    with pytest.raises(TwoscaleError, match="fit different things: give all of them the same data"):
        fit_run(Dataset(data), tmp_path / "run", method="fno", device="cpu")
    assert not (tmp_path / "run").exists()


def use_scratch_and_fail(out):
    with own_scratch(out, 16, stored=False) as scratch:
        assert scratch.memory == 16
        assert scratch.empty(10, like=torch.ones(1)).untyped_storage().filename is not None
        assert [path.name for path in out.parent.iterdir()] == [".run.process-1.twoscale-work"]
        raise KeyError


def test_each_process_has_scratch_files_of_its_own(two, tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "rank", lambda: 1)
    out = tmp_path / "made" / "run"
    with pytest.raises(KeyError):
        use_scratch_and_fail(out)
    assert not list(tmp_path.iterdir())
    with own_scratch(out, None, stored=True) as scratch:
        assert scratch.on_disk
    with own_scratch(out, None, stored=False) as scratch:
        assert not scratch.on_disk
    assert not list(tmp_path.iterdir())


def test_workers_of_several_processes_are_refused(monkeypatch):
    monkeypatch.setattr(processes, "launched", lambda: 2)
    text = "with --scheduler runs in one process, and 2 have been started"
    with pytest.raises(TwoscaleError, match=text), workers_at("local:4"):
        pass
    with workers_at(None) as workers:
        assert workers is None


def test_processes_without_a_sample_are_refused(two, monkeypatch):
    monkeypatch.setattr(processes, "count", lambda: 100)
    monkeypatch.setattr(processes, "check_same", lambda description: None)
    with pytest.raises(TwoscaleError, match="100 processes train together, and there are 21"):
        make_surrogates()["fno"].fit(*make_fields())


def test_other_predictors_are_fitted_by_each_process_alone(two):
    x, u = make_fields()
    surrogate = Surrogate("global", predictor="affine", device="cpu").fit(x, u)
    assert surrogate.predict(x).isfinite().all()


def test_an_environment_that_torchrun_did_not_set_is_pointed_out(monkeypatch):
    assert processes.launched() == 1
    for name, value in environment_of(0, 1).items():
        monkeypatch.setenv(name, value)
    assert processes.launched() == 2
    monkeypatch.setenv("WORLD_SIZE", "many")
    with pytest.raises(TwoscaleError, match="WORLD_SIZE is a whole number that torchrun sets"):
        processes.launched()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_shards_hold_every_image_once(size):
    shards = [Shard(7, rank, size) for rank in range(size)]
    images = torch.randperm(14)
    held = torch.stack([shard.holds(images) for shard in shards])
    assert torch.equal(held.sum(0), torch.ones(14, dtype=torch.long))
    fields = torch.arange(7.0).reshape(7, 1, 1, 1)
    for shard, own in zip(shards, held, strict=True):
        part = torch.cat(list(shard.source(ArraySource(fields)).chunks())).flatten()
        assert len(part) == shard.own
        both = torch.cat([part, part + 7])  # images under two symmetries
        assert torch.equal(both[shard.places(images[own])], images[own].float())
        assert shard.everywhere(len(both)) == 14


@pytest.mark.parametrize("validation", [1, 2, 40])
def test_shards_cover_validation_pairs_of_any_number(validation):
    pairs = CodePairs(torch.arange(validation), torch.arange(validation))
    parts = [Shard(10, rank, 3).part(pairs) for rank in range(3)]
    assert torch.cat([part.inputs for part in parts]).tolist() == list(range(validation))
    assert max(map(len, parts)) == -(-validation // 3)


@pytest.mark.parametrize("ahead_bytes", [0, 2**20])
def test_a_process_reads_the_ranges_of_its_samples_only(monkeypatch, ahead_bytes):
    monkeypatch.setattr("twoscale.training.task._AHEAD_BYTES", ahead_bytes)
    for name, value in (("_CHUNK_VALUES", 1), ("_RANGE_VALUES", 2), ("_RANGE_SAMPLES", 2)):
        monkeypatch.setattr(f"twoscale.fields.source.{name}", value)
    source = ArraySource(torch.arange(10.0).reshape(10, 1, 1, 1))
    read = Mock(wraps=source.read)
    monkeypatch.setattr(source, "read", read)
    part = Shard(10, 1, 3).source(source)
    assert torch.cat(list(part.chunks())).flatten().tolist() == [3, 4, 5]
    assert [call.args[0] for call in read.call_args_list] == [slice(2, 4), slice(4, 6)]
