import numpy as np
import pytest
from scipy.io import loadmat, savemat
from scipy.sparse import eye_array

from twoscale.data import import_fields
from twoscale.data.readers.mat import open_mat
from twoscale.errors import TwoscaleError
from twoscale.runtime import memory

VALUES = np.random.default_rng(0).standard_normal((6, 8, 10))


def refused(folder, words):
    with pytest.raises(TwoscaleError, match=words):
        import_fields([folder / "f.mat"], folder / "d", inputs="a", outputs="u")
    assert [path.name for path in folder.iterdir()] == ["f.mat"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"b": 3}, "is a MATLAB struct"),
        (np.array([{}, "x"], dtype=object), "is a MATLAB cell"),
        ("text", "is a MATLAB char"),
        (eye_array(8), "is a MATLAB sparse"),
        (np.zeros((0, 8, 8)), "is without values"),
        (VALUES * 1j, "must be real numbers"),
        (np.zeros((6, 8, 8, 2, 2)), "of fields in three dimensions give slices"),
    ],
)
def test_variables_that_are_no_fields(tmp_path, values, words):
    savemat(tmp_path / "f.mat", {"a": VALUES, "u": values})
    refused(tmp_path, words)


def test_packed_variables_must_fit_the_memory(tmp_path, monkeypatch):
    savemat(tmp_path / "f.mat", {"a": VALUES, "u": VALUES}, do_compression=True)
    monkeypatch.setattr(memory, "available_memory", lambda: 3000)
    refused(tmp_path, r"'a' of .* needs 3\.84 kB of memory, 3 kB are free: .* -v7\.3")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        VALUES,
        VALUES.astype(np.float32),
        (100 * VALUES).astype(np.int16),
        (VALUES > 0),
        np.uint8([[[7]]]),
        np.zeros((3, 0)),
        {"b": 3},
    ],
)
def test_variables_are_those_scipy_reads(tmp_path, values, compressed):
    content = {"long_name_of_a_variable": 1.0, "a": values, "b": VALUES, "t": "text"}
    savemat(tmp_path / "f.mat", content, do_compression=compressed)
    with open_mat(tmp_path / "f.mat") as archive:
        assert archive.names() == list(content)
        assert np.array_equal(archive.find("b").array, VALUES)
        if isinstance(values, np.ndarray) and values.size:
            assert np.array_equal(archive.find("a").array, values)
            assert archive.find("a").array.shape == values.shape


def test_big_endian_files(tmp_path):
    savemat(tmp_path / "f.mat", {"a": np.arange(24.0).reshape(2, 3, 4)})
    head, body = np.split(np.frombuffer((tmp_path / "f.mat").read_bytes(), np.uint8), [128])
    tags, values = np.split(body, [len(body) - 24 * 8])
    tags = tags.view("<u4").astype(">u4")
    swapped = bytes(head[:124]) + b"\x01\x00MI" + tags.tobytes()
    # The name, one letter inside of a tag, is text: it is not swapped.
    swapped = swapped.replace(b"\x00\x00\x00a", b"a\x00\x00\x00")
    (tmp_path / "f.mat").write_bytes(swapped + values.view("<f8").astype(">f8").tobytes())
    assert np.array_equal(loadmat(tmp_path / "f.mat")["a"], np.arange(24.0).reshape(2, 3, 4))
    with open_mat(tmp_path / "f.mat") as archive:
        assert np.array_equal(archive.find("a").array, np.arange(24.0).reshape(2, 3, 4))


def test_a_changed_value_of_a_packed_variable_is_noticed(tmp_path):
    savemat(tmp_path / "f.mat", {"a": VALUES, "u": VALUES}, do_compression=True)
    content = bytearray((tmp_path / "f.mat").read_bytes())
    content[len(content) // 4] ^= 1
    (tmp_path / "f.mat").write_bytes(content)
    refused(tmp_path, r"f\.mat is damaged")


def test_files_before_version_5(tmp_path):
    savemat(tmp_path / "f.mat", {"a": VALUES[0]}, format="4")
    refused(tmp_path, "not the header of a MAT file of version 5 or later")
