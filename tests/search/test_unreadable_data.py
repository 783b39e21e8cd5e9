"""Data that cannot be read any more end a search; they are not the fault of its candidates."""

from __future__ import annotations

import errno
import json

import pytest

from tests.cluster.tools import Here
from twoscale.data import Dataset, generate
from twoscale.data.places import UnreachableStorageError
from twoscale.data.shards import Damaged, StoredChunks
from twoscale.errors import UnreadableDataError
from twoscale.files.reading import unreadable
from twoscale.files.work_folder import CONTINUES
from twoscale.problems import Poisson
from twoscale.run import auto_run
from twoscale.search.journal import Journal

OUTAGE = UnreachableStorageError("s3://data/p.zarr cannot be read: it is away (5 tries)")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "p.zarr"
    generate(Poisson(), path, resolution=16, samples=100)
    return path


@pytest.fixture
def away(monkeypatch):
    """Errors that every reading of samples ends with, once two candidates were tried."""
    errors, gone = [], []
    note, read = Journal.note, StoredChunks.read

    def noted(journal, trials, running):
        note(journal, trials, running)
        assert all(trial.outcome for trial in trials)
        if len(trials) == 2:
            gone.extend(errors)

    def failing(chunks, *arguments, **options):
        if gone and errors:
            raise gone[0]
        return read(chunks, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "note", noted)
        patch.setattr(StoredChunks, "read", failing)
        yield errors


def search(data, out, workers=None):
    options = {"settings": {"predictor": "affine"}, "device": "cpu", "calibrates": False}
    # So little memory that fields are read on each pass.
    return auto_run(Dataset(data), out, budget=1e4, memory=60_000, workers=workers, **options)


def no_such_disk():
    error = OSError(errno.EIO, "Input/output error")
    found = unreadable("p.zarr/output/c/0", error)
    found.__cause__ = error
    return found


@pytest.mark.parametrize("workers", [None, Here()], ids=["here", "on workers"])
@pytest.mark.parametrize(
    ("error", "sentence", "goes_on"),
    [
        (OUTAGE, r"s3://data/p.zarr cannot be read: it is away \(5 tries\)", True),
        (Damaged(0, 4), "is damaged: samples 0 to 3 of '.*' cannot be read as they", False),
        (no_such_disk(), "p.zarr/output/c/0 cannot be read: input/output error", True),
    ],
    ids=["outage", "damage", "disk"],
)
def test_they_end_the_search(data, tmp_path, away, workers, error, sentence, goes_on):
    away.append(error)
    with pytest.raises(UnreadableDataError, match=sentence) as caught:
        search(data, tmp_path / "run", workers)
    assert (CONTINUES in getattr(caught.value, "__notes__", ())) == goes_on
    assert bool(list(tmp_path.glob(".run.*/checkpoints/search.json"))) == goes_on
    assert not (tmp_path / "run").exists()


def test_after_an_outage_the_same_command_goes_on(twoscale, without_pages, data, tmp_path, away):
    command = ["fit", data, "--budget", "1000s", "--set", "predictor=affine", "--device", "cpu"]
    command += ["--memory", "60 KB", "--out", tmp_path / "run"]
    away.append(OUTAGE)
    ended = twoscale(*command)
    assert ended.status == 2
    assert f"{OUTAGE}" in ended.err
    assert CONTINUES in ended.err
    (noted,) = tmp_path.glob(".run.*/checkpoints/search.json")
    tried = json.loads(noted.read_text())["trials"]
    assert [trial["failure"] for trial in tried] == [None, None]
    away.clear()
    assert twoscale(*command).status == 0
    trials = json.loads((tmp_path / "run" / "search.json").read_text())["trials"]
    assert len(trials) > 3
    assert [trial["error"] for trial in trials[:2]] == [one["outcome"]["error"] for one in tried]
    assert not any(trial["failure"] for trial in trials)
