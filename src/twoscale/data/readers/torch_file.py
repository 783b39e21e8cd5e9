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

from twoscale.data.readers.archive import ArrayArchive, quietly, reading
from twoscale.errors import TwoscaleError
from twoscale.files import open_file
from twoscale.runtime.memory import require_memory

_DEPTH_LIMIT = 32  # containers within containers


@contextmanager
def open_torch(file: Path) -> Iterator[ArrayArchive]:
    """Give the tensors of a file by their paths: `x`, `train/x`, and `0`, `1` in a list."""
    with open_file(file) as handle, reading(file):
        advice = "save it as npy or HDF5, which are read in parts"
        require_memory(f"reading {file}", _unpacked_size(handle), advice)
        try:
            with quietly():
                content = torch.load(handle, map_location="cpu", weights_only=True)
        except (pickle.UnpicklingError, LookupError) as error:  # lookups fail on random bytes
            raise TwoscaleError(
                f"{file} holds more than tensors, or is damaged, and loading it could run code: "
                "save a tensor or a dict of tensors: torch.save({'x': x, 'u': u}, 'pairs.pt')"
            ) from error
    single = isinstance(content, Tensor)
    tensors = dict(_tensors(content, file.stem if single else ""))
    yield ArrayArchive(tensors, single=single, opened=_values)


def _unpacked_size(handle: BinaryIO) -> int:
    """Return the bytes of a file's content, which may be packed; leave the file at its start."""
    size = os.fstat(handle.fileno()).st_size
    if zipfile.is_zipfile(handle):
        with zipfile.ZipFile(handle) as archive:
            size = sum(member.file_size for member in archive.infolist())
    handle.seek(0)
    return size


def _tensors(content: Any, name: str, depth: int = 0) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of nested containers by their paths."""
    if isinstance(content, Tensor):
        yield name, content
    elif isinstance(content, dict | list | tuple) and depth < _DEPTH_LIMIT:
        items = content.items() if isinstance(content, dict) else enumerate(content)
        for key, value in items:
            yield from _tensors(value, f"{name}/{key}" if name else str(key), depth + 1)


def _values(name: str, tensor: Tensor) -> np.ndarray:
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise TwoscaleError(f"'{name}' is a sparse or quantised tensor: save it as a dense one")
    if tensor.dtype == torch.bfloat16:  # which NumPy does not have
        tensor = tensor.float()
    values: np.ndarray = tensor.detach().resolve_conj().resolve_neg().numpy()
    return values
