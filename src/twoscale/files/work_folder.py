"""The folder beside a result in which it is prepared; whoever holds its lock may write there.

For a result `X` it is called `.X.twoscale-work`. It holds `owner.json`, whose lock ends with its
process, and nothing but the entries named here. Others with that name are never touched.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from twoscale.errors import ResumableError, TwoscaleError, TwoscaleWarning
from twoscale.files.moves import remove
from twoscale.files.reading import read_json, to_json, write_json

try:
    import fcntl
except ImportError:  # not on Windows: two commands must not write one result there
    fcntl = None  # type: ignore[assignment]

SUFFIX = ".twoscale-work"
CONTINUES = "run the same command again to go on where it stopped"
_FORMAT = "twoscale-work"
_OWNER = "owner.json"
_CONTENT, _REQUEST, _COMMITTING = "content", "request.json", "committing.json"
_PATIENCE = 20  # looks at a folder that is not ours, or not for long
_BUSY = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


Wait = Callable[[str], None]
"""Called with who holds a lock, again and again until it is free; it sleeps for a moment."""


class BusyError(TwoscaleError):
    """Another process holds the lock."""


class WorkFolder:
    """A locked work folder. Its entries survive the process; `remove` removes them.

    `content` is what becomes the result, `replaced` what was there before, `log` says how far the
    content has come, `checkpoints` holds states of long work, `request` what they belong to, and
    `scratch` what a running process does not hold in memory. If another process holds the lock, a
    BusyError says so, unless `wait` is given.
    """

    def __init__(self, place: Path, *, subject: str = "", wait: Wait | None = None) -> None:
        self.path = _work_path(place)
        self.content = self.path / _CONTENT
        self.replaced = self.path / "replaced"
        self.log = self.path / "log.jsonl"
        self.checkpoints = self.path / "checkpoints"
        self.scratch = self.path / "scratch"
        self.request = self.path / _REQUEST
        self._committing = self.path / _COMMITTING
        self._subject = subject or f"writing {place}"
        self._descriptor = self._lock(wait)
        if _unmoved(self.path):  # killed before its content was moved: it can still go on
            write_json(self.request, read_json(self._committing)["request"])

    def _lock(self, wait: Wait | None) -> int:
        """Return the open, locked owner file."""
        owner = self.path / _OWNER
        while True:
            self._make()
            try:
                descriptor = os.open(owner, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
            except FileNotFoundError:  # its last owner has just removed the folder
                continue
            try:
                if not _try_lock(descriptor):
                    if wait is None:
                        raise BusyError(
                            f"another command is {self._subject}{_holder(owner)}: wait for it, or "
                            "choose another path"
                        )
                    wait(_holder(owner))
                    os.close(descriptor)
                    continue
                if not _is_file(owner, descriptor):  # locked, but removed meanwhile
                    os.close(descriptor)
                    continue
                self._take(descriptor)
                return descriptor
            except BaseException:
                with suppress(OSError):
                    os.close(descriptor)
                raise

    def _make(self) -> None:
        try:
            self.path.mkdir(parents=True)
            return
        except FileExistsError:
            pass
        for _ in range(_PATIENCE):  # its last owner may be removing it at this moment
            if not os.path.lexists(self.path) or is_work_folder(self.path):
                return
            time.sleep(0.01)
        raise TwoscaleError(
            f"{self.path} is in the way, and is not twoscale's: move it, or choose another name"
        )

    def _take(self, descriptor: int) -> None:
        """Write down whose folder it is."""
        facts = {"format": _FORMAT, "process": os.getpid(), "host": platform.node()}
        text = to_json(facts).encode()
        try:
            os.pwrite(descriptor, text, 0)
            os.ftruncate(descriptor, len(text))  # only now: the file is ours at any moment
        except OSError:  # a full disk: the folder goes again, if nothing is in it yet
            with suppress(OSError):
                if [entry.name for entry in _entries(self.path)] == [_OWNER]:
                    (self.path / _OWNER).unlink()
                self.path.rmdir()
            raise

    def has_log(self) -> bool:
        """Say whether a part of the content is finished."""
        return self.log.exists()

    def has_checkpoints(self) -> bool:
        """Say whether the state of some long work was saved."""
        return any(_entries(self.checkpoints))

    def clear(self) -> None:
        """Remove everything that was prepared."""
        # The request first: without it the rest is of no use, and `tidy` removes it.
        kept = (self.content, self.replaced, self.log, self.checkpoints, self.scratch)
        for entry in (self.request, self._committing, *kept):
            remove(entry)

    def remove(self) -> None:
        """Remove the folder and end the lock; what is not ours stays, and all after `release`."""
        if self._descriptor < 0:
            return
        self.clear()
        (self.path / _OWNER).unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()
        self.release()

    def release(self) -> None:
        """End the lock and leave the folder for another command that goes on."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def continues(self, request: dict[str, Any]) -> bool:
        """Say whether the folder holds the state of this very request."""
        try:
            return read_json(self.request) == json.loads(to_json(request))
        except TwoscaleError:
            return False

    def restart(self, request: dict[str, Any]) -> None:
        """Remove what an earlier command left, and note what the coming state belongs to."""
        self.clear()
        write_json(self.request, request)

    def begin_commit(self) -> None:
        """Note that the content is complete: once it has been moved, nothing can go on here."""
        if self.request.exists():
            facts = {"inode": self.content.stat().st_ino, "request": read_json(self.request)}
            write_json(self._committing, facts)
            self.request.unlink()


@contextmanager
def reporting_os_errors(place: Path) -> Iterator[None]:
    """Turn a failure of the system into one sentence."""
    try:
        yield
    except OSError as error:
        raise TwoscaleError(f"cannot write {place}: {error.strerror or error}") from error


@contextmanager
def working(place: Path, *, subject: str = "", wait: Wait | None = None) -> Iterator[WorkFolder]:
    """Hold the work folder of a place for the block; it goes when the block has ended.

    Of a block that was interrupted, or failed in an unexpected way, checkpoints stay. Folders above
    the place that had to be made go again if nothing comes into them.
    """
    made = [parent for parent in place.parents if not parent.exists()]
    try:
        with reporting_os_errors(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            work = WorkFolder(place, subject=subject, wait=wait)
        keep = False
        try:
            with reporting_os_errors(place):
                yield work
        except BaseException as error:
            keep = _worth_keeping(work, error)
            raise
        finally:
            work.release() if keep else work.remove()
    finally:
        for parent in made:
            with suppress(OSError):  # not empty: it holds the result, or someone else's
                parent.rmdir()


def _worth_keeping(work: WorkFolder, error: BaseException) -> bool:
    """Say whether a command that ended with an error can go on later, and note it there.

    What is wrong with the input will be wrong again. A full disk keeps checkpoints only.
    """
    interrupted = isinstance(error, KeyboardInterrupt | ResumableError)
    refused = isinstance(error, TwoscaleError) and not isinstance(error.__cause__, OSError)
    refused = refused and not interrupted
    keep = not refused and (work.has_checkpoints() or (interrupted and work.has_log()))
    if keep and CONTINUES not in getattr(error, "__notes__", ()):
        error.add_note(CONTINUES)
    return keep


def is_work_folder(path: Path) -> bool:
    """Say whether a folder is a work folder of ours: empty, or with an owner file of ours."""
    if not path.is_dir() or path.is_symlink():
        return False
    owner = path / _OWNER
    if not any(_entries(path)):
        return True  # a process was stopped before it could write its name
    try:
        return owner.lstat().st_size == 0 or read_json(owner).get("format") == _FORMAT
    except (TwoscaleError, OSError):
        return False


def tidy(place: Path) -> None:
    """Remove the work folder of a result if a dead process left it, and nothing can go on in it."""
    path = _work_path(place)
    if not is_work_folder(path):
        return
    if not _unmoved(path) and not (path / _REQUEST).exists():
        with suppress(TwoscaleError, OSError):
            WorkFolder(place).remove()


def discard(place: Path, *, wait: Wait | None = None) -> None:
    """Remove the work folder of a result with all that it holds, unless somebody works there.

    With `wait` it is removed once nobody does.
    """
    if is_work_folder(_work_path(place)):
        with suppress(BusyError, OSError):
            WorkFolder(place, wait=wait).remove()


def _work_path(place: Path) -> Path:
    return place.with_name(f".{place.name}{SUFFIX}")


def _unmoved(path: Path) -> bool:
    """Say whether a work folder holds content that was complete, but not yet moved to its place.

    After an exchange there is content too: what was replaced.
    """
    try:
        noted = read_json(path / _COMMITTING, require={"inode": int, "request": dict})
        return (path / _CONTENT).stat().st_ino == noted["inode"]
    except (TwoscaleError, OSError):
        return False


def sweep(folder: Path) -> None:
    """Tidy up after all results that a folder holds."""
    for path in folder.glob(f".*{SUFFIX}"):
        place = path.with_name(path.name.removeprefix(".").removesuffix(SUFFIX))
        if os.path.lexists(place):
            tidy(place)


def _entries(path: Path) -> Iterator[os.DirEntry[str]]:
    try:
        yield from os.scandir(path)
    except FileNotFoundError:
        return


def _try_lock(descriptor: int) -> bool:
    """Lock an open file, or say that somebody else has."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        warnings.warn(
            "this file system has no locks: see to it that no other command writes here",
            TwoscaleWarning,
            stacklevel=2,
        )
    return True


def _is_file(path: Path, descriptor: int) -> bool:
    """Say whether an open file is still the one of that name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(owner: Path) -> str:
    """Return in brackets which process holds a lock, if that is known."""
    with suppress(TwoscaleError, LookupError):
        facts = read_json(owner)
        return f" (process {facts['process']} on {facts['host']})"
    return ""
