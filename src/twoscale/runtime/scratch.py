"""Where a fit keeps its large tensors: in memory, or in scratch files that are mapped into it."""

from __future__ import annotations

import errno
import math
import os
import shutil
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.runtime.memory import size_text

_SHARE = 16  # a tensor of more than one part in so many of the memory is a file
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)  # of some file systems
_PART_VALUES = 2**22  # numbers of a tensor on disk that are computed with together: 16 MiB


class Scratch:
    """Makes the tensors of a fit that are as long as its data.

    On a CPU a tensor of more than a sixteenth of `memory` is a raw file, mapped into memory. The
    system reads and writes its pages as needed, and takes their memory back at any time. Where the
    system allows it, a file loses its name at once: it ends with its tensor, even if the process is
    killed. Tensors on a GPU stay there.

    Parameters
    ----------
    folder
        Where the files lie. It is made with the first file, and removed by `close`. By default
        there are no files.
    memory
        The bytes that the fit may use; by default there is no limit, and all is in memory.

    Examples
    --------
    >>> import torch
    >>> Scratch().empty(3, 2, like=torch.ones(1)).shape
    torch.Size([3, 2])
    """

    def __init__(self, folder: Path | None = None, memory: int | None = None) -> None:
        self.folder = folder
        self.memory = memory
        self.on_disk = folder is not None and memory is not None  # whether large tensors are files
        self.largest = (memory or 0) // _SHARE if self.on_disk else math.inf  # bytes in memory

    def empty(self, *shape: int, like: Tensor, device: torch.device | None = None) -> Tensor:
        """Return a tensor with values to be written, of the kind of another."""
        device = device or like.device
        size = math.prod(shape) * like.element_size()
        if device.type != "cpu" or size <= self.largest:
            return like.new_empty(shape, device=device)
        return self._mapped(math.prod(shape), size, like.dtype).view(shape)

    def zeros(self, *shape: int, like: Tensor) -> Tensor:
        """Return a tensor of zeros, of the kind of another."""
        size = math.prod(shape) * like.element_size()
        if like.device.type != "cpu" or size <= self.largest:
            return like.new_zeros(shape)
        return self.empty(*shape, like=like)  # so is a new file

    def _mapped(self, count: int, size: int, dtype: torch.dtype) -> Tensor:
        assert self.folder is not None
        self.require([size])
        self.folder.mkdir(exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=self.folder)
        try:
            _allocate(descriptor, size)
            return torch.from_file(name, shared=True, size=count, dtype=dtype)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise self._full(size) from error
        finally:
            os.close(descriptor)
            with suppress(OSError):  # Windows keeps the names of files in use
                os.unlink(name)

    def require(self, sizes: Iterable[int]) -> None:
        """Raise if there is no room on disk for those of some tensors, in bytes, that are files."""
        needed = sum(size for size in sizes if size > self.largest)
        if needed and self.folder is not None and needed > _free(self.folder):
            raise self._full(needed) from OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _full(self, needed: int) -> TwoscaleError:
        assert self.folder is not None
        place = _existing(self.folder)
        return TwoscaleError(
            f"this fit needs {size_text(needed)} of disk for what does not fit the memory, and "
            f"{size_text(_free(place))} are free at {place}: make room there, write to another "
            "disk, or allow more memory"
        )

    def rows(self, samples: int, values: int) -> int:
        """Return how many samples of so many single-precision values to compute with at once.

        That is all of them if a tensor of that size is in memory, so that nothing is cut up there.
        """
        if 4 * samples * values <= self.largest:
            return samples
        return max(1, _PART_VALUES // max(values, 1))

    def close(self) -> None:
        """Remove the folder; tensors that are still in use stay valid."""
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)


IN_MEMORY = Scratch()
"""Keeps everything in memory."""


def _allocate(descriptor: int, size: int) -> None:
    """Give an empty file its size; raise if the disk has no room, where it can be reserved."""
    if hasattr(os, "posix_fallocate"):  # writing to a hole of a full disk would end Python
        try:
            os.posix_fallocate(descriptor, 0, size)
            return
        except OSError as error:
            if error.errno not in _CANNOT_RESERVE:
                raise
    os.ftruncate(descriptor, size)


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())


def _free(folder: Path) -> int:
    return shutil.disk_usage(_existing(folder)).free
