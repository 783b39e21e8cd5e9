"""The file of a study's fields: read whole or refused."""

import io
import os
import zipfile

import numpy as np
import pytest

from twoscale import TwoscaleError
from twoscale_lab.study import samples
from twoscale_lab.study.samples import read_fields, write_field_file

HUGE = b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (%s,), }"


def packed(**members):
    """Return the bytes of an archive with these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def array(values):
    buffer = io.BytesIO()
    np.save(buffer, values, allow_pickle=True)
    return buffer.getvalue()


def npy_of(shape):
    """Return an array's header that claims a shape, without the array."""
    header = HUGE % shape
    return header + b" " * (127 - len(header)) + b"\n"


GOOD = packed(**{"a.npy": array(np.arange(3.0))})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nothing",
        GOOD[:-30],
        GOOD.replace(b"NUMPY", b"NUMPX"),
        array(np.arange(3.0)),
        packed(**{"note.txt": b"not an array"}),
        packed(**{"a.npy": array(np.array(["text"]))}),
        packed(**{"a.npy": array(np.array([{}], dtype=object))}),
        packed(**{"a.npy": npy_of(b"10" * 9)}),
        packed(**{"a.npy": npy_of(b"-5")}),
        packed(**{"a.npy": npy_of(b"2.5")}),
        packed(**{"poisson-16/sample.npy": array(np.arange(2))}),
        packed(**{"poisson-16/sample.npy": array(np.array(np.nan))}),
    ],
    ids=lambda content: str(len(content)),
)
def test_a_hostile_file_is_told(content, tmp_path):
    file = tmp_path / "tiny.npz"
    file.write_bytes(content)
    with pytest.raises(TwoscaleError, match=r"tiny\.npz is damaged: remove it and run the study"):
        read_fields(file)


def test_a_file_of_zeros_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "_LARGEST", 10**5)
    np.savez_compressed(tmp_path / "tiny.npz", a=np.zeros(10**5))
    with pytest.raises(TwoscaleError, match="is damaged"):
        read_fields(tmp_path / "tiny.npz")


def test_what_is_no_file_is_told(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    os.mkfifo(tmp_path / "pipe.npz")
    for name in ("folder.npz", "pipe.npz"):
        with pytest.raises(TwoscaleError, match=f"{name} is .*"):
            read_fields(tmp_path / name)
    assert read_fields(tmp_path / "none.npz") == {}


def test_fields_come_back(tmp_path):
    fields = {"poisson-16/sample": np.array(3), "poisson-16/truth": np.ones((2, 2))}
    write_field_file(tmp_path / "tiny.npz", fields)
    found = read_fields(tmp_path / "tiny.npz")
    assert found.keys() == fields.keys()
    for name, values in fields.items():
        np.testing.assert_array_equal(found[name], values)
