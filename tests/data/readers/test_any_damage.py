"""Whatever happens to a file: its values are read, or one sentence says that it is damaged."""

import io
import tempfile
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.io import savemat

from tests.damage import changed, read_or_refused, repeatable
from twoscale.data.readers.archive import reading
from twoscale.data.readers.opening import open_archive

VALUES = np.arange(200, dtype=np.float32).reshape(2, 10, 10)


def written(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def write_hdf5(file):
    with h5py.File(file, "w") as made:
        made["group/a"] = VALUES
        made.create_dataset("u", data=VALUES, chunks=(1, 10, 10), fletcher32=True)


CONTENTS = {
    "plain.mat": written(lambda file: savemat(file, {"a": VALUES, "u": VALUES})),
    "packed.mat": written(lambda file: savemat(file, {"a": VALUES}, do_compression=True)),
    "plain.npz": written(lambda file: np.savez(file, a=VALUES, u=np.asfortranarray(VALUES))),
    "packed.npz": written(lambda file: np.savez_compressed(file, a=VALUES, u=VALUES)),
    "f.h5": written(write_hdf5),
}


@pytest.mark.parametrize("name", CONTENTS)
@repeatable
@given(data=st.data())
def test_any_damage_is_told_without_a_traceback(name, data):
    """MAT and HDF5 files have no checksums of values: only changes in npz are always noticed."""
    sound = CONTENTS[name]
    start = data.draw(st.integers(0, len(sound) - 1))  # damage anywhere, the ends included
    content = sound[:start] + data.draw(changed(sound[start : start + 40]))
    content += sound[start + 40 :] if data.draw(st.booleans()) else b""

    def read(file):
        with open_archive([file]) as archive, reading(file):
            archive.names()
            found = [archive.find(key) for key in ("a", "u")]
            return [np.array(one.array[0:2]) for one in found if one is not None]

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_bytes(content)
        found = read_or_refused(lambda: read(file)) or []
    assert not name.endswith("npz") or all(np.array_equal(array, VALUES) for array in found)
