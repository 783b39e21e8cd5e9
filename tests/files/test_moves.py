import os
from pathlib import Path

import pytest

from tests.files.folders import folder_with, names
from twoscale.files import moves
from twoscale.files.moves import flush, move_new, remove, replace


@pytest.fixture(params=["in one step", "in two"])
def way(request, monkeypatch):
    """With the system call that exchanges two names, and without."""
    if request.param == "in two":
        monkeypatch.setattr(moves, "_renameat2", lambda *arguments: False)


@pytest.mark.usefixtures("way")
def test_a_new_name_is_taken_and_an_old_one_is_not(tmp_path):
    new = folder_with(tmp_path / "new", "x")
    move_new(new, tmp_path / "place")
    assert names(tmp_path) == ["place"]
    (tmp_path / "file").write_text("keep")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    for other in ("file", "empty", "link"):
        with pytest.raises(FileExistsError):
            move_new(tmp_path / "place", tmp_path / other)
    assert names(tmp_path) == ["empty", "file", "link", "place"]
    assert (tmp_path / "file").read_text() == "keep"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("make", [Path.write_text, folder_with])
def test_the_old_one_is_left_aside(tmp_path, make):
    for name in ("old", "new"):
        make(tmp_path / name, name)
    replace(tmp_path / "new", tmp_path / "old", aside=tmp_path / "aside")
    assert names(tmp_path) == ["aside", "old"]
    for name, content in (("old", "new"), ("aside", "old")):
        path = tmp_path / name
        assert (path if make is Path.write_text else path / content).read_text() == content


@pytest.mark.usefixtures("way")
def test_a_failure_is_undone(tmp_path):
    folder_with(tmp_path / "place", "old")
    with pytest.raises(FileNotFoundError):
        replace(tmp_path / "nothing", tmp_path / "place", aside=tmp_path / "aside")
    assert names(tmp_path / "place") == ["old"]


def test_the_name_is_never_absent(tmp_path, monkeypatch):
    """Where the system can, the exchange is one call: before it the old one, after it the new."""
    if moves._system_call() is None:
        pytest.skip("this system has no renameat2")
    folder_with(tmp_path / "place", "old")
    folder_with(tmp_path / "new", "new")

    def crash(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(moves.Path, "rename", crash)
    with pytest.raises(KeyboardInterrupt):
        replace(tmp_path / "new", tmp_path / "place", aside=tmp_path / "aside")
    assert names(tmp_path / "place") == ["new"]


def test_removal_follows_no_link(tmp_path):
    folder_with(tmp_path / "real", "x")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    remove(tmp_path / "link")
    assert names(tmp_path) == ["real"]
    remove(tmp_path / "real")
    remove(tmp_path / "real")
    (tmp_path / "file").write_text("")
    remove(tmp_path / "file")
    assert names(tmp_path) == []


def test_everything_below_a_folder_is_flushed(tmp_path, monkeypatch):
    folder_with(tmp_path / "a", "file")
    folder_with(tmp_path / "a" / "b", "other")
    (tmp_path / "a" / "link").symlink_to("nowhere")
    flushed = []
    monkeypatch.setattr(
        os, "fsync", lambda number: flushed.append(os.readlink(f"/proc/self/fd/{number}"))
    )
    flush(tmp_path / "a")
    known = [path.removeprefix(f"{tmp_path}/") for path in flushed]
    assert sorted(known) == ["a", "a/b", "a/b/other", "a/file"]
