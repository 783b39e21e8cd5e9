import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from twoscale.data import import_fields
from twoscale.data.readers.npz import open_npz
from twoscale.errors import TwoscaleError
from twoscale.runtime import memory

VALUES = np.random.default_rng(0).standard_normal((6, 8, 10))


def packed(save=np.savez, **arrays):
    """The bytes of an npz file."""
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def import_(folder, file="f.npz"):
    return import_fields([folder / file], folder / "d", inputs="a", outputs="u")


def refused(folder, words):
    with pytest.raises(TwoscaleError, match=words):
        import_(folder)
    assert [path.name for path in folder.iterdir()] == ["f.npz"]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_are_read_in_parts_in_any_order_of_axes(tmp_path, save, order):
    save(tmp_path / "f.npz", a=np.array(VALUES, order=order), u=VALUES[:, :, ::-1])
    with open_npz(tmp_path / "f.npz") as archive:
        assert archive.names() == ["a", "u"]
        for name, values in (("a", VALUES), ("u", VALUES[:, :, ::-1])):
            array = archive.find(name).array
            parts = [array[slice(0, 2)], array[slice(2, 5)], array[slice(5, 6)]]
            assert np.array_equal(np.concatenate(parts), values)
        assert archive.find("b") is None


@pytest.mark.parametrize(
    "values", [VALUES, np.asfortranarray(VALUES), np.array(3), np.zeros(0), np.zeros((0, 0))]
)
def test_whole_arrays_come_as_they_were_written(tmp_path, values):
    np.savez(tmp_path / "f.npz", a=values)
    with open_npz(tmp_path / "f.npz") as archive:
        found = archive.values("a")
    assert found.shape == values.shape
    assert found.dtype == values.dtype
    assert np.array_equal(found, values)


def test_a_small_file_of_much_data_takes_little_memory(tmp_path):
    zeros = np.zeros((64, 256, 256), np.float32)
    np.savez_compressed(tmp_path / "f.npz", a=zeros)
    assert (tmp_path / "f.npz").stat().st_size < zeros.nbytes / 500
    tracemalloc.start()
    try:
        with open_npz(tmp_path / "f.npz") as archive:
            array = archive.find("a").array
            assert all(not array[slice(k, k + 4)].any() for k in range(0, 64, 4))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < zeros.nbytes / 4


def test_what_must_be_held_as_a_whole_must_fit_the_memory(tmp_path, monkeypatch):
    np.savez(tmp_path / "f.npz", a=np.asfortranarray(VALUES), u=VALUES)
    monkeypatch.setattr(memory, "available_memory", lambda: VALUES.nbytes - 1)
    refused(tmp_path, "in Fortran's order needs 3.84 kB of memory, 3.84 kB are free: save it in C")


def test_members_that_lie_about_their_size(tmp_path):
    """The header says 10^12 samples; the zip file says what is there."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 8, 8), }"
    member = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(512)
    with zipfile.ZipFile(tmp_path / "f.npz", "w") as archive:
        archive.writestr("a.npy", member)
        archive.writestr("u.npy", member)
    refused(tmp_path, r"f\.npz is damaged: 'a' claims the shape \(1000000000000, 8, 8\)")


def test_zip_files_that_lie_about_their_members(tmp_path):
    """Header and directory agree on 10^6 samples; the data end after six."""
    content = bytearray(packed(a=VALUES))
    claimed = VALUES.nbytes // 6 * 10**6
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**6}, 8, 10), }}"
    start = content.index(b"{'descr'")
    content[start : start + 118] = header.encode().ljust(117) + b"\n"
    directory = content.index(b"PK\x01\x02")
    for offset in (20, 24):
        place = slice(directory + offset, directory + offset + 4)
        content[place] = (128 + claimed).to_bytes(4, "little")
    (tmp_path / "f.npz").write_bytes(content)
    with pytest.raises(TwoscaleError, match=r"f\.npz is damaged or not what its name says"):
        import_fields([tmp_path / "f.npz"], tmp_path / "d", inputs="a", outputs="a")
    assert [path.name for path in tmp_path.iterdir()] == ["f.npz"]


def test_members_that_are_no_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "f.npz", "w") as archive:
        archive.writestr("a.npy", b"hello world")
        archive.writestr("u", b"hello")
    refused(tmp_path, "damaged or not what its name says: .*magic string is not correct")
    with open_npz(tmp_path / "f.npz") as archive:
        assert archive.names() == ["a"]


def test_ways_of_packing_that_numpy_has_not(tmp_path):
    np.savez(tmp_path / "f.npz", a=VALUES, u=VALUES)
    content = bytearray((tmp_path / "f.npz").read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "f.npz").write_bytes(content)
    refused(tmp_path, "'a' of .* is encrypted")
    with zipfile.ZipFile(tmp_path / "f.npz", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.npy", b"hello")
    refused(tmp_path, "compressed in another way than NumPy does")


def test_a_changed_value_is_noticed(tmp_path):
    content = bytearray(packed(a=VALUES, u=VALUES))
    content[content.index(VALUES[3].tobytes())] ^= 1
    (tmp_path / "f.npz").write_bytes(content)
    refused(tmp_path, "Bad CRC-32 for file 'a.npy'")
