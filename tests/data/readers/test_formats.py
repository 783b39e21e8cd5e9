"""Every format gives the same numbers, and the same dataset with the same interface."""

import h5py
import numpy as np
import pytest
import torch
import xarray

from tests.data.readers import written
from tests.data.readers.written import NESTED, WRITERS
from twoscale.data import FileDataset, Reading, import_fields, load_fields
from twoscale.domain.grid import Grid
from twoscale.errors import TwoscaleError


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((11, 10, 14)).astype(np.float32).astype(np.float64)
    return {"a": x, "u": np.cumsum(x, 1).astype(np.float32).astype(np.float64)}


def same(found, expected):
    return found.dtype == np.float32 and np.array_equal(found, expected.astype(np.float32))


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_every_format_gives_the_same_fields(tmp_path, pair, write):
    path = write(tmp_path, **pair)
    prefix = NESTED.get(write.__name__, "")
    keys = {"inputs": f"{prefix}a", "outputs": f"{prefix}u"} if prefix else {}
    x, u, parameters = load_fields(path, **keys)
    assert same(x, pair["a"])
    assert same(u, pair["u"])
    assert parameters is None
    dataset = FileDataset(path, Reading.of(**keys))
    assert (dataset.samples, dataset.output_space.grid) == (11, Grid((10, 14)))
    chosen = dataset.load_parts("output", [[7, 2], [0, 10]])
    assert torch.equal(chosen[0], torch.from_numpy(u[[2, 7], None]))
    assert torch.equal(chosen[1], torch.from_numpy(u[[0, 10], None]))
    assert torch.equal(dataset.load("input", [3]), torch.from_numpy(x[[3], None]))
    part = load_fields(path, **keys, select="1:9:3")
    assert same(part.inputs, pair["a"][1:9:3])


@pytest.mark.parametrize(
    "dtype", ["<f2", ">f2", "<f4", ">f4", ">f8", "<i2", ">i4", "u1", "<i8", "bool"]
)
def test_every_type_of_numbers(tmp_path, dtype):
    values = (np.arange(6 * 8 * 8).reshape(6, 8, 8) % 2).astype(dtype)
    np.savez(tmp_path / "f.npz", a=values, u=values)
    np.save(tmp_path / "a.npy", np.asfortranarray(values))
    written.hdf5(tmp_path, a=values, u=values)
    for file in ("f.npz", "f.h5"):
        assert same(load_fields(tmp_path / file).inputs, values)
    files = [tmp_path / "a.npy", tmp_path / "a.npy"]
    assert same(load_fields(files).outputs, values)
    if np.dtype(dtype).isnative:
        tensor = torch.from_numpy(values)
        torch.save([tensor, (tensor, {"u": tensor})], tmp_path / "f.pt")
        found = load_fields(tmp_path / "f.pt", inputs="0", outputs=["1/0", "1/1/u"])
        assert same(found.inputs, values)
        assert found.outputs.shape == (6, 2, 8, 8)


def test_two_files_of_one_array_each(tmp_path, pair):
    for name, values in pair.items():
        torch.save(torch.from_numpy(values), tmp_path / f"{name}.pt")
    found = load_fields([tmp_path / "u.pt", tmp_path / "a.pt"])
    assert same(found.inputs, pair["u"])
    with_names = import_fields(
        [tmp_path / "u.pt", tmp_path / "a.pt"], tmp_path / "d", inputs="a", outputs="u"
    )
    assert same(with_names.read("input", 0, 11), pair["a"])


def test_two_folders_of_npy_files(tmp_path, pair):
    for name, values in pair.items():
        (tmp_path / name).mkdir()
        for place, sample in enumerate(values):
            np.save(tmp_path / name / f"{place}.npy", sample)
    folders = [tmp_path / "a", tmp_path / "u"]
    with pytest.raises(TwoscaleError, match=r"'input' comes in 11 pieces of shape \(10, 14\)"):
        load_fields(folders)
    found = load_fields(folders, axes="hw")
    assert same(found.inputs, pair["a"])
    assert same(found.outputs, pair["u"])
    part = FileDataset(folders, Reading.of(axes="hw")).load("output", [10, 4])
    assert torch.equal(part[:, 0], torch.from_numpy(found.outputs[[4, 10]]))


def test_scaled_netcdf_values_are_restored(tmp_path, pair):
    dataset = xarray.Dataset({name: (("n", "y", "x"), one) for name, one in pair.items()})
    packed = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 5.0, "_FillValue": -32768}
    dataset.to_netcdf(tmp_path / "f.nc", engine="h5netcdf", encoding=dict.fromkeys("au", packed))
    np.testing.assert_allclose(load_fields(tmp_path / "f.nc").inputs, pair["a"], atol=0.006)


def test_labels_of_hdf5_axes(tmp_path, pair):
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for name, values in pair.items():
            file[name] = values.transpose(1, 2, 0)
            for axis, label in zip(file[name].dims, ("y", "x", "sample"), strict=True):
                axis.label = label
    assert same(load_fields(tmp_path / "f.h5").inputs, pair["a"])


def test_a_pattern_matches_many_files(tmp_path, pair):
    for place in range(11):
        single = {name: values[place] for name, values in pair.items()}
        np.savez(tmp_path / f"s{place}.npz", **single, p=float(place), q=np.ones(2))
    found = load_fields(
        tmp_path / "s*.npz", inputs="a", outputs="u", parameters=["p", "q"], axes="hw"
    )
    assert same(found.inputs, pair["a"])
    assert found.parameters.tolist() == [[place, 1, 1] for place in range(11)]
    with pytest.raises(TwoscaleError, match=r"no file matches .*t\*\.npz"):
        load_fields(tmp_path / "t*.npz")


def test_files_of_several_samples_are_joined(tmp_path, pair):
    for name, part in (("one", slice(0, 4)), ("two", slice(4, 11))):
        some = {key: values[part] for key, values in pair.items()}
        np.savez(tmp_path / f"{name}.npz", **some, p=np.arange(11.0)[part])
    found = load_fields(tmp_path, inputs="a", outputs="u", parameters="p")
    assert same(found.inputs, pair["a"])
    assert found.parameters[:, 0].tolist() == list(range(11))
    assert same(load_fields(tmp_path, select="1:11:3").inputs, pair["a"][1:11:3])
