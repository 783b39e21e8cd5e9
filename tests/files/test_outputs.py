import errno
import os
from pathlib import Path

import pytest

from tests.files.folders import folder_with, names
from twoscale.errors import TwoscaleError
from twoscale.files import atomic_output, check_target, claimed, moves
from twoscale.files.outputs import Output, atomic_files


def attempt(path, error=None, *, before=lambda prepared: None, **options):
    """Write a folder, and fail if an error is given."""
    with atomic_output(path, **options) as prepared:
        folder_with(prepared, "new")
        before(prepared)
        if error:
            raise error


# Where a result goes


@pytest.mark.parametrize(("overwrite", "words"), [(False, "overwrite"), (True, "something else")])
def test_what_is_there_is_replaced_only_if_asked_and_ours(tmp_path, overwrite, words):
    path = folder_with(tmp_path / "x", "old")
    with pytest.raises(TwoscaleError, match=words):
        check_target(path, overwrite=overwrite, may_replace=lambda path: not overwrite)
    assert check_target(path, overwrite=True, may_replace=lambda path: True) == path
    assert names(path) == ["old"]


def test_a_link_stands_for_what_it_leads_to(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert check_target(tmp_path / "link", overwrite=False) == tmp_path / "real"
    (tmp_path / "real").mkdir()
    assert check_target(tmp_path / "link" / "x", overwrite=False) == tmp_path / "real" / "x"


# Complete or not at all


@pytest.mark.parametrize("name", ["run.old", "run.partial", ".run.partial", "run.bak"])
def test_it_appears_when_all_is_written_and_neighbours_stay(tmp_path, name):
    """Names that temporary files often have: a user's backup was lost once."""
    folder_with(tmp_path / name, "mine")
    path = tmp_path / "run"
    attempt(path, before=lambda prepared: path.exists() and pytest.fail("it is there too early"))
    assert names(path) == ["new"]
    assert names(tmp_path / name) == ["mine"]
    assert names(tmp_path) == sorted([name, "run"])


def test_a_file_is_replaced_like_a_folder(tmp_path):
    path = tmp_path / "p.npy"
    path.write_text("old")
    with atomic_output(path, overwrite=True) as prepared:
        prepared.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names(tmp_path) == ["p.npy"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_of_what_failed_but_parents_that_hold_something(tmp_path, error):
    with pytest.raises(error):
        attempt(tmp_path / "a" / "b" / "run", error)
    assert names(tmp_path) == []
    other = tmp_path / "a" / "other"
    with pytest.raises(error):
        attempt(tmp_path / "a" / "b" / "run", error, before=lambda prepared: other.touch())
    assert names(tmp_path / "a") == ["other"]


def test_remains_of_a_killed_attempt_are_cleared(tmp_path):
    with claimed(tmp_path / "run") as output:
        folder_with(output.content, "half")
        output.work.release()
    assert names(tmp_path) == [".run.twoscale-work"]
    with atomic_output(tmp_path / "run") as prepared:
        assert not prepared.exists()
        folder_with(prepared, "new")
    assert names(tmp_path) == ["run"]
    assert names(tmp_path / "run") == ["new"]


def test_what_a_kill_moved_aside_comes_back(tmp_path):
    """On systems without an exchange in one step, between its two steps."""
    work = tmp_path / ".run.twoscale-work"
    work.mkdir()
    (work / "owner.json").write_text('{"format": "twoscale-work"}')
    folder_with(work / "replaced", "old")
    with pytest.raises(TwoscaleError, match="exists already"), atomic_output(tmp_path / "run"):
        pass
    assert names(tmp_path / "run") == ["old"]


@pytest.mark.parametrize("moment", [1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.EIO, "broken")])
def test_an_interrupt_while_replacing_keeps_the_old(tmp_path, monkeypatch, moment, error):
    monkeypatch.setattr(moves, "_renameat2", lambda *arguments: False)
    path = folder_with(tmp_path / "run", "old")
    calls = []

    def rename(source, destination):
        calls.append(source)
        if len(calls) == moment:
            raise error
        os.rename(source, destination)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises((KeyboardInterrupt, TwoscaleError)):
        attempt(path, overwrite=True, may_replace=Path.is_dir)
    assert names(tmp_path) == ["run"]
    assert names(path) == ["old"]


def test_what_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "x"
    with pytest.raises(TwoscaleError, match="exists"):
        attempt(path, before=lambda prepared: path.write_text("keep"))
    assert path.read_text() == "keep"
    assert names(tmp_path) == ["x"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (OSError(errno.ENOSPC, "no space"), TwoscaleError),
        (RuntimeError("the device failed"), RuntimeError),
        (TwoscaleError("what was given is wrong"), TwoscaleError),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_interruption_keeps_what_can_go_on(tmp_path, error, told):
    def interrupted():
        with claimed(tmp_path / "x") as output:
            output.work.checkpoints.mkdir()
            (output.work.checkpoints / "state").write_text("s")
            raise error

    with pytest.raises(told) as found:
        interrupted()
    if isinstance(error, TwoscaleError):  # the same would happen again
        assert names(tmp_path) == []
        assert not hasattr(found.value, "__notes__")
    else:
        assert "go on" in found.value.__notes__[0]
        assert names(tmp_path / ".x.twoscale-work" / "checkpoints") == ["state"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "no space"), OSError("no space")])
def test_a_failure_of_the_system_is_told_with_its_reason(tmp_path, error):
    with pytest.raises(TwoscaleError, match="x: no space"):
        attempt(tmp_path / "x", error)
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(TwoscaleError, match=r"cannot write .*run: "):
        attempt(tmp_path / "file" / "run")
    assert (tmp_path / "file").read_text() == "x"


# Several files


def write_both(folder, **options):
    with atomic_files(folder / "a", folder / "b", **options) as prepared:
        for path in prepared:
            path.write_text("new")
        assert not any((folder / name).exists() and not options for name in "ab")


def test_several_files_are_replaced_together_and_only_if_asked(tmp_path):
    (tmp_path / "b").write_text("old")
    with pytest.raises(TwoscaleError, match="b exists already"):
        write_both(tmp_path)
    assert names(tmp_path) == ["b"]
    write_both(tmp_path, overwrite=True)
    assert [(tmp_path / name).read_text() for name in names(tmp_path)] == ["new", "new"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.EIO, "broken")])
@pytest.mark.parametrize("before", ["", "a", "ab"])
def test_none_of_several_files_changes_if_the_last_fails(tmp_path, monkeypatch, before, error):
    for name in before:
        (tmp_path / name).write_text("old")
    commit = Output.commit

    def failing(output):
        if output.place.name == "b":
            raise error
        commit(output)

    monkeypatch.setattr(Output, "commit", failing)
    with pytest.raises((KeyboardInterrupt, TwoscaleError)):
        write_both(tmp_path, overwrite=True)
    assert names(tmp_path) == sorted(before)
    assert all((tmp_path / name).read_text() == "old" for name in before)
