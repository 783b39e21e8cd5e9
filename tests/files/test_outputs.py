import errno
import os
from pathlib import Path

import pytest

from twoscale.errors import TwoscaleError
from twoscale.files import atomic_output, check_target, claimed, moves
from twoscale.files.outputs import Output, atomic_files


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def folder_with(path, name):
    path.mkdir()
    (path / name).write_text(name)
    return path


# Where a result goes


def test_what_is_there_is_replaced_only_if_asked_and_ours(tmp_path):
    path = folder_with(tmp_path / "x", "old")
    with pytest.raises(TwoscaleError, match=r"x exists already.*overwrite"):
        check_target(path, overwrite=False, may_replace=lambda path: True)
    with pytest.raises(TwoscaleError, match="is something else, or holds other files too"):
        check_target(path, overwrite=True, may_replace=lambda path: False)
    assert check_target(path, overwrite=True, may_replace=lambda path: True) == path
    assert names(path) == ["old"]


def test_a_link_stands_for_what_it_leads_to(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert check_target(tmp_path / "link", overwrite=False) == tmp_path / "real"
    (tmp_path / "real").mkdir()
    found = check_target(tmp_path / "link" / "x", overwrite=False)
    assert found == tmp_path / "real" / "x"


# Complete or not at all


def test_it_appears_when_all_is_written(tmp_path):
    path = tmp_path / "run"
    with atomic_output(path) as prepared:
        prepared.mkdir()
        (prepared / "file").write_text("x")
        assert not path.exists()
    assert (path / "file").read_text() == "x"
    assert names(tmp_path) == ["run"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_of_what_failed(tmp_path, error):
    def attempt():
        with atomic_output(tmp_path / "a" / "b" / "run") as prepared:
            folder_with(prepared, "file")
            raise error

    with pytest.raises(error):
        attempt()
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["run.old", "run.partial", ".run.partial", "run.bak"])
def test_neighbours_stay(tmp_path, name):
    """Names that temporary files often have: a user's backup was lost once."""
    folder_with(tmp_path / name, "mine")
    with atomic_output(tmp_path / "run") as prepared:
        folder_with(prepared, "new")
    assert names(tmp_path / name) == ["mine"]
    assert names(tmp_path) == sorted([name, "run"])


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

    def attempt():
        with atomic_output(path, overwrite=True, may_replace=Path.is_dir) as prepared:
            folder_with(prepared, "new")

    with pytest.raises((KeyboardInterrupt, TwoscaleError)):
        attempt()
    assert names(tmp_path) == ["run"]
    assert names(path) == ["old"]


def test_what_appears_meanwhile_is_not_replaced(tmp_path):
    def attempt():
        with atomic_output(tmp_path / "x") as prepared:
            prepared.write_text("new")
            (tmp_path / "x").write_text("keep")

    with pytest.raises(TwoscaleError, match="exists"):
        attempt()
    assert (tmp_path / "x").read_text() == "keep"
    assert names(tmp_path) == ["x"]


def test_an_interruption_keeps_what_can_go_on(tmp_path):
    def attempt(error):
        with claimed(tmp_path / "x") as output:
            output.work.checkpoints.mkdir(exist_ok=True)
            (output.work.checkpoints / "state").write_text("s")
            raise error

    with pytest.raises(KeyboardInterrupt) as found:
        attempt(KeyboardInterrupt())
    assert found.value.__notes__ == ["run the same command again to go on where it stopped"]
    assert names(tmp_path / ".x.twoscale-work" / "checkpoints") == ["state"]
    with pytest.raises(TwoscaleError, match="no space") as full:
        attempt(OSError(errno.ENOSPC, "no space"))
    assert full.value.__notes__
    assert names(tmp_path) == [".x.twoscale-work"]
    with pytest.raises(RuntimeError) as unexpected:
        attempt(RuntimeError("the device failed"))
    assert unexpected.value.__notes__
    assert names(tmp_path) == [".x.twoscale-work"]
    with pytest.raises(TwoscaleError):
        attempt(TwoscaleError("what was given is wrong"))
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with (
        pytest.raises(TwoscaleError, match=r"cannot write .*run: "),
        atomic_output(tmp_path / "file" / "run"),
    ):
        pass
    assert (tmp_path / "file").read_text() == "x"


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "no space left"), OSError("no space left")]
)
def test_a_failure_of_the_system_is_told_with_its_reason(tmp_path, error):
    with (
        pytest.raises(TwoscaleError, match=r"cannot write .*x: no space left"),
        atomic_output(tmp_path / "x"),
    ):
        raise error
    assert names(tmp_path) == []


# Several files


def write_both(folder, **options):
    with atomic_files(folder / "a", folder / "b", **options) as prepared:
        for path in prepared:
            path.write_text("new")
        assert not any((folder / name).exists() and not options for name in "ab")


def test_none_of_several_files_appears_if_one_is_there(tmp_path):
    (tmp_path / "b").write_text("old")
    with pytest.raises(TwoscaleError, match="b exists already"):
        write_both(tmp_path)
    assert names(tmp_path) == ["b"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(errno.EIO, "broken")])
@pytest.mark.parametrize("before", [(), ("a",), ("a", "b")])
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


def test_several_files_are_replaced_together(tmp_path):
    (tmp_path / "a").write_text("old")
    write_both(tmp_path, overwrite=True)
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "new"
