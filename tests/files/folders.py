"""Folders with a file, and the names in them."""

from pathlib import Path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def folder_with(path: Path, name: str) -> Path:
    path.mkdir()
    (path / name).write_text(name)
    return path
