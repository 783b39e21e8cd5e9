"""Moves of files and folders that happen in one step, and that survive a loss of power."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

from twoscale.runtime.threads import file_workers, prefetch

_NO_REPLACE, _EXCHANGE = 1, 2  # flags of Linux's renameat2
_CURRENT_FOLDER = -100  # AT_FDCWD: relative paths count from the current folder
_UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)  # answers of systems without renameat2


def move_new(source: Path, place: Path) -> None:
    """Move something to a place where nothing is; raise FileExistsError if something is there."""
    if _renameat2(source, place, _NO_REPLACE):
        return
    if os.path.lexists(place):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place))
    source.rename(place)


def replace(source: Path, place: Path, *, aside: Path) -> None:
    """Move something to the place of another thing of its kind, which is left in `aside`.

    On Linux the two change places in one step. Elsewhere the old one is moved aside first: after a
    crash in between, `restore` brings it back.
    """
    if _renameat2(source, place, _EXCHANGE):
        source.rename(aside)
        return
    place.rename(aside)
    try:
        source.rename(place)
    except BaseException:
        restore(place, aside=aside)
        raise


def restore(place: Path, *, aside: Path) -> None:
    """Bring back what `replace` moved aside, if nothing took its place."""
    if os.path.lexists(aside) and not os.path.lexists(place):
        aside.rename(place)


def remove(path: Path) -> None:
    """Remove a file, link or folder if it is there; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def new_folder(path: Path) -> None:
    """Make an empty folder in place of whatever is there."""
    remove(path)
    path.mkdir()


def replace_file(prepared: Path, path: Path) -> None:
    """Let a prepared file take the place of another one, in one step and for good."""
    flush_names(prepared)
    prepared.replace(path)


def flush(path: Path) -> None:
    """Wait until a file, or a folder with all that it holds, is safely on the disk."""
    paths = [path]
    for folder, folders, files in os.walk(path):
        paths += [Path(folder, name) for name in (*folders, *files)]
    # From several threads: the disk then does much of it at once.
    for _ in prefetch(flush_names, paths, workers=min(len(paths) - 1, file_workers())):
        pass


def flush_names(path: Path) -> None:
    """Wait until one file, or the names in one folder, are safely on the disk."""
    if path.is_symlink():
        return
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except PermissionError:  # folders cannot be opened on Windows
        return
    try:
        os.fsync(descriptor)
    except OSError as error:  # some file systems do not know it of folders
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(descriptor)


def _renameat2(source: Path, place: Path, flag: int) -> bool:
    """Rename by Linux's system call; return False where the system has no such call."""
    function = _system_call()
    if function is None:
        return False
    names = os.fsencode(source), os.fsencode(place)
    if function(_CURRENT_FOLDER, names[0], _CURRENT_FOLDER, names[1], flag) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNKNOWN:
        return False
    raise OSError(number, os.strerror(number), str(source), None, str(place))


@cache
def _system_call() -> Any:
    """Return the C library's renameat2, or None."""
    if not sys.platform.startswith("linux"):
        return None
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        name = ctypes.c_char_p
        function.argtypes = (ctypes.c_int, name, ctypes.c_int, name, ctypes.c_uint)
    return function
