"""Files that are damaged, unsafe or of the wrong content: one sentence that names the way out."""

import contextlib
import json
import os
import pickle
import random
import zipfile

import h5py
import numpy as np
import pytest
import torch
import xarray
import zarr
from PIL import Image

from tests.data.readers import written
from twoscale.data import load_fields
from twoscale.errors import TwoscaleError

X = np.random.default_rng(0).standard_normal((6, 8, 9))


def refused(path, words, **options):
    with pytest.raises(TwoscaleError, match=words) as caught:
        load_fields(path, **options)
    assert "\n" not in str(caught.value)


class Harmful:
    """Pickled, it makes a folder when it is loaded."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_pt_file_with_code_is_not_loaded(tmp_path, legacy):
    content = {"x": torch.ones(6, 8, 9), "y": Harmful(tmp_path / "mark")}
    torch.save(content, tmp_path / "f.pt", _use_new_zipfile_serialization=not legacy)
    refused(tmp_path / "f.pt", r"holds more than tensors, or is damaged.* torch\.save\(\{'x': x")
    (tmp_path / "g.pt").write_bytes(pickle.dumps(content["y"]))
    refused(tmp_path / "g.pt", "holds more than tensors|is damaged")
    torch.save({"x": X, "y": X}, tmp_path / "h.pt")  # NumPy arrays are pickled objects
    refused(tmp_path / "h.pt", "holds more than tensors")
    assert not (tmp_path / "mark").exists()


def test_tensors_that_are_no_fields(tmp_path):
    x = torch.from_numpy(X)
    torch.save({"x": x, "y": x * 1j, "s": x.to_sparse(), "n": 3}, tmp_path / "f.pt")
    refused(tmp_path / "f.pt", "must be real numbers, got dtype complex128: give the real")
    refused(tmp_path / "f.pt", "save it as a dense one", inputs="x", outputs="s")
    words = r"no array 'n' \(output\): it holds x \(6, 8, 9\), y \(6, 8, 9\), s"
    refused(tmp_path / "f.pt", words, inputs="x", outputs="n")


def test_objects_in_npy_and_npz_are_not_loaded(tmp_path):
    objects = np.array([Harmful(tmp_path / "mark")], dtype=object)
    np.save(tmp_path / "a.npy", objects)
    np.save(tmp_path / "u.npy", X)
    refused([tmp_path / "a.npy", tmp_path / "u.npy"], "its values are of type object")
    np.savez(tmp_path / "f.npz", a=objects, u=X)
    refused(tmp_path / "f.npz", "its values are of type object", inputs="a", outputs="u")
    assert not (tmp_path / "mark").exists()


def zarr_with(tmp_path, version, change):
    folder = (
        written.xarray_zarr_2(tmp_path, a=X, u=X)
        if version == 2
        else written.xarray_zarr(tmp_path, a=X, u=X)
    )
    file = folder / "a" / (".zarray" if version == 2 else "zarr.json")
    described = json.loads(file.read_text())
    change(described)
    file.write_text(json.dumps(described))
    return folder


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_codecs_that_could_run_code_are_refused(tmp_path, version):
    harmful = pickle.dumps(Harmful(tmp_path / "mark"))
    names = {2: lambda one: one.update(filters=[{"id": "pickle"}], compressor=None)}
    names[3] = lambda one: one["codecs"].insert(0, {"name": "numcodecs.pickle"})
    folder = zarr_with(tmp_path, version, names[version])
    for chunk in (folder / "a").rglob("*"):
        if chunk.is_file() and not chunk.name.startswith((".z", "zarr")):
            chunk.write_bytes(harmful)
    refused(folder, "names the codec '.*pickle', which is not trusted: .* such as zstd")
    assert not (tmp_path / "mark").exists()


def test_zarr_chunks_beyond_the_memory_are_refused(tmp_path):
    def change(one):
        one["chunk_grid"]["configuration"]["chunk_shape"] = [10**9, 10**4, 10**4]

    words = "one chunk of 'a' needs .* of memory, .*: write it with smaller chunks"
    refused(zarr_with(tmp_path, 3, change), words, inputs="a", outputs="u")


def test_tensors_that_unpack_beyond_the_memory_are_refused(tmp_path, monkeypatch):
    file = written.torch_dict(tmp_path, a=np.zeros((6, 64, 64)), u=X)
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(tmp_path / "p.pt", "w", 8) as packed:
        for name in archive.namelist():
            packed.writestr(name, archive.read(name))
    free = (tmp_path / "p.pt").stat().st_size
    monkeypatch.setattr("twoscale.runtime.memory.available_memory", lambda: 2 * free)
    refused(tmp_path / "p.pt", "reading .* needs .* of memory", inputs="a", outputs="u")


def test_zarr_folders_with_links_are_refused(tmp_path):
    folder = written.plain_zarr(tmp_path, a=X, u=X)
    (folder / "link").symlink_to("/dev/zero")
    refused(folder, "link is no regular file or folder")


@pytest.mark.parametrize(
    "write",
    [written.npz, written.hdf5, written.mat5, written.torch_dict, written.netcdf4, written.netcdf3],
    ids=lambda write: write.__name__,
)
def test_truncated_files_and_wrong_content(tmp_path, write):
    file = write(tmp_path, a=X, u=X)
    content = file.read_bytes()
    for part in (content[: len(content) // 2], b"hello, this is no such file", b""):
        file.write_bytes(part)
        refused(file, rf"{file.name} (is damaged|holds more than tensors|cannot be read)")


@pytest.mark.parametrize(
    "write",
    [written.torch_dict, written.netcdf3, written.netcdf4, written.xarray_zarr_2, written.pages],
    ids=lambda write: write.__name__,
)
def test_random_damage_is_told_without_a_traceback(tmp_path, write):
    path = write(tmp_path, a=X, u=X)
    draw = random.Random(0)
    files = sorted(file for file in (tmp_path if path.is_dir() else path.parent).rglob("*"))
    for _ in range(15):
        file = draw.choice([one for one in files if one.is_file()])
        sound = file.read_bytes()
        damaged = bytearray(sound)
        for _ in range(draw.choice((1, 3, 30))):
            damaged[draw.randrange(min(len(damaged), 2000))] = draw.randrange(256)
        file.write_bytes(damaged[: draw.choice((len(damaged), draw.randrange(len(damaged))))])
        with contextlib.suppress(TwoscaleError):
            load_fields(path)
        file.write_bytes(sound)


def test_truncated_images(tmp_path):
    Image.fromarray(X[0].astype(np.float32)).save(tmp_path / "0.tif")
    content = (tmp_path / "0.tif").read_bytes()
    (tmp_path / "0.tif").write_bytes(content[: len(content) // 2])
    refused(
        [tmp_path / "0.tif", tmp_path / "0.tif"], r"0\.tif is damaged or not what its name says"
    )
    (tmp_path / "1.png").write_bytes(b"hello")
    refused([tmp_path / "1.png", tmp_path / "1.png"], r"1\.png is damaged")


def test_images_of_other_colours_and_sizes(tmp_path):
    grey = Image.fromarray((X[0] > 0).astype(np.uint8))
    grey.convert("P").save(tmp_path / "p.png")
    refused([tmp_path / "p.png"] * 2, "has colours of the kind P: save it as grey values or as RGB")
    (tmp_path / "a").mkdir()
    for place, side in enumerate((8, 8, 9)):
        Image.fromarray(np.ones((side, 9), np.uint8)).save(tmp_path / "a" / f"{place}.png")
    words = r"0\.png has \(8, 9\), .*2\.png has \(9, 9\); leave out or mend"
    refused([tmp_path / "a", tmp_path / "a"], words)
    pages = [Image.fromarray(np.ones((side, 9), np.uint8)) for side in (8, 7)]
    pages[0].save(tmp_path / "t.tif", save_all=True, append_images=pages[1:])
    refused([tmp_path / "t.tif"] * 2, r"must have one size: the first has \(8, 9\), page 1 has")


def test_fields_without_values_or_numbers(tmp_path):
    for bad, words in (
        (X.astype("U8"), "must be real numbers, got dtype <U8: give an array of numbers"),
        (X.astype("S8"), "must be real numbers, got dtype .S8"),
    ):
        refused(written.npz(tmp_path, a=X, u=bad), words, inputs="a", outputs="u")
    held = xarray.Dataset({"a": (("n", "y", "x"), X), "u": (("n",), list("abcdef"))})
    held.to_netcdf(tmp_path / "f.nc", engine="h5netcdf")
    refused(tmp_path / "f.nc", "must be real numbers", inputs="a", outputs="u")


def test_netcdf_with_a_link_to_another_file(tmp_path):
    written.netcdf4(tmp_path, a=X, u=X)
    os.mkfifo(tmp_path / "pipe.nc")  # whoever opens it waits for ever
    with h5py.File(tmp_path / "f.nc", "r+") as file:
        file["group/v"] = h5py.ExternalLink("pipe.nc", "/v")
    refused(tmp_path / "f.nc", "'group/v' of .* is a link to another file, which is not followed")


def test_netcdf_that_was_never_written(tmp_path):
    with h5py.File(tmp_path / "f.nc", "w") as file:
        for name in "au":
            file.create_dataset(name, X.shape, "f8")
    refused(tmp_path / "f.nc", "'a' of .* was never written", inputs="a", outputs="u")


def test_names_that_are_nearly_right(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for group in ("train", "test"):
            file[f"{group}/velocity"] = X
    words = r"no array 'velocity' .*\(did you mean (train|test)/velocity\?\)"
    refused(tmp_path / "f.h5", words, inputs="velocity", outputs="test/velocity")
    words = r"no array 'tain/velocity' .*\(did you mean train/velocity\?\)"
    refused(tmp_path / "f.h5", words, inputs="tain/velocity", outputs="test/velocity")


def test_files_of_a_folder_are_in_no_order(tmp_path):
    for name in ("p", "q"):
        np.save(tmp_path / f"{name}.npy", X)
    refused(tmp_path, r"input and output: it holds p \(6, 8, 9\), q \(6, 8, 9\)")
    assert load_fields(tmp_path, inputs="q", outputs="p").inputs.shape == X.shape


def test_files_that_do_not_belong_together(tmp_path):
    np.savez(tmp_path / "0.npz", a=X, u=X)
    np.savez(tmp_path / "1.npz", a=X)
    keys = {"inputs": "a", "outputs": "u"}
    refused(tmp_path, "1.npz has no array 'u', which .*0.npz has", **keys)
    (tmp_path / "notes.txt").write_text("hello")
    refused(tmp_path, "several files must be of one kind, got .*0.npz and .*notes.txt", **keys)
    refused(tmp_path / "notes.txt", "is of no known kind: give npz, npy, HDF5", **keys)
    refused([], "give a file or folder of arrays")
    (tmp_path / "notes.txt").unlink()
    refused([tmp_path, tmp_path], "0.npz holds several arrays: give one folder of such files")


def test_a_dataset_is_not_imported_again(tmp_path):
    from twoscale.data import import_fields

    import_fields(written.npz(tmp_path, a=X, u=X), tmp_path / "d")
    refused(tmp_path / "d", "is a twoscale dataset already: use it as it is")


def test_one_group_per_sample_is_named_once(tmp_path):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for place, values in enumerate(X):
            file[f"{place:04d}/k"], file[f"{place:04d}/v"] = values, values
    refused(tmp_path / "f.h5", r"it holds k \(\d+, \d+\), v \(\d+, \d+\)$")


def test_zarr_arrays_alone(tmp_path):
    for name in "au":
        zarr.create_array(tmp_path / f"{name}.zarr", data=X)
    found = load_fields([tmp_path / "a.zarr", tmp_path / "u.zarr"])
    assert np.array_equal(found.outputs, X.astype(np.float32))
