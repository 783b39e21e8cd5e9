import errno
import os
from pathlib import Path

import pytest

from twoscale.errors import TwoscaleError
from twoscale.files import (
    Parents,
    beside,
    complete,
    put,
    remove,
    target,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def folder_with(path, name):
    path.mkdir()
    (path / name).write_text(name)
    return path


# Where a result goes


def test_a_free_place_is_taken_as_it_is(tmp_path):
    assert target(tmp_path / "x", overwrite=False, ours=lambda path: False) == tmp_path / "x"
    assert names(tmp_path) == []


def test_what_is_there_is_replaced_only_if_asked_and_ours(tmp_path):
    path = folder_with(tmp_path / "x", "old")
    with pytest.raises(TwoscaleError, match="x exists already: choose another --out or pass --o"):
        target(path, overwrite=False, ours=lambda path: True)
    with pytest.raises(TwoscaleError, match="is something else and is not replaced"):
        target(path, overwrite=True, ours=lambda path: False)
    assert target(path, overwrite=True, ours=lambda path: True) == path
    assert names(path) == ["old"]


def test_a_link_stands_for_what_it_leads_to(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert target(tmp_path / "link", overwrite=False, ours=Path.is_file) == tmp_path / "real"
    (tmp_path / "real").mkdir()
    found = target(tmp_path / "link" / "x", overwrite=False, ours=Path.is_file)
    assert found == tmp_path / "real" / "x"


# Complete or not at all


def test_it_appears_when_all_is_written(tmp_path):
    path = tmp_path / "run"
    with complete(path) as prepared:
        assert prepared == beside(path)
        prepared.mkdir()
        (prepared / "file").write_text("x")
        assert not path.exists()
    assert (path / "file").read_text() == "x"
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_of_what_failed(tmp_path, error):
    def attempt():
        with complete(tmp_path / "a" / "b" / "run") as prepared:
            folder_with(prepared, "file")
            raise error

    with pytest.raises(error):
        attempt()
    assert names(tmp_path) == []


def test_overwriting_replaces_the_whole_folder(tmp_path):
    path = folder_with(tmp_path / "run", "old")
    with complete(path) as prepared:
        folder_with(prepared, "new")
    assert names(path) == ["new"]
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failed_overwrite_keeps_the_old_folder(tmp_path, error):
    path = folder_with(tmp_path / "run", "old")
    with pytest.raises(error), complete(path):
        raise error
    assert names(path) == ["old"]
    assert names(tmp_path) == ["run"]


def test_a_file_is_replaced_like_a_folder(tmp_path):
    path = tmp_path / "p.npy"
    path.write_text("old")
    with complete(path) as prepared:
        prepared.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["p.npy"]


def test_remains_of_an_interrupted_attempt_are_cleared(tmp_path):
    folder_with(tmp_path / "run.partial", "half")
    folder_with(tmp_path / "run.old", "older")
    with complete(tmp_path / "run") as prepared:
        assert not prepared.exists()
        folder_with(prepared, "new")
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["new"]


@pytest.mark.parametrize("moment", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.EIO, "broken")])
def test_an_interrupt_while_replacing_keeps_the_old(tmp_path, monkeypatch, moment, error):
    path = folder_with(tmp_path / "run", "old")
    calls = []

    def rename(source, destination):
        calls.append(source)
        if len(calls) == moment:
            raise error
        os.rename(source, destination)

    monkeypatch.setattr(Path, "rename", rename)

    def attempt():
        with complete(path) as prepared:
            folder_with(prepared, "new")

    with pytest.raises((KeyboardInterrupt, TwoscaleError)):
        attempt()
    assert names(tmp_path) == ["run"]
    assert names(path) == ["old"]


def test_parents_are_made_and_only_the_made_ones_removed(tmp_path):
    (tmp_path / "a").mkdir()
    place = tmp_path / "a" / "b" / "c" / "run"
    parents = Parents(place)
    assert place.parent.is_dir()
    parents.remove()
    assert names(tmp_path) == ["a"]
    assert names(tmp_path / "a") == []


def test_parents_that_hold_something_stay(tmp_path):
    place = tmp_path / "b" / "c" / "run"
    parents = Parents(place)
    (tmp_path / "b" / "other").write_text("")
    parents.remove()
    assert names(tmp_path / "b") == ["other"]


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(TwoscaleError, match=r"cannot write .*run: "):
        complete(tmp_path / "file" / "run").__enter__()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "no space left"), OSError("no space left")]
)
def test_a_failure_of_the_system_is_told_with_its_reason(tmp_path, error):
    with (
        pytest.raises(TwoscaleError, match=r"cannot write .*x: no space left"),
        complete(tmp_path / "x"),
    ):
        raise error
    assert names(tmp_path) == []


def test_put_and_remove(tmp_path):
    put(folder_with(tmp_path / "new", "file"), tmp_path / "place")
    assert names(tmp_path) == ["place"]
    remove(tmp_path / "place")
    remove(tmp_path / "place")
    (tmp_path / "file").write_text("")
    remove(tmp_path / "file")
    assert names(tmp_path) == []
