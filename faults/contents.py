"""What lies in a folder, byte by byte, and what a result means apart from its times."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Any

_LARGE = 2**26  # bytes; larger files are known by their size: some are holes of terabytes

WORK = ".twoscale-work"

# What differs between two runs of one command: times, places, and what was trained beside it.
_UNEQUAL = {"timings", "seconds", "earlier_seconds", "break_even", "path", "checksum"}
_UNEQUAL |= {"trained_together", "members"}
_IGNORED = {".log", ".png", ".svg", ".csv"}  # logs have times, pictures are not drawn here


class Broken(Exception):
    """A result that is not whole, in a sentence."""


def snapshot(folder: Path) -> dict[str, str]:
    """Return everything below a folder by name: its kind, mode, and a digest of its bytes."""
    found = {}
    for base, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = os.path.join(base, name)
            shown = os.fsdecode(os.path.relpath(path, os.fsencode(folder)))
            found[shown] = describe(os.fsdecode(path))
    return found


def sizes(folder: Path) -> dict[str, int]:
    """Return the bytes of all files below a folder, by name."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}


def describe(path: str | Path) -> str:
    """Return the kind, mode and digest of one thing; links are not followed."""
    status = os.lstat(path)
    mode = f"{stat.S_IFMT(status.st_mode):o} {stat.S_IMODE(status.st_mode):o}"
    if stat.S_ISLNK(status.st_mode):
        return f"link {os.readlink(path)!a}"
    if stat.S_ISREG(status.st_mode) and status.st_size > _LARGE:
        return f"{mode} {status.st_size} bytes"
    if stat.S_ISREG(status.st_mode):
        return f"{mode} {digest(Path(path))}"
    return mode


def digest(path: Path) -> str:
    """Return the digest of a file's bytes."""
    return hashlib.blake2b(path.read_bytes(), digest_size=12).hexdigest()


def meaning(path: Path) -> dict[str, str]:
    """Return what a result says, file by file, without times and paths; raise if it is not whole.

    Results of the same command have the same meaning. Work folders are no part of it.
    """
    if path.is_file():
        return {"": _of_file(path)}
    found = {}
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path)
        if file.is_dir() or file.suffix in _IGNORED or _is_work(inside):
            continue
        if file.name == "SHA256SUMS":
            check_sums(file.parent)
        else:
            found[str(inside)] = _of_file(file)
    return found


def _is_work(inside: Path) -> bool:
    return any(part.endswith(WORK) for part in inside.parts)


def _of_file(file: Path) -> str:
    if file.suffix == ".json":
        try:
            content = json.loads(file.read_text())
        except ValueError as error:
            raise Broken(f"{file.name} is not JSON: {error}") from error
        text = json.dumps(timeless(content), sort_keys=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    if file.suffix == ".html":
        if not file.read_text(encoding="utf-8").rstrip().endswith("</html>"):
            raise Broken(f"{file.name} is cut short")
        return "page"
    return digest(file)


def timeless(value: Any) -> Any:
    """Return JSON content without what differs between two runs of one command."""
    if isinstance(value, dict):
        return {key: timeless(one) for key, one in value.items() if key not in _UNEQUAL}
    if isinstance(value, list):
        return [timeless(one) for one in value]
    return value


def check_sums(folder: Path) -> None:
    """Raise if the files of a run are not those that its checksums name."""
    sums = {}
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        value, _, name = line.partition("  ")
        sums[name] = value
    files = {
        str(file.relative_to(folder)): file
        for file in folder.rglob("*")
        if file.is_file() and file.name != "SHA256SUMS"
    }
    if set(files) != set(sums):
        raise Broken(f"SHA256SUMS names other files: {sorted(set(files) ^ set(sums))}")
    for name, file in files.items():
        if hashlib.sha256(file.read_bytes()).hexdigest() != sums[name]:
            raise Broken(f"{name} is not what SHA256SUMS says")


def leftovers(folder: Path) -> list[str]:
    """Return the names below a folder that only work under way has."""
    endings = (WORK, ".partial", ".old", ".new", ".tmp")
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.name.endswith(endings)
    )


def changed(before: dict[str, str], after: dict[str, str]) -> str | None:
    """Return a sentence on what of the earlier things is gone or different, if anything is."""
    gone = sorted(name for name in before if name not in after)
    other = sorted(name for name in before if name in after and before[name] != after[name])
    if gone:
        return f"{gone[0]!a} has vanished ({len(gone)} in all)"
    if other:
        return f"{other[0]!a} has changed ({len(other)} in all)"
    return None


def added(before: dict[str, str], after: dict[str, str]) -> str | None:
    """Return a sentence on what a refused command has left, if anything."""
    new = sorted(set(after) - set(before))
    return f"refused, but left {new[0]!a}" if new else None


def strays(folder: Path, names: Collection[str]) -> str | None:
    """Return a sentence on what lies in a folder that is neither of some names nor a result."""
    strange = {path.name for path in folder.iterdir()} - {*names}
    left = sorted(strange) or leftovers(folder)
    return f"left behind: {', '.join(left[:4])}" if left else None


def copy(source: Path, target: Path) -> None:
    """Copy a file or folder; links stay links."""
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)
