"""The arrays of an import, from one file or several, by what the files are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple, Protocol

from twoscale.data.readers.base import Archive, StoredArray, reading
from twoscale.data.readers.mat import open_mat
from twoscale.data.readers.npz import open_npz
from twoscale.errors import TwoscaleError
from twoscale.files import open_file, open_npy

ROLES = {"input": "inputs=...", "output": "outputs=...", "parameters": "parameters=..."}
"""The arguments that name the arrays of each role, as messages name them."""
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
_WANTED = "give one npz, HDF5 or MAT file with all arrays, or npy files of one array each"
_SHOWN = 20  # names of arrays in a sentence


class Chosen(NamedTuple):
    """An array of an import; `name` is None where the order of the files decides."""

    name: str | None
    array: StoredArray
    file: Path


@contextmanager
def open_arrays(
    files: Sequence[Path], keys: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, list[Chosen]]]:
    """Give the arrays of each role that some files hold.

    `keys` are the names of arrays by role: input, output, parameters. An npy file's array has the
    file's name without its ending. Two npy files without any keys are input and output.
    """
    if not files:
        raise TwoscaleError(f"{_WANTED}, got none")
    if len(files) == 1 and files[0].suffix != ".npy":
        with _opener(files[0])(files[0]) as archive:
            yield _by_role(_Archived(files[0], archive), keys)
        return
    singles = [Chosen(file.stem, _open_single(file), file) for file in files]
    if any(keys.values()):
        yield _by_role(_Singles(singles), keys)
    elif len(files) == 2:
        roles = zip(("input", "output"), singles, strict=True)
        yield {role: [one._replace(name=None)] for role, one in roles}
    elif len(files) == 1:
        raise TwoscaleError(
            f"{files[0]} holds one array: give the input's and the output's npy file"
        )
    else:
        raise TwoscaleError(
            f"say which of the {len(files)} files is which with {', '.join(ROLES.values())}: they "
            f"hold {_list(file.stem for file in files)}"
        )


class _Named(Protocol):
    """Arrays that can be asked for by name."""

    def names(self) -> list[str]: ...

    def find(self, name: str) -> Chosen | None: ...


class _Archived:
    """The arrays of one file that holds several."""

    def __init__(self, file: Path, archive: Archive) -> None:
        self.file = file
        self.archive = archive

    def names(self) -> list[str]:
        with reading(self.file):
            return self.archive.names()

    def find(self, name: str) -> Chosen | None:
        with reading(self.file):
            array = self.archive.array(name)
        return None if array is None else Chosen(name, array, self.file)

    def __str__(self) -> str:
        return str(self.file)


class _Singles:
    """The arrays of several npy files, which have the files' names."""

    def __init__(self, singles: list[Chosen]) -> None:
        self.by_name = {one.file.stem: one for one in singles}
        if len(self.by_name) < len(singles):
            raise TwoscaleError(
                f"arrays are named by their files, which need different names, got "
                f"{_list(str(one.file) for one in singles)}"
            )

    def names(self) -> list[str]:
        return list(self.by_name)

    def find(self, name: str) -> Chosen | None:
        return self.by_name.get(name)

    def __str__(self) -> str:
        return f"the set of {len(self.by_name)} npy files"


def _by_role(held: _Named, keys: Mapping[str, Sequence[str]]) -> dict[str, list[Chosen]]:
    """Return the arrays of each role; inputs may be left out where there are parameters."""
    required = {"output"} if keys.get("parameters") else {"input", "output"}
    found = {}
    for role, option in ROLES.items():
        wanted = keys.get(role) or ()
        if not wanted and role in required:
            raise TwoscaleError(
                f"say which array of {held} is which with {option}: it holds {_list(held.names())}"
            )
        found[role] = [_find(held, key, option) for key in wanted]
    return found


def _find(held: _Named, key: str, option: str) -> Chosen:
    chosen = held.find(key)
    if chosen is None:
        raise TwoscaleError(
            f"{held} has no array '{key}' ({option}): it holds {_list(held.names())}"
        )
    return chosen


def _list(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return (", ".join(shown[:_SHOWN]) or "no arrays") + more


def _open_single(file: Path) -> StoredArray:
    if file.suffix in (".npz", ".h5", ".hdf5", ".mat"):
        with open_file(file):  # what cannot be read is told first
            raise TwoscaleError(f"several files must be npy files, got {file}: {_WANTED}")
    return open_npy(file)


def _opener(file: Path) -> Callable[[Path], AbstractContextManager[Archive]]:
    """Return the reader of a file, chosen by content if the suffix is ambiguous."""
    with open_file(file) as handle, reading(file):
        start = handle.read(512)
    if (
        start[:8] == _HDF5_MAGIC
        or file.suffix in (".h5", ".hdf5")
        or (file.suffix == ".mat" and b"MATLAB 7.3" in start)
    ):
        from twoscale.data.readers.hdf5 import open_hdf5  # needs an optional dependency

        return open_hdf5
    if file.suffix == ".npz":
        return open_npz
    if file.suffix == ".mat":
        return open_mat
    raise TwoscaleError(f"{file} is of no known kind: give npz, HDF5 or MAT, or npy files")
