"""Checksums of tensors, JSON content and files, so that changed ones are told from good ones.

They tell damage and mix-ups, not forgery: whoever writes a file can write its checksum too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.files.reading import open_file, read_json, read_text
from twoscale.runtime.threads import file_workers, prefetch

SUMS = "SHA256SUMS"
"""The checksums of all files of a folder, as the command `sha256sum --check` reads them."""

_BLOCK = 2**20


def tensor_digest(tensor: Tensor) -> str:
    """Return the digest of a tensor on the CPU: its type, shape and bytes."""
    digest = hashlib.blake2b(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), digest_size=16)
    digest.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def tensor_digests(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Return the digests of many tensors, by name."""
    digests = prefetch(tensor_digest, tensors.values(), workers=file_workers())
    return dict(zip(tensors, digests, strict=True))


def content_digest(content: Mapping[str, Any], *, but: str = "") -> str:
    """Return the digest of JSON content in any order, without the entry `but`."""
    counted = {key: value for key, value in content.items() if key != but}
    text = json.dumps(counted, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def write_sums(folder: Path) -> None:
    """Write the checksums of all files in a folder into one more file of it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    lines = [f"{file_digest(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def read_sums(folder: Path) -> dict[str, str]:
    """Return the checksums of the files of a folder, by name."""
    sums = {}
    for line in read_text(folder / SUMS).splitlines():
        digest, _, name = line.partition("  ")
        sums[name] = digest
    return sums


def check_file(folder: Path, name: str) -> None:
    """Raise if a file of a folder is not what the folder's checksums say."""
    path, expected = folder / name, read_sums(folder).get(name)
    if file_digest(path) != expected:
        raise TwoscaleError(
            f"{path} is damaged: it does not match its checksum in {SUMS}; fit the run again, or "
            "take the file from a copy"
        )


def read_checked_json(
    folder: Path, name: str, *, require: dict[str, type] | None = None
) -> dict[str, Any]:
    """Return the object that a JSON file of a folder holds, as it was written."""
    content = read_json(folder / name, require=require)
    check_file(folder, name)
    return content


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    digest = hashlib.sha256()
    with open_file(path) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
