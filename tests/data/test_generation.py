import json

import numpy as np
import pytest
import torch

from tests.cli.outcome import contents
from tests.data.tools import stop_at
from twoscale import problems
from twoscale.data import Dataset, description, generate, generation
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.problems import Darcy, Poisson


@pytest.fixture
def small_chunks(monkeypatch):
    """Several chunks per batch and per shard, and several batches, at test size."""
    monkeypatch.setattr(description, "_CHUNK_BYTES", 4 * 16 * 16 * 3)
    monkeypatch.setattr(description, "_SHARD_BYTES", 4 * 16 * 16 * 9)
    monkeypatch.setitem(generation._BATCH_VALUES, "cpu", 16 * 16 * 6)


@pytest.mark.parametrize("problem", [Poisson(), Darcy()], ids=lambda p: p.name)
def test_stored_fields_are_the_problems_own(tmp_path, small_chunks, problem):
    dataset = generate(problem, tmp_path / "d.zarr", resolution=16, samples=14, seed=5)
    inputs = problem.sample(Grid.square(16), range(14), seed=5)
    everything = range(14)
    assert torch.equal(dataset.load("input", everything), inputs.float()[:, None])
    torch.testing.assert_close(
        dataset.load("output", everything)[:, 0],
        problem.solve(inputs).float(),
        rtol=1e-6,
        atol=1e-9,
    )


def test_metadata_tells_how_the_data_came_about(tmp_path):
    dataset = generate(Darcy(), tmp_path / "d.zarr", resolution=16, samples=3, seed=7)
    metadata = json.loads((tmp_path / "d.zarr" / "zarr.json").read_text())["attributes"]
    assert metadata["problem"] == problems.describe_problem(Darcy())
    assert metadata["seed"] == 7
    space = {"height": 16, "width": 16, "periodic": [False, False], "channels": 1}
    side = space | {"parameters": 0, "names": None, "rank": 3}
    assert metadata["input"] == metadata["output"] == side
    assert metadata["distribution"]["high"] == 12.0
    assert "boundary" in metadata["boundary"]
    assert "conjugate gradients" in metadata["solver"]
    assert set(metadata["checksums"]) == {"input", "output"}
    assert json.loads((tmp_path / "d.zarr" / "zarr.json").read_text())["zarr_format"] == 3
    assert dataset.problem is not None


OPTIONS = {"resolution": 16, "samples": 17, "seed": 1}


def interrupt(tmp_path, samples):
    """Make a whole dataset and one that was interrupted; return the latter's work folder."""
    generate(Poisson(), tmp_path / "whole.zarr", **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        generate(Poisson(), tmp_path / "cut.zarr", **OPTIONS, progress=stop_at(samples))
    return tmp_path / ".cut.zarr.twoscale-work"


@pytest.mark.parametrize("stop_after", [6, 12])
def test_interrupted_generation_continues_to_the_same_bytes(
    tmp_path, small_chunks, stop_after, monkeypatch
):
    work = interrupt(tmp_path, stop_after)
    assert not (tmp_path / "cut.zarr").exists()
    solved, solve = [], Poisson.solve
    monkeypatch.setattr(
        Poisson, "solve", lambda self, inputs: solved.append(len(inputs)) or solve(self, inputs)
    )
    generate(Poisson(), tmp_path / "cut.zarr", **OPTIONS)
    assert sum(solved) == 17 - stop_after
    assert contents(tmp_path / "cut.zarr") == contents(tmp_path / "whole.zarr")
    assert not work.exists()


def _tear_the_log(work, shards):
    (work / "log.jsonl").write_text((work / "log.jsonl").read_text()[:-20])


def _empty_the_first(work, shards):
    shards[0].write_bytes(b"")


def _remove_the_second(work, shards):
    shards[1].unlink()


def _change_the_first(work, shards):
    content = bytearray(shards[0].read_bytes())
    content[len(content) // 2] ^= 1
    shards[0].write_bytes(content)


def _lengthen_both(work, shards):
    for shard in shards:
        shard.write_bytes(shard.read_bytes() + b"half a chunk")


@pytest.mark.parametrize(
    "lose",
    [_tear_the_log, _empty_the_first, _remove_the_second, _change_the_first, _lengthen_both],
)
def test_what_was_logged_but_is_lost_is_written_again(tmp_path, small_chunks, lose):
    """After a loss of power the log may know of chunks that never reached the disk."""
    work = interrupt(tmp_path, 12)
    shards = sorted(path for path in work.glob("content/input/c/**/*") if path.is_file())
    assert len(shards) == 2
    lose(work, shards)
    generate(Poisson(), tmp_path / "cut.zarr", **OPTIONS)
    assert contents(tmp_path / "cut.zarr") == contents(tmp_path / "whole.zarr")


def test_another_recipe_starts_anew(tmp_path, small_chunks):
    with pytest.raises(KeyboardInterrupt):
        generate(Poisson(), tmp_path / "d", **OPTIONS, progress=stop_at(6))
    dataset = generate(Poisson(), tmp_path / "d", resolution=16, samples=17, seed=2)
    expected = Poisson().sample(Grid.square(16), range(17), seed=2).float()
    assert torch.equal(dataset.load("input", range(17))[:, 0], expected)


def test_failure_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(self, inputs):
        raise TwoscaleError("no solution today")

    monkeypatch.setattr(Poisson, "solve", fail)
    with pytest.raises(TwoscaleError, match="no solution today"):
        generate(Poisson(), tmp_path / "d", resolution=16, samples=3)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resolution": 16, "samples": 0}, "at least one sample"),
        ({"resolution": 16, "samples": 3, "seed": -1}, "must not be negative"),
        ({"resolution": 2, "samples": 3}, "poisson needs at least 3 nodes per side"),
        ({"resolution": 10**7, "samples": 3}, "1 to 1000000 nodes per side"),
    ],
)
def test_bad_requests(tmp_path, options, message):
    with pytest.raises(TwoscaleError, match=message):
        generate(Poisson(), tmp_path / "d", **options)


def test_existing_data_is_kept_unless_told_otherwise(tmp_path):
    first = generate(Poisson(), tmp_path / "d", resolution=16, samples=3, seed=0)
    with pytest.raises(TwoscaleError, match="exists already"):
        generate(Poisson(), tmp_path / "d", resolution=16, samples=3, seed=1)
    assert Dataset(tmp_path / "d").identity == first.identity
    second = generate(Poisson(), tmp_path / "d", resolution=16, samples=3, seed=1, overwrite=True)
    assert second.identity != first.identity
    assert np.isfinite(second.read("output", 0, 3)).all()


class Flow(Poisson):
    """Two input and three output channels, around a torus."""

    periodic = (True, True)
    channels = (2, 3)

    def sample(self, grid, indices, *, seed, device="cpu"):
        assert grid.periodic == self.periodic
        plane = Grid(grid.shape)
        fields = Poisson().sample(plane, indices, seed=seed, device=device)
        return torch.stack([fields, -fields], dim=1)

    def solve(self, inputs):
        return inputs[:, [0, 1, 0]] ** 2


@pytest.mark.usefixtures("small_chunks")
def test_problems_may_have_channels_and_wrap(tmp_path):
    dataset = generate(Flow(), tmp_path / "d", resolution=16, samples=7)
    grid = Grid.square(16, periodic=True)
    assert dataset.input_space == Space(grid, 2)
    assert dataset.output_space == Space(grid, 3)
    inputs = Flow().sample(grid, range(7), seed=0)
    assert torch.equal(dataset.load("input", range(7)), inputs.float())
    assert torch.equal(dataset.load("output", range(7)), Flow().solve(inputs).float())
    assert dataset.chunk == 1  # three fields of one channel share a chunk
    assert dataset.read("output", 0, 2).shape == (2, 3, 16, 16)


def test_fields_other_than_a_problem_promises_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(Flow, "channels", (2, 2))
    words = r"outputs of poisson should have shape \(samples, 2, 16, 16\), got \(3, 3, 16, 16\)"
    with pytest.raises(TwoscaleError, match=words):
        generate(Flow(), tmp_path / "d", resolution=16, samples=3)
    assert list(tmp_path.iterdir()) == []
