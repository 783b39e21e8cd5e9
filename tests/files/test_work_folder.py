import multiprocessing
import os

import pytest

from tests.files.folders import folder_with, names
from twoscale.errors import TwoscaleError
from twoscale.files import WorkFolder, working
from twoscale.files.work_folder import discard, is_work_folder, sweep, tidy


def test_it_lies_beside_the_result_and_goes_with_all_its_entries(tmp_path):
    work = WorkFolder(tmp_path / "x")
    assert names(tmp_path) == [".x.twoscale-work"]
    work.content.mkdir()
    (work.content / "file").write_text("half")
    work.log.write_text("")
    work.remove()
    assert names(tmp_path) == []


def test_only_one_holds_it(tmp_path):
    work = WorkFolder(tmp_path / "x")
    with pytest.raises(TwoscaleError, match=rf"x \(process {os.getpid()} on .*\)"):
        WorkFolder(tmp_path / "x")
    work.release()
    WorkFolder(tmp_path / "x").remove()
    assert names(tmp_path) == []


def test_a_lock_may_be_waited_for(tmp_path):
    work = WorkFolder(tmp_path / "x")
    holders = []

    def wait(holder):
        holders.append(holder)
        if len(holders) == 3:
            work.release()

    with working(tmp_path / "x", wait=wait):
        pass
    assert [f"process {os.getpid()} on" in holder for holder in holders] == [True] * 3
    assert names(tmp_path) == []


def test_what_nobody_holds_can_be_discarded(tmp_path):
    discard(tmp_path / "x")
    work = WorkFolder(tmp_path / "x")
    work.checkpoints.mkdir()
    discard(tmp_path / "x")
    assert work.has_checkpoints() is False
    assert work.checkpoints.exists()
    work.release()
    discard(tmp_path / "x")
    assert names(tmp_path) == []


def _hold(path, barrier):
    WorkFolder(path)
    barrier.wait()
    barrier.wait()
    os._exit(9)  # as a kill: nothing is cleaned up


def test_a_lock_ends_with_its_process(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(2)
    process = context.Process(target=_hold, args=(tmp_path / "x", barrier))
    process.start()
    barrier.wait()
    with pytest.raises(TwoscaleError, match=f"process {process.pid} on"):
        WorkFolder(tmp_path / "x")
    barrier.wait()
    process.join()
    assert names(tmp_path) == [".x.twoscale-work"]
    WorkFolder(tmp_path / "x").remove()
    assert names(tmp_path) == []


THEIRS = {
    "a file": lambda path: path.write_text("keep"),
    "a folder": lambda path: folder_with(path, "content"),
    "a link": lambda path: path.symlink_to(path.parent),
    "an owner of another kind": lambda path: with_owner(path, '{"owner": "me"}'),
}
LEFT = {
    "before the owner": lambda path: path.mkdir(),
    "before its name": lambda path: with_owner(path, ""),
    "at work": lambda path: with_owner(path, '{"format": "twoscale-work"}'),
}


def with_owner(path, text):
    path.mkdir()
    (path / "owner.json").write_text(text)
    if "format" in text:
        (path / "content").write_text("half")


@pytest.mark.parametrize("make", THEIRS.values(), ids=THEIRS)
def test_what_somebody_else_has_under_that_name_stays(tmp_path, make):
    path = tmp_path / ".x.twoscale-work"
    make(path)
    before = names(tmp_path)
    with pytest.raises(TwoscaleError, match="in the way"):
        WorkFolder(tmp_path / "x")
    assert names(tmp_path) == before
    assert not is_work_folder(path)


@pytest.mark.parametrize("make", LEFT.values(), ids=LEFT)
def test_one_that_was_left_is_taken_over(tmp_path, make):
    path = tmp_path / ".x.twoscale-work"
    make(path)
    assert is_work_folder(path)
    WorkFolder(tmp_path / "x").remove()
    assert names(tmp_path) == []


def test_what_somebody_put_into_it_stays(tmp_path):
    work = WorkFolder(tmp_path / "x")
    (work.path / "mine").write_text("keep")
    work.remove()
    assert names(tmp_path / ".x.twoscale-work") == ["mine"]


def test_a_removal_meanwhile_is_noticed(tmp_path, monkeypatch):
    """Between opening and locking, the last owner may remove the folder."""
    real = os.open
    removed = []

    def slow(path, *arguments):
        descriptor = real(path, *arguments)
        if not removed and str(path).endswith("owner.json"):
            removed.append(path)
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
        return descriptor

    monkeypatch.setattr(os, "open", slow)
    work = WorkFolder(tmp_path / "x")
    assert removed
    assert (work.path / "owner.json").stat().st_size
    work.remove()


def test_a_state_belongs_to_a_request(tmp_path):
    work = WorkFolder(tmp_path / "x")
    assert not work.continues({"a": 1})
    work.restart({"a": (1, 2)})
    work.log.write_text("")
    assert work.continues({"a": [1, 2]})
    assert not work.continues({"a": [1, 3]})
    assert work.has_log()
    work.restart({"a": 3})
    assert not work.has_log()
    work.remove()


def test_sweeping_removes_only_what_is_dead_and_done(tmp_path):
    for name in ("done", "undone", "held"):
        work = WorkFolder(tmp_path / name)
        if name != "held":
            work.release()
        if name != "undone":
            (tmp_path / name).mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / ".mine.twoscale-work").write_text("keep")
    sweep(tmp_path)
    left = [".held.twoscale-work", ".mine.twoscale-work", ".undone.twoscale-work"]
    assert [name for name in names(tmp_path) if name.startswith(".")] == left


def test_a_full_disk_does_not_make_it_somebody_elses(tmp_path, monkeypatch):
    """What it holds can be gone on with when there is room again."""
    work = WorkFolder(tmp_path / "x")
    work.checkpoints.mkdir()
    (work.checkpoints / "state").write_text("s")
    work.release()

    def full(*arguments):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            WorkFolder(tmp_path / "x")
    assert WorkFolder(tmp_path / "x").has_checkpoints()


def test_content_that_was_moved_is_told_from_content_that_was_not(tmp_path):
    work = WorkFolder(tmp_path / "x")
    work.restart({"a": 1})
    work.content.write_text("new")
    work.begin_commit()
    work.release()
    (tmp_path / "x").write_text("old")
    tidy(tmp_path / "x")
    again = WorkFolder(tmp_path / "x")  # killed before the move: it can go on
    assert again.continues({"a": 1})
    again.begin_commit()
    again.content.rename(tmp_path / "moved")
    (tmp_path / "x").rename(again.content)  # killed after an exchange
    (tmp_path / "moved").rename(tmp_path / "x")
    again.release()
    tidy(tmp_path / "x")
    assert names(tmp_path) == ["x"]
    assert (tmp_path / "x").read_text() == "new"
