import os
from pathlib import Path

import h5py
import numpy as np
import pytest

from twoscale.data import import_fields
from twoscale.data.readers import hdf5
from twoscale.errors import TwoscaleError
from twoscale.runtime import memory

VALUES = np.random.default_rng(0).standard_normal((6, 8, 10))


@pytest.fixture(params=["f.h5", "f.mat"], ids=["HDF5", "MATLAB 7.3"])
def file(request, tmp_path):
    return tmp_path / request.param


def refused(file, words, key="u"):
    before = sorted(file.parent.iterdir())
    with pytest.raises(TwoscaleError, match=words):
        import_fields([file], file.parent / "d", inputs="a", outputs=key)
    assert sorted(file.parent.iterdir()) == before


@pytest.fixture
def opened(file):
    """An HDF5 file with a sound input, to which a test adds an output."""
    with h5py.File(file, "w") as made:
        made["a"] = VALUES
        yield made


def virtual(file):
    """Where a source is missing, it reads as zeros."""
    layout = h5py.VirtualLayout(VALUES.shape, np.float64)
    layout[:] = h5py.VirtualSource("missing.h5", "u", VALUES.shape)
    file.create_virtual_dataset("u", layout)


def external(file):
    secret = Path(file.filename).with_name("secret")
    secret.write_bytes(bytes(VALUES.nbytes))
    place = [(os.fspath(secret), 0, VALUES.nbytes)]
    file.create_dataset("u", VALUES.shape, np.float64, external=place)


def linked(file):
    """Whoever opened the pipe would wait for ever."""
    os.mkfifo(Path(file.filename).with_name("pipe.h5"))
    file["u"] = h5py.ExternalLink("pipe.h5", "/u")
    file["group"] = h5py.ExternalLink("pipe.h5", "/")
    file["soft"] = h5py.SoftLink("/group/values")


def unwritten(file):
    file.create_dataset("u", VALUES.shape, np.float64)
    file.create_dataset("chunked", VALUES.shape, np.float64, chunks=(2, 8, 10))
    file.create_dataset("part", VALUES.shape, np.float64, chunks=(2, 8, 5))[:4] = VALUES[:4]


@pytest.mark.parametrize(
    ("write", "key", "words"),
    [
        (virtual, "u", "'u' of .* is a virtual dataset.* copy its values into one file"),
        (external, "u", "keeps its values in other files.* copy its values into one file"),
        *(
            (linked, key, "is a link to another file.* give that file")
            for key in ("u", "group/u", "/group/./u")
        ),
        (linked, "v", r"it holds a \(\d+, 8, \d+\)$"),
        (linked, "soft", "is a link: give the array's own name, '/group/values'"),
        (unwritten, "u", "'u' of .* was never written"),
        (unwritten, "chunked", "was not completely written: 0 of its 3"),
        (unwritten, "part", "was not completely written: 4 of its 6 chunks are there"),
    ],
)
def test_values_that_are_not_in_the_file_are_refused(file, opened, write, key, words):
    write(opened)
    opened.close()
    refused(file, words, key)


def test_chunks_must_fit_the_memory(file, opened, monkeypatch):
    opened.create_dataset("u", data=VALUES, chunks=VALUES.shape)
    opened.close()
    monkeypatch.setattr(memory, "available_memory", lambda: 3000)
    refused(file, r"one chunk of 'u' of .* needs 3\.84 kB of memory, 3 kB are free")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros((0, 8, 8)), "is without values"),
        (np.zeros((6, 0, 8)), "is without values"),
        (h5py.Empty("f8"), "is without values"),
        (np.float64(3), r"must have shape \(samples, height, width\)"),
        (np.array([b"x"] * 6), "must be real numbers"),
        (np.zeros(6, "f8,i4"), "must be real numbers"),
        (["x", "y"], "must be real numbers"),
    ],
)
def test_arrays_that_are_no_fields(file, opened, values, words):
    opened["u"] = values
    opened.close()
    refused(file, words)


def test_groups_and_types_are_no_arrays(file, opened):
    opened.create_group("group")
    opened["type"] = np.dtype(np.float64)
    opened.close()
    for key in ("group", "type", "a/b", "", "/"):
        refused(file, rf"has no array '{key}' \(output\): it holds a \(.*\)$", key)


def test_names_of_many_arrays_and_of_circles(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as made:
        group = made.create_group("g")
        group["self"] = group
        group["top"] = made
        for name in range(150):
            group[f"{name:03}"] = 0
    with hdf5.open_hdf5(tmp_path / "f.h5") as archive:
        assert archive.names() == [f"g/{name:03}" for name in range(100)]
        assert archive.find("g/self/top/g/000").array.shape == ()
    refused(tmp_path / "f.h5", "it holds g/000.* g/019 and 80 more$")


def test_compressed_and_compact_arrays_are_read(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as made:
        made.create_dataset("a", data=VALUES, chunks=(4, 8, 3), compression="gzip", shuffle=True)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple(VALUES.shape)
        array = h5py.h5d.create(made.id, b"u", h5py.h5t.NATIVE_DOUBLE, space, plist)
        array.write(h5py.h5s.ALL, h5py.h5s.ALL, VALUES)
    dataset = import_fields([tmp_path / "f.h5"], tmp_path / "d", inputs="a", outputs="u")
    for name in ("input", "output"):
        assert np.array_equal(dataset.read(name, 0, 6), VALUES.astype(np.float32))
