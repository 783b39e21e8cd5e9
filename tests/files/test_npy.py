import io
import os
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.damage import changed, read_or_refused, repeatable
from twoscale.errors import TwoscaleError
from twoscale.files.npy import open_npy, read_npy_header

VALUES = np.arange(2 * 3 * 4.0).reshape(2, 3, 4)


def npy(values, **options):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(values), **options)
    return file.getvalue()


def with_header(header, values=b"", version=(1, 0)):
    """An npy file with a header of our own words."""
    text = header.encode()
    length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + length + text + values


@pytest.mark.parametrize(
    "values",
    [
        VALUES,
        np.asfortranarray(VALUES),
        VALUES.astype(">f4"),
        VALUES.astype(np.int8),
        VALUES[0, 0, 0],
        VALUES > 3,
        VALUES * 1j,
    ],
)
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_arrays_are_mapped(tmp_path, values, version):
    (tmp_path / "x.npy").write_bytes(npy(values, version=version))
    found = open_npy(tmp_path / "x.npy")
    assert found.dtype == values.dtype
    assert found.shape == values.shape
    assert np.array_equal(found, values)
    assert isinstance(found, np.memmap)
    assert not found.flags.writeable


def test_a_header_is_read_without_its_values():
    file = io.BytesIO(npy(VALUES))
    header = read_npy_header(file)
    assert header.shape == (2, 3, 4)
    assert header.nbytes == VALUES.nbytes
    assert file.tell() == header.offset == len(npy(VALUES)) - VALUES.nbytes


def several():
    file = io.BytesIO()
    np.savez(file, a=VALUES)
    return file.getvalue()


PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': %s}"

REFUSED = {
    "nothing": (b"", "damaged"),
    "cut short": (npy(VALUES)[:-1], "192 B of values, it has 191 B"),
    "too long": (npy(VALUES) + b"x", "192 B of values, it has 193 B"),
    "objects": (npy(np.array([{}, None]), allow_pickle=True), "type object"),
    "named fields": (npy(np.zeros(3, "f8,i4")), "not plain numbers"),
    "negative": (with_header(PLAIN % "(-1, 8, 8)"), r"\(-1, 8, 8\)"),
    "true": (with_header(PLAIN % "(True, 1)", bytes(8)), "claims the shape"),
    "huge": (with_header(PLAIN % "(10**9, 10**9)"), "not a readable npy file"),
    "absurd": (with_header(PLAIN % f"({10**18}, {10**18})", bytes(8)), "header claims"),
    "empty": (npy(np.zeros((0, 8, 8))), r"\(0, 8, 8\)"),
    "deep": (with_header("(" * 5000), "not a readable npy file"),
    "long header": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "4294967295"),
    "version 3": (npy(VALUES, version=(3, 0)), r"\(3, 0\)"),
    "several arrays": (several(), "several arrays"),
    "a pipe": (None, "is a pipe"),
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_files_that_are_refused(tmp_path, content, words):
    if content is None:
        os.mkfifo(tmp_path / "x.npy")
    else:
        (tmp_path / "x.npy").write_bytes(content)
    with pytest.raises(TwoscaleError, match=rf"x\.npy .*{words}"):
        open_npy(tmp_path / "x.npy")


@repeatable
@given(st.binary(max_size=80) | changed(npy(VALUES)) | changed(npy(VALUES)[:128]))
def test_any_content_is_mapped_or_refused_within_little_memory(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        path.write_bytes(content)
        tracemalloc.start()
        try:
            found = read_or_refused(lambda: open_npy(path))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert found is None or found.nbytes < len(content)
    assert peak < 2**21
