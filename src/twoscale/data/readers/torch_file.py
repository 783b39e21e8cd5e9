"""Tensors in files of torch.save: loaded as data only, never as code."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from twoscale.data.readers.archive import Archive, Found
from twoscale.data.readers.base import quietly, reading
from twoscale.errors import TwoscaleError
from twoscale.files import open_file
from twoscale.runtime.memory import require_memory

_DEPTH_LIMIT = 32  # containers within containers
_ONLY_TENSORS = "save a tensor or a dict of tensors: torch.save({'x': x, 'u': u}, 'pairs.pt')"


@contextmanager
def open_torch(file: Path) -> Iterator[TorchArchive]:
    """Give the tensors of a file that torch.save wrote."""
    with open_file(file) as handle, reading(file):
        require_memory(
            f"reading {file}",
            _unpacked_size(handle),
            "save it as npy or HDF5, which are read in parts",
        )
        try:
            with quietly():
                content = torch.load(handle, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, LookupError) as error:  # lookups fail on random bytes
            raise TwoscaleError(
                f"{file} holds more than tensors, or is damaged, and loading it could run code: "
                f"{_ONLY_TENSORS}"
            ) from error
    yield TorchArchive(file, content)


def _unpacked_size(handle: BinaryIO) -> int:
    """Return the bytes of a file's content, which may be packed; leave the file at its start."""
    size = os.fstat(handle.fileno()).st_size
    if zipfile.is_zipfile(handle):
        with zipfile.ZipFile(handle) as archive:
            size = sum(member.file_size for member in archive.infolist())
    handle.seek(0)
    return size


class TorchArchive(Archive):
    """The tensors of a file, by their paths: `x`, `train/x`, and `0`, `1` in a list."""

    def __init__(self, file: Path, content: Any) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.single = isinstance(content, Tensor)
        self._collect(content, file.stem if self.single else "", 0)

    def _collect(self, content: Any, name: str, depth: int) -> None:
        if isinstance(content, Tensor):
            self.tensors[name] = content
        elif isinstance(content, dict | list | tuple) and depth < _DEPTH_LIMIT:
            items = content.items() if isinstance(content, dict) else enumerate(content)
            for key, value in items:
                self._collect(value, f"{name}/{key}" if name else str(key), depth + 1)

    def names(self) -> list[str]:
        return list(self.tensors)

    def array(self, name: str) -> Found | None:
        tensor = self.tensors.get(name)
        if tensor is None:
            return None
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise TwoscaleError(f"'{name}' is a sparse or quantised tensor: save it as a dense one")
        if tensor.dtype == torch.bfloat16:  # which NumPy does not have
            tensor = tensor.float()
        values: np.ndarray = tensor.detach().resolve_conj().resolve_neg().numpy()
        return values
