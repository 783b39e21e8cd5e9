"""A fitted surrogate with its loss history, as files: beside a search, and on the way between."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twoscale.files import read_json, write_json
from twoscale.surrogate import Surrogate
from twoscale.surrogate.manifest import write_surrogate

Files = dict[str, bytes]
"""Contents of files by their names."""

_HISTORY = "history.json"


def write_kept(surrogate: Surrogate, folder: Path) -> None:
    """Write a surrogate and its history into an existing folder."""
    write_surrogate(surrogate, folder)
    write_json(folder / _HISTORY, surrogate.history_)


def read_kept(folder: Path, **options: Any) -> Surrogate:
    """Return what `write_kept` wrote; options are those of `Surrogate.load`."""
    surrogate = Surrogate.load(folder, **options)
    assert surrogate.state_ is not None
    surrogate.state_ = replace(surrogate.state_, history=read_json(folder / _HISTORY))
    return surrogate


def to_files(surrogate: Surrogate) -> Files:
    """Return a surrogate as files."""
    with TemporaryDirectory() as folder:
        write_kept(surrogate, Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def from_files(files: Files, **options: Any) -> Surrogate:
    """Return the surrogate that `to_files` was given; options are those of `Surrogate.load`."""
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return read_kept(Path(folder), **options)
