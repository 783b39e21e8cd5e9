"""Results that appear complete or not at all, and replace nothing without being asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from twoscale.errors import TwoscaleError
from twoscale.files.moves import flush, flush_names, move_new, remove, replace, restore
from twoscale.files.work_folder import WorkFolder, tidy

Ours = Callable[[Path], bool]
"""Says whether something is of the kind that a command may replace when it is asked to."""

CONTINUES = "run the same command again to go on where it stopped"


def is_file(path: Path) -> bool:
    """Say whether something is a plain file: what a file may replace."""
    return path.is_file()


def check_name(path: str | Path) -> None:
    """Raise if a name is not text: not all libraries can read files of such names."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise TwoscaleError(f"cannot write {str(path)!r}: its name is not UTF-8 text") from error


def check_target(path: str | Path, *, overwrite: bool, ours: Ours) -> Path:
    """Return the place a result will go to, or raise before any work is done.

    Something that is there already is replaced only if asked, and only if it is `ours`.
    """
    check_name(path)
    try:
        place = Path(path).resolve()
        exists = os.path.lexists(place)
    except (OSError, RuntimeError, ValueError) as error:  # loops of links, names with zero bytes
        raise TwoscaleError(f"cannot write {str(path)!r}: {error}") from error
    if exists:
        if not overwrite:
            tidy(place)
            raise TwoscaleError(f"{path} exists already: choose another --out or pass --overwrite")
        if not ours(place):
            raise TwoscaleError(
                f"{path} is something else and is not replaced: choose another --out"
            )
    return place


class Output:
    """A result under way: claimed for one command, prepared in a work folder beside its place.

    `content` is where the file or folder is prepared. `commit` moves it to its place in one step;
    `close` ends the claim.
    """

    def __init__(self, path: str | Path, *, overwrite: bool = False, ours: Ours = is_file) -> None:
        self._check = partial(check_target, path, overwrite=overwrite, ours=ours)
        self._overwrite = overwrite
        self.place = self._check()
        self._parents = _Parents(self.place)
        try:
            with told(self.place):
                self.work = WorkFolder(self.place)
                restore(self.place, aside=self.work.replaced)
                remove(self.work.replaced)
            # Only now nobody else can put anything there; but somebody may have just done so.
            self._check()
        except BaseException:
            if hasattr(self, "work"):
                self.work.release()
            self._parents.remove()
            raise
        self.content = self.work.content

    def commit(self) -> None:
        """Move the content to its place; what was there is removed after that."""
        with told(self.place):
            flush(self.content)
            self.work.begin_commit()
            if self._overwrite and os.path.lexists(self.place):
                self._check()
                replace(self.content, self.place, aside=self.work.replaced)
            else:
                move_new(self.content, self.place)
            flush_names(self.place.parent)

    def close(self, *, keep: bool = False) -> None:
        """End the claim; `keep` leaves what lets the same command go on where it stopped."""
        if keep:
            self.work.release()
        else:
            self.work.remove()
            self._parents.remove()


@contextmanager
def claimed(path: str | Path, *, overwrite: bool = False, ours: Ours = is_file) -> Iterator[Output]:
    """Claim a place for the block; nothing is left of a block that fails.

    After an interruption or a failure of the disk, what has been saved to go on with stays.
    """
    output = Output(path, overwrite=overwrite, ours=ours)
    keep = False
    try:
        with told(output.place):
            yield output
    except (KeyboardInterrupt, TwoscaleError) as error:
        keep = _worth_keeping(output.work, error)
        if keep:
            error.add_note(CONTINUES)
        raise
    finally:
        output.close(keep=keep)


def _worth_keeping(work: WorkFolder, error: BaseException) -> bool:
    """Say whether a command that ended so can go on later; a full disk keeps checkpoints only."""
    if isinstance(error, KeyboardInterrupt):
        return work.has_log() or work.has_checkpoints()
    return isinstance(error.__cause__, OSError) and work.has_checkpoints()


@contextmanager
def atomic_output(
    path: str | Path, *, overwrite: bool = False, ours: Ours = is_file
) -> Iterator[Path]:
    """Give a path to write a file or folder to; it appears at `path` only if all goes well."""
    with claimed(path, overwrite=overwrite, ours=ours) as output:
        output.work.clear()
        yield output.content
        output.commit()


@contextmanager
def told(place: Path) -> Iterator[None]:
    """Turn a failure of the system into one sentence."""
    try:
        yield
    except OSError as error:
        raise TwoscaleError(f"cannot write {place}: {error.strerror or error}") from error


class _Parents:
    """The folders above a place that had to be made, to be removed again if nothing comes."""

    def __init__(self, place: Path) -> None:
        self.made = [parent for parent in place.parents if not parent.exists()]
        with told(place):
            place.parent.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        for parent in self.made:
            with suppress(OSError):  # not empty: it holds the result, or someone else's
                parent.rmdir()
