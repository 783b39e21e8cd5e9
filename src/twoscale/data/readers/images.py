"""PNG and TIFF images, one file for each sample or one file of many pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data.readers.archive import ArrayArchive, ArrayView, Index, quietly, reading
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
def open_image(file: Path) -> Iterator[ArrayArchive]:
    """Give the pages of an image file as one array; a single page has no axis of samples."""
    with open_file(file) as handle:
        with reading(file), quietly():
            try:
                image = Image.open(handle, formats=_FORMATS)
            except UnidentifiedImageError as error:
                raise TwoscaleError(f"{file} is damaged, or neither PNG nor TIFF") from error
            pages: Any = _pages(file, image)
            axes = ("sample", "height", "width", "channel")[: len(pages.shape)]
            if pages.shape[0] == 1:
                pages, axes = pages[(slice(0, 1),)][0], axes[1:]
        yield ArrayArchive({file.stem: pages}, single=True, axes={file.stem: axes})


def _pages(file: Path, image: Any) -> ArrayView:
    """Return the pages of an image file, read one by one."""
    if image.mode not in _PLAIN and image.mode not in _COLOURED:
        raise TwoscaleError(
            f"{file} has colours of the kind {image.mode}: save it as grey values or as RGB"
        )
    colours = (_COLOURED[image.mode],) if image.mode in _COLOURED else ()
    shape = (getattr(image, "n_frames", 1), image.height, image.width, *colours)

    def read(index: Index) -> np.ndarray:
        pages = []
        for page in range(*index[0].indices(shape[0])):
            image.seek(page)
            values = np.asarray(image)
            if values.shape != shape[1:]:
                sizes = f"the first has {shape[1:]}, page {page} has {values.shape}"
                raise TwoscaleError(f"all pages of {file} must have one size: {sizes}")
            pages.append(values[index[1:]])
        return np.stack(pages)

    return ArrayView(shape, np.dtype(_PLAIN.get(image.mode, "u1")), read)
