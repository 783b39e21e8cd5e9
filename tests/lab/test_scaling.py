"""Workers share the benchmark of growth, and no other."""

import pytest
import torch

from twoscale.errors import TwoscaleError
from twoscale_lab.bench import Setup, run_benchmarks, scaling


def setup_with(workers):
    return Setup(torch.device("cpu"), "small", workers=workers)


def test_each_stage_is_compared_with_this_process(workers, tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    found = list(run_benchmarks(["scaling"], setup_with(workers)))
    names = [f"scaling {one} 32x32, 2 workers" for one in ("generate", "pca", "encode", "evaluate")]
    assert [one.name for one in found] == names
    for one in found:
        assert one.peer.startswith("this process alone, ")
        assert one.details["seconds"].keys() == one.details["peer_seconds"].keys() == {"16", "32"}
        assert one.details["workers"] == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("scale", [0, 1])
def test_the_coarse_grids_have_fewer_nodes_than_there_are_training_samples(scale):
    assert scaling._SHARED_COARSE[scale] ** 2 < 0.8 * scaling._SHARED_SAMPLES[scale]
    assert scaling._COARSE[scale] ** 2 < 0.8 * scaling._SAMPLES[scale]


@pytest.mark.parametrize("names", [[], ["pca"], ["scaling", "pca"]])
def test_other_benchmarks_have_no_workers(workers, names):
    with pytest.raises(TwoscaleError, match="twoscale bench scaling"):
        list(run_benchmarks(names, setup_with(workers)))
