"""PNG and TIFF images, one file for each sample or one file of many pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from twoscale.data.readers.archive import SingleArchive
from twoscale.data.readers.base import Index, quietly, reading
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.files import open_file

try:
    from PIL import Image, UnidentifiedImageError
except ImportError as error:
    raise missing_extra("pillow", "data") from error

_FORMATS = ("PNG", "TIFF")
_PLAIN = {"1": "bool", "L": "u1", "I": "i4", "F": "f4", "I;16": "u2", "I;16B": "u2", "I;16L": "u2"}
_COLOURED = {"LA": 2, "RGB": 3, "RGBA": 4}


@contextmanager
def open_image(file: Path) -> Iterator[SingleArchive]:
    """Give the pages of an image file as one array; a single page has no axis of samples."""
    with open_file(file) as handle:
        with reading(file), quietly():
            image = _opened(file, handle)
            pages = ImagePages(file, image)
        grid = ("height", "width", *(("channel",) if image.mode in _COLOURED else ()))
        if pages.shape[0] > 1:
            yield SingleArchive(file.stem, pages, ("sample", *grid))
        else:
            with reading(file), quietly():
                first = pages[(slice(0, 1),)][0]
            yield SingleArchive(file.stem, first, grid)


def _opened(file: Path, handle: BinaryIO) -> Image.Image:
    try:
        return Image.open(handle, formats=_FORMATS)
    except UnidentifiedImageError as error:
        raise TwoscaleError(f"{file} is damaged, or neither PNG nor TIFF") from error


class ImagePages:
    """The pages of an image file, read one by one."""

    def __init__(self, file: Path, image: Any) -> None:
        if image.mode not in _PLAIN and image.mode not in _COLOURED:
            raise TwoscaleError(
                f"{file} has colours of the kind {image.mode}: save it as grey values or as RGB"
            )
        self.file = file
        self.image = image
        colours = (_COLOURED[image.mode],) if image.mode in _COLOURED else ()
        self.dtype = np.dtype(_PLAIN.get(image.mode, "u1"))
        self.shape = (getattr(image, "n_frames", 1), image.height, image.width, *colours)

    def __getitem__(self, index: Index) -> np.ndarray:
        first, *others = index
        found = []
        for page in range(*first.indices(self.shape[0])):
            self.image.seek(page)
            values = np.asarray(self.image)
            if values.shape != self.shape[1:]:
                raise TwoscaleError(
                    f"all pages of {self.file} must have one size: the first has {self.shape[1:]}, "
                    f"page {page} has {values.shape}"
                )
            found.append(values[tuple(others)])
        return np.stack(found)
