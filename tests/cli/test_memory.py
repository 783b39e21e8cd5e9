"""`fit --memory` and `finetune --memory`: the same surrogate, with the fields left on disk."""

import json

import pytest

from tests.cli.outcome import contents, refused
from tests.surrogate.tiny import TINY
from twoscale import TwoscaleError
from twoscale.data import Dataset, generate
from twoscale.problems import Darcy
from twoscale.run import finetune_run, fit_run
from twoscale.runtime.memory import size_text

QUICK = ("--method", "two-scale", "--set", "epochs=2", "--json")


def test_a_fit_from_disk_is_the_fit_in_memory(twoscale, data, tmp_path):
    loaded = twoscale("fit", data, *QUICK, "--out", tmp_path / "a")
    stored = twoscale("fit", data, *QUICK, "--memory", "1kB", "--out", tmp_path / "b")
    assert loaded.status == stored.status == 0
    one, other = json.loads(loaded.out), json.loads(stored.out)
    for name in ("mre", "oracle_mre", "ssim", "residual_rms"):
        assert abs(one[name] / other[name] - 1) < 1e-4


@pytest.mark.parametrize("method", ["fno", "whole-field", "refinement"])
def test_networks_on_whole_fields_read_them_from_a_scratch_file(data, tmp_path, method):
    one, other = (
        fit_run(Dataset(data), tmp_path / name, method=method, settings=TINY[method], memory=memory)
        for name, memory in (("loaded", None), ("stored", 2000))
    )
    assert other.metrics["mre"] == pytest.approx(one.metrics["mre"], rel=1e-3)
    assert {path.name for path in tmp_path.iterdir()} == {"loaded", "stored"}
    contents = [{path.name for path in run.path.iterdir()} for run in (one, other)]
    assert contents[0] == contents[1]


def test_a_disk_without_room_for_the_fields_is_told_first(twoscale, data, tmp_path, monkeypatch):
    monkeypatch.setattr("twoscale.runtime.scratch._free", lambda place: 1000)
    monkeypatch.setattr(Dataset, "read", None)  # before any field is read
    encoder = ("--method", "two-scale", "--set", "predictor=encoder", "--out", tmp_path / "a")
    outcome = twoscale("fit", data, *encoder, "--memory", "2kB")
    refused(outcome, f"needs {size_text(Dataset(data).nbytes)} of disk", "more memory")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_fit_leaves_no_scratch_files(data, tmp_path, monkeypatch):
    def fail(*arguments, **options):
        assert (tmp_path / ".a.twoscale-work" / "scratch").is_dir()
        raise RuntimeError("no")

    monkeypatch.setattr("twoscale.surrogate.driver.train_members", fail)
    with pytest.raises(RuntimeError, match="no"):
        fit_run(Dataset(data), tmp_path / "a", method="fno", settings=TINY["fno"], memory=2000)
    assert list(tmp_path.iterdir()) == []


# Fine-tuning

AT_ONCE = {"epochs": 2, "warm_up": 0, "ramp": 1}


@pytest.fixture(scope="module")
def darcy_run(tmp_path_factory):
    """A run on 80 pairs of 16 x 16 Darcy fields: 164 kB, of which 72 pairs are trained on."""
    root = tmp_path_factory.mktemp("darcy")
    generate(Darcy(), root / "d.zarr", resolution=16, samples=80, seed=0)
    return fit_run(Dataset(root / "d.zarr"), root / "run", method="local", settings=TINY["local"])


@pytest.mark.parametrize("objective", ["A3", "A4"])
def test_tuning_from_disk_is_tuning_in_memory(darcy_run, tmp_path, monkeypatch, objective):
    plan = {"objective": objective, **AT_ONCE}
    loaded = finetune_run(darcy_run, tmp_path / "a", **plan).metrics
    monkeypatch.setattr(Dataset, "load_parts", None)  # nothing is loaded as a whole
    stored = finetune_run(darcy_run, tmp_path / "b", memory=1000, **plan).metrics
    for name in ("mre", "value_trace_error", "flux_trace_error", "residual_rms"):
        assert stored[name] == pytest.approx(loaded[name], rel=1e-4)


@pytest.mark.parametrize("plan", [{"objective": "A5"}, {"objective": "flux"}, {"space": "field"}])
def test_whole_fields_are_kept_once_in_a_scratch_file(darcy_run, tmp_path, monkeypatch, plan):
    plan = AT_ONCE | plan
    loaded = finetune_run(darcy_run, tmp_path / "a", **plan).metrics
    with monkeypatch.context() as patch:
        patch.setattr(Dataset, "load_parts", None)
        stored = finetune_run(darcy_run, tmp_path / "b", memory=1000, **plan).metrics
    assert stored["mre"] == pytest.approx(loaded["mre"], rel=1e-4)
    before = contents(tmp_path)
    monkeypatch.setattr("twoscale.runtime.scratch._free", lambda place: 1000)
    monkeypatch.setattr(Dataset, "read", None)  # told before any field is read
    with pytest.raises(TwoscaleError, match="of disk for what does not fit the memory"):
        finetune_run(darcy_run, tmp_path / "c", memory=1000, **plan)
    assert contents(tmp_path) == before


def test_the_command_takes_the_memory(done, darcy_run, tmp_path):
    few = ("--epochs", 2, "--warm-up", 0, "--memory", "1kB")
    done("finetune", darcy_run.path, *few, "--out", tmp_path / "a")
