"""One array of a dataset on disk, in chunks of whole samples: opened and read with mistrust."""

from __future__ import annotations

import os
import stat
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.errors import TwoscaleError, missing_extra
from twoscale.files import read_json, unreadable

_BLOSC_HEADER = 16
_SEPARATOR = {"name": "default", "configuration": {"separator": "/"}}


def zarr_package() -> Any:
    """Return the package Zarr, which datasets on disk need, and datasets in memory do not."""
    try:
        import zarr
    except ImportError as error:
        raise missing_extra("zarr", "data") from error
    return zarr


class StoredChunks:
    """An array (samples, ...) of single precision, `chunk` samples to a file."""

    dtype = "float32"

    def __init__(self, folder: Path, shape: tuple[int, ...], chunk: int) -> None:
        self.folder = folder
        self.chunk = min(chunk, shape[0])
        self._chunk_bytes = 4 * self.chunk * prod(shape[1:])
        self._within = ("0",) * (len(shape) - 1)  # a file's place along the axes that are not cut
        chunks = (self.chunk, *shape[1:])
        described = read_json(folder / "zarr.json")
        if not _is_ours(described, shape, chunks):
            raise TwoscaleError(f"{folder} does not match the dataset's description")
        zarr = zarr_package()
        try:
            array: Any = zarr.open_array(folder, mode="r", zarr_format=3)
            sound = (array.shape, array.chunks, str(array.dtype)) == (shape, chunks, self.dtype)
        except Exception as error:  # Zarr raises many kinds of errors on what is damaged
            raise TwoscaleError(f"{folder} is not a readable Zarr array") from error
        if not sound:
            raise TwoscaleError(f"{folder} does not match the dataset's description")
        self._array = array

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return consecutive samples, or raise whatever damaged files make codecs raise."""
        for index in range(start // self.chunk, -(-stop // self.chunk)):
            self._refuse_strange(self.folder.joinpath("c", str(index), *self._within))
        return np.asarray(self._array[start:stop])

    def _refuse_strange(self, file: Path) -> None:
        """Refuse a file that is none, or that claims to unpack to another size than a chunk's.

        A chunk of zeros has no file; whether it should have one is seen by its checksum.
        """
        try:
            found = os.lstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise ValueError(f"{file} is not a regular file")
            with open(file, "rb", buffering=0) as handle:
                header = handle.read(_BLOSC_HEADER)
        except FileNotFoundError:
            return
        except OSError as error:
            raise unreadable(file, error) from error
        unpacked, packed = (int.from_bytes(header[k : k + 4], "little") for k in (4, 12))
        if (unpacked, packed) != (self._chunk_bytes, found.st_size):
            raise ValueError(f"{file} has other sizes than those of a chunk")


def _is_ours(described: dict[str, Any], shape: tuple[int, ...], chunks: tuple[int, ...]) -> bool:
    """Say whether Zarr's description of an array is the one we write for this shape."""
    expected = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": list(shape),
        "data_type": StoredChunks.dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": _SEPARATOR,
    }
    codecs = described.get("codecs")
    return (
        all(described.get(key) == value for key, value in expected.items())
        and not described.get("storage_transformers")
        and isinstance(codecs, list)
        and all(isinstance(codec, dict) for codec in codecs)
        and [codec.get("name") for codec in codecs] == ["bytes", "blosc"]
    )
