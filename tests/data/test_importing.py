import os
import warnings
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.io import savemat

from twoscale.data import import_fields
from twoscale.errors import TwoscaleError
from twoscale.problems import Poisson


@pytest.fixture
def pair():
    rng = np.random.default_rng(0)
    return rng.standard_normal((12, 10, 14)), rng.standard_normal((12, 10, 14))


def _npz(folder, x, u):
    np.savez(folder / "f.npz", a=x, u=u)
    return [folder / "f.npz"]


def _npy(folder, x, u):
    np.save(folder / "x.npy", x)
    np.save(folder / "u.npy", u)
    return [folder / "x.npy", folder / "u.npy"]


def _hdf5(folder, x, u):
    with h5py.File(folder / "f.h5", "w") as file:
        file["a"] = x
        file["u"] = u
    return [folder / "f.h5"]


def _mat5(folder, x, u):
    savemat(folder / "f.mat", {"a": x, "u": u})
    return [folder / "f.mat"]


def _mat73(folder, x, u):
    """MATLAB writes an array of size (12, 10, 14) as an HDF5 dataset of shape (14, 10, 12)."""
    with h5py.File(folder / "f.mat", "w", userblock_size=512) as file:
        file["a"] = x.T
        file["u"] = u.T
    with (folder / "f.mat").open("r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(128))
    return [folder / "f.mat"]


@pytest.mark.parametrize("write", [_npz, _npy, _hdf5, _mat5, _mat73])
def test_every_format_gives_the_same_dataset(tmp_path, pair, write):
    files = write(tmp_path, *pair)
    dataset = import_fields(files, tmp_path / "d.zarr", input_key="a", output_key="u")
    for name, values in zip(("input", "output"), pair, strict=True):
        assert np.array_equal(dataset.read(name, 0, 12), values.astype(np.float32))
    assert dataset.problem is None
    assert dataset.grid.shape == (10, 14)


def test_nested_hdf5_names(tmp_path, pair):
    with h5py.File(tmp_path / "f.hdf5", "w") as file:
        file["group/a"], file["group/u"] = pair
    dataset = import_fields(
        [tmp_path / "f.hdf5"], tmp_path / "d", input_key="group/a", output_key="group/u"
    )
    assert dataset.samples == 12


@pytest.mark.parametrize("channel", [1, 3])
def test_channel_axis_of_length_one_is_dropped(tmp_path, pair, channel):
    files = _npy(tmp_path, *(np.expand_dims(values, channel) for values in pair))
    dataset = import_fields(files, tmp_path / "d")
    assert np.array_equal(dataset.read("input", 0, 12), pair[0].astype(np.float32))


def test_problem_can_be_declared(tmp_path):
    grid_fields = np.zeros((3, 16, 16), dtype=np.float32)
    dataset = import_fields(
        _npy(tmp_path, grid_fields, grid_fields), tmp_path / "d", problem=Poisson()
    )
    assert dataset.problem.name == "poisson"


def _bad(tmp_path, x, u, message, **keys):
    keys = {"input_key": "a", "output_key": "u"} | keys
    with pytest.raises(TwoscaleError, match=message):
        import_fields(_npz(tmp_path, x, u), tmp_path / "d", **keys)
    assert not list(tmp_path.glob("d*"))


def test_missing_key_is_listed_against_what_there_is(tmp_path, pair):
    _bad(tmp_path, *pair, r"no array 'b' \(--input\): it holds a, u", input_key="b")


def test_key_not_given(tmp_path, pair):
    _bad(tmp_path, *pair, "say which array .* with --output: it holds a, u", output_key=None)


def test_mismatched_shapes(tmp_path, pair):
    _bad(tmp_path, pair[0], pair[1][:, :, :8], "they must agree")


def test_nan_is_located(tmp_path, pair):
    x = pair[0].copy()
    x[7, 2, 2] = np.nan
    _bad(tmp_path, x, pair[1], "NaN or infinite values, first in sample 7")


def test_wrong_dimensions(tmp_path, pair):
    _bad(tmp_path, pair[0][0], pair[1][0], r"must have shape \(samples, height, width\)")


def test_complex_numbers(tmp_path, pair):
    _bad(tmp_path, pair[0] * 1j, pair[1], "real numbers, got dtype complex128")


def test_objects_are_never_unpickled(tmp_path, pair):
    np.savez(tmp_path / "f.npz", a=np.array([{}], dtype=object), u=pair[1])
    with pytest.raises(TwoscaleError, match="damaged or not what its name says"):
        import_fields([tmp_path / "f.npz"], tmp_path / "d", input_key="a", output_key="u")


@pytest.mark.parametrize("name", ["f.npz", "f.h5", "f.mat"])
def test_damaged_files(tmp_path, name):
    (tmp_path / name).write_bytes(b"not what it says")
    with pytest.raises(TwoscaleError, match="damaged or not what its name says"):
        import_fields([tmp_path / name], tmp_path / "d", input_key="a", output_key="u")


def test_damaged_npy(tmp_path, pair):
    files = _npy(tmp_path, *pair)
    files[1].write_bytes(b"no array")
    with pytest.raises(TwoscaleError, match=r"u\.npy is damaged or not a readable npy file"):
        import_fields(files, tmp_path / "d")


def test_missing_file(tmp_path):
    with pytest.raises(TwoscaleError, match="does not exist"):
        import_fields([tmp_path / "none.npz"], tmp_path / "d")


def test_one_npy_alone(tmp_path, pair):
    files = _npy(tmp_path, *pair)
    with pytest.raises(TwoscaleError, match="holds one array"):
        import_fields(files[:1], tmp_path / "d")


def test_three_files(tmp_path, pair):
    files = _npy(tmp_path, *pair)
    with pytest.raises(TwoscaleError, match="two npy files, got 3"):
        import_fields([*files, files[0]], tmp_path / "d")


def test_unknown_kind(tmp_path):
    (tmp_path / "f.csv").write_text("1,2")
    with pytest.raises(TwoscaleError, match="of no known kind"):
        import_fields([tmp_path / "f.csv"], tmp_path / "d")


def test_a_damaged_chunk_of_an_hdf5_file(tmp_path, pair):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for name, values in zip("au", pair, strict=True):
            file.create_dataset(name, data=values, chunks=(4, 10, 14), compression="gzip")
        place = file["u"].id.get_chunk_info(1)
    with (tmp_path / "f.h5").open("r+b") as file:
        file.seek(place.byte_offset)
        file.write(b"\xff" * place.size)
    with pytest.raises(TwoscaleError, match=r"f\.h5 is damaged or not what its name says"):
        import_fields([tmp_path / "f.h5"], tmp_path / "d", input_key="a", output_key="u")
    assert not list(tmp_path.glob("d*"))


@pytest.mark.parametrize("kind", [_npz, _hdf5, _mat5, _mat73])
def test_two_files_must_be_npy(tmp_path, pair, kind):
    (file,) = kind(tmp_path, *pair)
    npy = _npy(tmp_path, *pair)[0]
    for files in ([file, file], [npy, file], [file, npy]):
        with pytest.raises(TwoscaleError, match=r"two files must be npy files, got .*/f\."):
            import_fields(files, tmp_path / "d", input_key="a", output_key="u")


def test_an_npz_that_is_called_npy(tmp_path, pair):
    (file,) = _npz(tmp_path, *pair)
    files = [*_npy(tmp_path, *pair)[:1], file.rename(tmp_path / "g.npy")]
    with pytest.raises(TwoscaleError, match=r"g\.npy holds several arrays"):
        import_fields(files, tmp_path / "d")


def test_values_beyond_single_precision(tmp_path, pair):
    x = pair[0].copy()
    x[7, 2, 2] = 1e39
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _bad(tmp_path, x, pair[1], "beyond the range of single precision .*, first in sample 7")


@pytest.mark.parametrize("shape", [(0, 8, 8), (3, 0, 8), (3, 8, 0)])
def test_arrays_without_values(tmp_path, shape):
    _bad(tmp_path, np.zeros(shape), np.zeros(shape), r"must have shape \(samples, height, width\)")


SPECIAL = {
    "a pipe, not a file": os.mkfifo,
    "a device, not a file": lambda path: path.symlink_to("/dev/zero"),
    "a folder, not a file": Path.mkdir,
    "its symbolic links lead in a circle": lambda path: path.symlink_to(path),
}


@pytest.mark.parametrize("suffix", ["npz", "npy", "h5", "mat", "csv"])
@pytest.mark.parametrize(("words", "make"), SPECIAL.items(), ids=SPECIAL)
def test_things_that_are_no_files(tmp_path, suffix, words, make):
    file = tmp_path / f"f.{suffix}"
    make(file)
    for files in ([file], [file, file]):
        with pytest.raises(TwoscaleError, match=words):
            import_fields(files, tmp_path / "d", input_key="a", output_key="u")
    assert list(tmp_path.iterdir()) == [file]
