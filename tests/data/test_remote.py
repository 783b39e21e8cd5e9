"""Datasets on fsspec's file system in memory: how they appear, go on, and fail."""

import numpy as np
import pytest
import torch

from tests.cli.outcome import contents
from tests.data.tools import stop_at
from twoscale.data import (
    Dataset,
    check_dataset,
    description,
    generate,
    generation,
    import_fields,
    open_data,
)
from twoscale.data import places as requests
from twoscale.data.places import UnreachableStorageError
from twoscale.data.remote_target import RemoteTarget
from twoscale.errors import TwoscaleError
from twoscale.fields.source import gather
from twoscale.files.work_folder import CONTINUES
from twoscale.problems import Poisson

fsspec = pytest.importorskip("fsspec", reason="needs the package fsspec")

PLACE = "memory://data/p.zarr"
OPTIONS = {"resolution": 16, "samples": 30, "seed": 1}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of four fields, shards of twelve, and twelve fields at a time."""
    monkeypatch.setattr(description, "_CHUNK_BYTES", 4 * 4 * 16 * 16)
    monkeypatch.setattr(description, "_SHARD_BYTES", 12 * 4 * 16 * 16)
    monkeypatch.setitem(generation._BATCH_VALUES, "cpu", 12 * 16 * 16)


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """The seconds that were waited for between tries; nobody waits."""
    found = []
    monkeypatch.setattr(requests.time, "sleep", found.append)
    return found


@pytest.fixture
def memory():
    """An empty file system in memory."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    yield system
    system.store.clear()


@pytest.fixture
def failing(memory, monkeypatch):
    """Let requests fail: a list of (method, part of the name, error), each for one request."""
    plan = []

    def wrapped(name):
        usual = getattr(type(memory), name)

        def method(self, path, *rest, **options):
            for one in plan:
                if one[0] == name and one[1] in str(path):
                    plan.remove(one)
                    raise one[2]
            return usual(self, path, *rest, **options)

        return method

    for name in ("cat_file", "pipe_file", "info", "find", "rm"):
        monkeypatch.setattr(type(memory), name, wrapped(name))
    return plan


def objects(memory):
    """Return the objects of the dataset by name, and whether there are others."""
    held = {path: memory.cat_file(path) for path in memory.find("")}
    own = {path.partition("p.zarr/")[2]: one for path, one in held.items() if "/p.zarr/" in path}
    return own, len(own) < len(held)


def test_a_remote_dataset_is_that_on_disk_byte_by_byte(memory, tmp_path):
    here = generate(Poisson(), tmp_path / "p.zarr", **OPTIONS)
    there = generate(Poisson(), PLACE, **OPTIONS)
    assert objects(memory) == (contents(tmp_path / "p.zarr"), False)
    assert there.identity == here.identity
    for name in ("input", "output"):
        assert torch.equal(there.load(name, [3, 29, 12]), here.load(name, [3, 29, 12]))
    part = there.fields("output", [2, 13]).window(slice(3, 9), slice(4, 6))
    assert torch.equal(gather(part), here.load("output", [2, 13])[:, :, 3:9, 4:6])
    assert all(finding.level != "error" for finding in check_dataset(there))


@pytest.mark.parametrize("stop_after", [12, 24])
def test_an_interrupted_one_goes_on_to_the_same_bytes(memory, tmp_path, monkeypatch, stop_after):
    generate(Poisson(), tmp_path / "p.zarr", **OPTIONS)
    with pytest.raises(KeyboardInterrupt) as caught:
        generate(Poisson(), PLACE, **OPTIONS, progress=stop_at(stop_after))
    assert CONTINUES in caught.value.__notes__
    with pytest.raises(TwoscaleError, match=f"^{PLACE} is not complete: run the command"):
        Dataset(PLACE)
    solved = []
    usual = Poisson.solve
    monkeypatch.setattr(
        Poisson, "solve", lambda self, inputs: solved.append(len(inputs)) or usual(self, inputs)
    )
    generate(Poisson(), PLACE, **OPTIONS)
    assert sum(solved) == 30 - stop_after
    assert objects(memory) == (contents(tmp_path / "p.zarr"), False)


@pytest.mark.parametrize(
    ("lost", "goes_on"),
    [
        ("p.zarr/zarr.json", False),
        ("input/zarr.json", True),
        ("output/zarr.json", True),
        ("input/c/0/0/0", True),
        ("output/c/0/0/0", True),
        ("shard-0.json", True),
        ("request.json", False),
    ],
)
def test_an_unfinished_one_that_loses_an_object_is_never_read(memory, tmp_path, lost, goes_on):
    generate(Poisson(), tmp_path / "p.zarr", **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        generate(Poisson(), PLACE, **OPTIONS, progress=stop_at(12))
    assert len(memory.find("")) == 7
    memory.rm(next(one for one in memory.find("") if one.endswith(lost)))
    with pytest.raises(TwoscaleError, match=r"is not complete|is damaged: zarr\.json is missing"):
        open_data(PLACE)
    if goes_on:
        generate(Poisson(), PLACE, **OPTIONS)
        assert objects(memory) == (contents(tmp_path / "p.zarr"), False)
    else:
        with pytest.raises(TwoscaleError, match=r"exists already|holds an unfinished dataset"):
            generate(Poisson(), PLACE, **OPTIONS)


def test_an_unfinished_one_of_another_request_is_kept(memory):
    with pytest.raises(KeyboardInterrupt):
        generate(Poisson(), PLACE, **OPTIONS, progress=stop_at(12))
    before = objects(memory)
    other = OPTIONS | {"seed": 2}
    with pytest.raises(TwoscaleError, match="holds an unfinished dataset of another command"):
        generate(Poisson(), PLACE, **other)
    assert objects(memory) == before
    dataset = generate(Poisson(), PLACE, **other, overwrite=True)
    assert dataset.metadata["seed"] == 2
    assert not objects(memory)[1]


def test_a_smaller_dataset_replaces_all_objects(memory):
    generate(Poisson(), PLACE, **OPTIONS)
    smaller = OPTIONS | {"samples": 5}
    assert generate(Poisson(), PLACE, **smaller, overwrite=True).samples == 5
    assert len(objects(memory)[0]) == 5  # three descriptions, a shard of each side


@pytest.mark.parametrize("name", ["notes.txt", "zarr.json", "input/mine.txt"])
def test_only_datasets_are_replaced(memory, name):
    if name.startswith("input"):
        generate(Poisson(), PLACE, **OPTIONS)
    memory.pipe_file(f"{PLACE}/{name}", b'{"attributes": {}}')
    before = objects(memory)
    for overwrite, words in ((False, "exists already"), (True, "is something else")):
        with pytest.raises(TwoscaleError, match=words):
            generate(Poisson(), PLACE, **OPTIONS, overwrite=overwrite)
    assert objects(memory) == before


def test_imports_appear_or_leave_nothing(memory, tmp_path):
    fields = np.random.default_rng(0).standard_normal((30, 16, 16)).astype(np.float32)
    np.savez(tmp_path / "f.npz", a=fields, u=2 * fields)
    with pytest.raises(KeyboardInterrupt):
        import_fields(tmp_path / "f.npz", PLACE, progress=stop_at(24))
    assert memory.find("") == []
    dataset = import_fields(tmp_path / "f.npz", PLACE)
    assert np.array_equal(dataset.read("output", 0, 30), 2 * fields)
    assert not objects(memory)[1]


def test_the_description_of_the_whole_comes_last(memory, monkeypatch):
    written = []
    usual = type(memory).pipe_file

    def noted(self, path, content, *rest, **options):
        written.append((path.removeprefix(PLACE), b'"complete": true' in content))
        return usual(self, path, content, *rest, **options)

    monkeypatch.setattr(type(memory), "pipe_file", noted)
    generate(Poisson(), PLACE, **OPTIONS)
    assert next(path for path, _ in written if path.startswith("/")) == "/zarr.json"
    assert written[-1] == ("/zarr.json", True)
    assert [path for path, whole in written if whole] == ["/zarr.json"]


def test_a_finished_dataset_of_a_later_command_is_left_alone(memory, tmp_path):
    """The earlier one finds before its next shard that its note is gone."""
    generate(Poisson(), tmp_path / "p.zarr", **OPTIONS | {"seed": 2})

    def replace(stage, done, total, remark):
        if done == 12:
            generate(Poisson(), PLACE, **OPTIONS | {"seed": 2}, overwrite=True)

    with pytest.raises(
        TwoscaleError, match=f"^another command has taken the place {PLACE}: wait for it, or choose"
    ):
        generate(Poisson(), PLACE, **OPTIONS, progress=replace)
    assert objects(memory) == (contents(tmp_path / "p.zarr"), False)


def test_late_logs_of_another_request_are_not_taken_up(memory, tmp_path):
    """An earlier command may still write a shard and its log when a later one has begun."""
    generate(Poisson(), tmp_path / "p.zarr", **OPTIONS)
    with pytest.raises(KeyboardInterrupt):
        generate(Poisson(), PLACE, **OPTIONS | {"seed": 2}, progress=stop_at(24))
    late = {path: memory.cat_file(path) for path in memory.find("") if "shard-1" in path}
    late |= {path: memory.cat_file(path) for path in memory.find("") if "/c/1/" in path}
    with pytest.raises(KeyboardInterrupt):
        generate(Poisson(), PLACE, **OPTIONS, overwrite=True, progress=stop_at(12))
    for path, content in late.items():
        memory.pipe_file(path, content)
    generate(Poisson(), PLACE, **OPTIONS)
    assert objects(memory) == (contents(tmp_path / "p.zarr"), False)


FOREIGN_GROUP = b'{"zarr_format": 3, "node_type": "group", "attributes": {"mine": 1}}'


@pytest.fixture
def killed(memory, monkeypatch):
    """What a command leaves that was killed before its first shard: it could not clean up."""

    def kill(self, inputs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Poisson, "solve", kill)
        patch.setattr(RemoteTarget, "remove", lambda self: None)
        with pytest.raises(KeyboardInterrupt):
            generate(Poisson(), PLACE, **OPTIONS)
    assert any(path.endswith("request.json") for path in memory.find(""))


@pytest.mark.parametrize(
    ("foreign", "words"),
    [
        ({"zarr.json": FOREIGN_GROUP, "precious/c/0": b"1"}, "exists already"),
        ({"zarr.json": FOREIGN_GROUP}, "exists already"),
        ({"notes.txt": b"1"}, "is something else, or holds other files too"),
    ],
)
def test_a_killed_command_gives_no_right_to_foreign_objects(memory, killed, foreign, words):
    for name, content in foreign.items():
        memory.pipe_file(f"{PLACE}/{name}", content)
    before = objects(memory)
    with pytest.raises(TwoscaleError, match=words):
        generate(Poisson(), PLACE, **OPTIONS)
    with pytest.raises(TwoscaleError, match="is something else"):
        generate(Poisson(), PLACE, **OPTIONS, overwrite=True)
    assert objects(memory) == before


def test_a_killed_command_can_be_run_again(memory, killed):
    generate(Poisson(), PLACE, **OPTIONS)
    assert not objects(memory)[1]


def test_a_failed_command_removes_only_its_own_objects(memory):
    def add_notes(stage, done, total, remark):
        if done == 12:
            memory.pipe_file(f"{PLACE}/notes.txt", b"mine")
            raise TwoscaleError("no more today")

    with pytest.raises(TwoscaleError, match="no more today"):
        generate(Poisson(), PLACE, **OPTIONS, progress=add_notes)
    assert memory.find("") == ["/data/p.zarr/notes.txt"]


# Failures


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("pipe_file", ConnectionRefusedError(111, "refused")),
        ("info", TimeoutError()),
        ("cat_file", OSError()),
        ("find", TimeoutError()),
    ],
)
def test_a_few_failures_change_nothing(memory, failing, waits, tmp_path, error, method):
    here = generate(Poisson(), tmp_path / "p.zarr", **OPTIONS)
    failing += 4 * [(method, "", error)]
    there = generate(Poisson(), PLACE, **OPTIONS)
    assert torch.equal(there.load("output", range(30)), here.load("output", range(30)))
    assert failing == []
    assert waits == [0.5, 1.0, 2.0, 4.0]
    assert objects(memory) == (contents(tmp_path / "p.zarr"), False)


def test_failures_without_end_are_told_once(memory, failing):
    generate(Poisson(), PLACE, **OPTIONS)
    failing += 5 * [("info", "zarr.json", ConnectionRefusedError(111, "Connection refused"))]
    with pytest.raises(
        UnreachableStorageError, match=r"^memory://data/p.zarr/zarr.json cannot be read: \[Errno"
    ):
        Dataset(PLACE)
    dataset = Dataset(PLACE)
    failing += 5 * [("cat_file", "output/c/1", TimeoutError())]
    with pytest.raises(
        UnreachableStorageError, match=r"c/1/0/0 cannot be read: no answer .* \(5 tries\)$"
    ):
        dataset.load("output", range(30))
    failing += 5 * [("cat_file", "output/c/1", TimeoutError())]
    with pytest.raises(UnreachableStorageError, match="no answer"):  # which is no damage
        check_dataset(Dataset(PLACE))


def test_a_failed_writer_goes_on_when_the_service_is_back(memory, failing, tmp_path):
    generate(Poisson(), tmp_path / "p.zarr", **OPTIONS)
    failing += 5 * [("pipe_file", "output/c/1", ConnectionResetError(104, "reset"))]
    with pytest.raises(UnreachableStorageError, match="c/1/0/0 cannot be written") as caught:
        generate(Poisson(), PLACE, **OPTIONS)
    assert CONTINUES in caught.value.__notes__
    with pytest.raises(TwoscaleError, match="is not complete"):
        Dataset(PLACE)
    generate(Poisson(), PLACE, **OPTIONS)
    assert objects(memory) == (contents(tmp_path / "p.zarr"), False)


def test_a_complete_dataset_is_no_failure_whatever_is_left_beside_it(memory, failing, tmp_path):
    generate(Poisson(), tmp_path / "p.zarr", **OPTIONS)
    failing += 5 * [("rm", "twoscale-work", ConnectionResetError(104, "reset"))]
    assert generate(Poisson(), PLACE, **OPTIONS).samples == 30
    assert failing == []
    assert objects(memory) == (contents(tmp_path / "p.zarr"), True)
    generate(Poisson(), PLACE, **OPTIONS, overwrite=True)
    assert objects(memory) == (contents(tmp_path / "p.zarr"), False)


def test_short_answers_are_asked_for_again(memory, monkeypatch):
    dataset = generate(Poisson(), PLACE, **OPTIONS)
    whole = dataset.read("output", 0, 30)
    usual, cuts = type(memory).cat_file, [5, 0, 1]

    def cut(self, path, **options):
        content = usual(self, path, **options)
        return content[: cuts.pop()] if cuts else content

    monkeypatch.setattr(type(memory), "cat_file", cut)
    assert np.array_equal(Dataset(PLACE).read("output", 0, 30), whole)
    assert cuts == []


def test_an_account_that_may_not_list_reads_what_is_there(memory, failing):
    generate(Poisson(), PLACE, **OPTIONS)
    memory.rm(next(one for one in memory.find("") if one.endswith("output/c/1/0/0")))
    failing.append(("find", "", PermissionError("Forbidden")))
    dataset = open_data(PLACE)
    assert failing == []
    assert len(dataset.read("output", 0, 12)) == 12
    with pytest.raises(TwoscaleError, match="is damaged: samples 12 to 23 of 'output'"):
        dataset.read("output", 12, 24)
    with pytest.raises(TwoscaleError, match="is damaged: output/c/1/0/0 is missing; copy all"):
        open_data(PLACE)


class NoCredentialsError(Exception):
    """Stands for the error of that name of botocore."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (NoCredentialsError("Unable to locate"), "cannot be read: no credentials are known; set"),
        (PermissionError("Forbidden"), "cannot be read: access is denied; check the credentials"),
        (NotImplementedError(), "cannot be read: this kind of storage does not allow it"),
    ],
)
def test_what_another_try_cannot_mend_is_tried_once(memory, failing, waits, error, words):
    failing.append(("info", "zarr.json", error))
    with pytest.raises(UnreachableStorageError, match=words):
        Dataset(PLACE)
    assert waits == []


def test_nothing_there(memory):
    with pytest.raises(TwoscaleError, match=f"^{PLACE} does not exist: make it with"):
        Dataset(PLACE)
    memory.pipe_file(f"{PLACE}/input/zarr.json", b"{}")
    with pytest.raises(TwoscaleError, match=r"p.zarr is damaged: zarr.json is missing; copy"):
        Dataset(PLACE)
    memory.pipe_file(f"{PLACE}/zarr.json", b" " * (64 * 10**6 + 1))
    with pytest.raises(TwoscaleError, match="is too large: at most"):
        Dataset(PLACE)
