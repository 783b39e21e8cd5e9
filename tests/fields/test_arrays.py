"""Arrays of every kind come in as the same numbers."""

import numpy as np
import pytest
import torch

from twoscale import Grid, TwoscaleError
from twoscale.domain.space import Space
from twoscale.fields import arrays
from twoscale.fields.arrays import StoredRows, as_array
from twoscale.fields.samples import as_samples, read_shape, rows_or_channels
from twoscale.fields.source import in_memory

h5py, xarray, zarr = map(pytest.importorskip, ("h5py", "xarray", "zarr"))

VALUES = np.random.default_rng(0).standard_normal((5, 4, 6))


class Wrapped:
    """Anything that NumPy can ask for an array."""

    def __array__(self, dtype=None, copy=None):
        return VALUES


def in_hdf5(folder):
    with h5py.File(folder / "f.h5", "w") as file:
        file["x"] = VALUES
    return h5py.File(folder / "f.h5")["x"]


def mapped(folder):
    np.save(folder / "x.npy", VALUES)
    return np.load(folder / "x.npy", mmap_mode="r")


STORED = {
    "zarr": lambda folder: zarr.create_array(str(folder / "x.zarr"), data=VALUES, chunks=(2, 4, 6)),
    "hdf5": in_hdf5,
    "memory map": mapped,
}
KINDS = STORED | {
    "numpy": lambda folder: VALUES,
    "big-endian": lambda folder: VALUES.astype(">f8"),
    "torch": lambda folder: torch.from_numpy(VALUES),
    "xarray": lambda folder: xarray.DataArray(VALUES, dims=("n", "y", "x")),
    "list": lambda folder: VALUES.tolist(),
    "tuple of arrays": lambda folder: tuple(VALUES),
    "list of tensors": lambda folder: list(torch.from_numpy(VALUES)),
    "own": lambda folder: Wrapped(),
}


def test_an_array_of_a_closed_file_is_refused(tmp_path):
    array = in_hdf5(tmp_path)
    array.file.close()
    with pytest.raises(TwoscaleError, match="an array of a file needs the file open"):
        as_samples(array, "input")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_gives_the_same_samples(kind, tmp_path):
    samples = as_samples(KINDS[kind](tmp_path), "input")
    assert samples.rank == 3
    assert samples.space == Space(Grid((4, 6)))
    np.testing.assert_array_equal(samples.batch().fields[:, 0].numpy(), VALUES.astype(np.float32))


@pytest.mark.parametrize("kind", STORED)
def test_what_is_too_large_for_the_memory_stays_on_disk(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "available_memory", lambda: 400)
    monkeypatch.setattr(arrays, "chunk_length", lambda *sides: 2)
    stored = as_array(KINDS[kind](tmp_path), "input fields")
    assert isinstance(stored, StoredRows)
    some = stored[np.array([0, 3, 4])]
    samples = as_samples(some, "input")
    assert not in_memory(samples.fields)
    assert [len(chunk) for chunk in samples.fields.chunks()] == [1, 1, 1]
    expected = VALUES[[0, 3, 4]].astype(np.float32)
    np.testing.assert_array_equal(samples.batch().fields[:, 0].numpy(), expected)
    assert {chunk.device.type for chunk in samples.to(torch.device("meta")).fields.chunks()} == {
        "meta"
    }


def test_a_bad_value_on_disk_is_found_when_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "available_memory", lambda: 400)
    bad = VALUES.copy()
    bad[3, 2, 2] = np.nan
    array = zarr.create_array(str(tmp_path / "x.zarr"), data=bad)
    samples = as_samples(array, "input")
    with pytest.raises(TwoscaleError, match="the input fields contain NaN or infinite values"):
        samples.batch()


@pytest.mark.parametrize(
    ("array", "message"),
    [
        ([[1.0, 2.0], [3.0]], "are a list whose entries differ in shape: all samples must have"),
        ([torch.zeros(2), torch.zeros(3)], r"differ in shape \(\(2,\), \(3,\)\)"),
        ([["a"]], "must be real numbers, got dtype <U1"),
        (np.ma.masked_array([1.0]), "are a masked array: fill in"),
        ("x.npy", "must be an array, got str: read a file with"),
        (
            xarray.DataArray(VALUES, dims=("y", "x", "sample")),
            r"have the axes y, x, sample, .* call transpose\('sample', ...\)",
        ),
        (xarray.DataArray(VALUES, dims=("n", "x", "c")), r"transpose\('n', 'c', ...\)"),
        (np.float64(3), "must be an array, got float64"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(array, message):
    with pytest.raises(TwoscaleError, match=f"the input fields {message}|{message}"):
        as_array(array, "input fields")


IMAGE, CHANNELS = Space(Grid((8, 9))), Space(Grid((8, 9)), 2)
LINE, LINES = Space(Grid((1, 9))), Space(Grid((1, 9)), 2)


@pytest.mark.parametrize(
    ("shape", "space", "read", "single"),
    [
        ((5, 8, 9), IMAGE, (5, 1, 8, 9), False),
        ((5, 1, 8, 9), IMAGE, (5, 1, 8, 9), False),
        ((1, 8, 9), IMAGE, (1, 1, 8, 9), False),
        ((8, 9), IMAGE, (1, 1, 8, 9), True),
        ((2, 8, 9), CHANNELS, (1, 2, 8, 9), True),
        ((2, 2, 8, 9), CHANNELS, (2, 2, 8, 9), False),
        ((5, 9), LINE, (5, 1, 1, 9), False),
        ((1, 9), LINE, (1, 1, 1, 9), False),
        ((9,), LINE, (1, 1, 1, 9), True),
        ((5, 1, 9), LINE, (5, 1, 1, 9), False),
        ((5, 2, 9), LINES, (5, 2, 1, 9), False),
        ((5, 2, 1, 9), LINES, (5, 2, 1, 9), False),
        ((2, 9), LINES, (1, 2, 1, 9), True),
        ((2, 1, 9), LINES, (1, 2, 1, 9), True),
    ],
    ids=str,
)
def test_a_known_space_says_how_axes_are_read(shape, space, read, single):
    assert read_shape(shape, "input", space) == (read, single)
    wider = (*shape[:-1], 2 * shape[-1])
    expected = (*read[:-1], 2 * read[-1])
    assert read_shape(wider, "input", space, any_grid=True) == (expected, single)


def test_the_training_decides_where_one_sample_can_be_read_both_ways():
    for rank, single in ((4, True), (3, False), (None, False)):
        assert read_shape((1, 8, 9), "input", IMAGE, rank=rank) == ((1, 1, 8, 9), single)
    assert read_shape((5, 8, 9), "input", IMAGE, rank=4) == ((5, 1, 8, 9), False)


@pytest.mark.parametrize(
    ("shape", "told"),
    [((60, 3, 64), True), ((60, 3, 9), False), ((60, 16, 64), False), ((60, 1, 64), False)],
)
def test_few_long_rows_are_perhaps_channels(shape, told):
    hint = rows_or_channels(shape, "input")
    assert (hint is not None) == told
    if told:
        seen, advice = hint
        assert "3 rows of 64 nodes" in seen
        assert "3 channels" in advice
