"""Results that appear complete or not at all, and replace nothing without being asked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from twoscale.errors import TwoscaleError
from twoscale.files.moves import flush, flush_names, move_new, remove, replace, restore
from twoscale.files.work_folder import WorkFolder, reporting_os_errors, tidy, working

MayReplace = Callable[[Path], bool]
"""Says whether something is of the kind that a command may replace when it is asked to: a file."""


def resolve_target(path: str | Path) -> Path:
    """Return where a path leads to, or raise if that is nowhere."""
    check_name(path)
    try:
        place = Path(path).resolve()
        os.path.lexists(place)
    except (OSError, RuntimeError, ValueError) as error:  # loops of links, names with zero bytes
        raise TwoscaleError(f"cannot write {str(path)!r}: {error}") from error
    return place


def check_name(path: str | Path) -> None:
    """Raise if a name is not text: not all libraries can read files of such names."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise TwoscaleError(f"cannot write {str(path)!r}: its name is not UTF-8 text") from error


def check_target(
    path: str | Path, *, overwrite: bool, may_replace: MayReplace = Path.is_file
) -> Path:
    """Return the place a result will go to, or raise before any work is done.

    Something that is there already is replaced only if asked, and only if `may_replace` says so.
    """
    place = resolve_target(path)
    if os.path.lexists(place):
        if not overwrite:
            tidy(place)
            raise TwoscaleError(f"{path} exists already: choose another path, or set overwrite")
        if not may_replace(place):
            raise TwoscaleError(
                f"{path} is something else, or holds other files too, and is not replaced: choose "
                "another path"
            )
    return place


class Output:
    """A result under way: claimed for one command, prepared in a work folder beside its place.

    `content` is where the file or folder is prepared. `commit` moves it to its place in one step;
    `check` raises if it must not go there.
    """

    def __init__(self, work: WorkFolder, check: Callable[[], Path], *, overwrite: bool) -> None:
        self.work = work
        self.place = check()
        self.content = work.content
        self._check = check
        self._overwrite = overwrite

    def commit(self) -> None:
        """Move the content to its place; what was there is removed after that."""
        with reporting_os_errors(self.place):
            flush(self.content)
            self.work.begin_commit()
            if self._overwrite and os.path.lexists(self.place):
                self._check()
                replace(self.content, self.place, aside=self.work.replaced)
            else:
                move_new(self.content, self.place)
            flush_names(self.place.parent)

    def take_back(self) -> None:
        """Undo `commit` if it moved the content: bring back what it replaced."""
        if not os.path.lexists(self.content):
            remove(self.place)
            restore(self.place, aside=self.work.replaced)


@contextmanager
def claimed(
    path: str | Path, *, overwrite: bool = False, may_replace: MayReplace = Path.is_file
) -> Iterator[Output]:
    """Claim a place for the block; nothing is left of a block that fails.

    What a later command can go on with stays (`working`).
    """
    check = partial(check_target, path, overwrite=overwrite, may_replace=may_replace)
    place = check()
    with working(place) as work:
        restore(place, aside=work.replaced)
        remove(work.replaced)
        try:  # only now nobody else can put anything there; but somebody may have just done so
            output = Output(work, check, overwrite=overwrite)
        except TwoscaleError:
            if work.request.exists():
                work.release()
            raise
        yield output


@contextmanager
def atomic_output(
    path: str | Path, *, overwrite: bool = False, may_replace: MayReplace = Path.is_file
) -> Iterator[Path]:
    """Give a path to write a file or folder to; it appears at `path` only if all goes well."""
    with claimed(path, overwrite=overwrite, may_replace=may_replace) as output:
        output.work.clear()
        yield output.content
        output.commit()


@contextmanager
def atomic_files(*paths: str | Path, overwrite: bool = False) -> Iterator[list[Path]]:
    """Give a path to write each of several files to; all appear if all goes well, or none.

    Only a process that is killed between two moves can leave the first ones without the others.
    """
    with ExitStack() as stack:
        outputs = [stack.enter_context(claimed(path, overwrite=overwrite)) for path in paths]
        for output in outputs:
            output.work.clear()
        yield [output.content for output in outputs]
        begun: list[Output] = []
        try:
            for output in outputs:
                begun.append(output)
                output.commit()
        except BaseException:
            for output in begun:
                output.take_back()
            raise
