"""Layouts of well-known datasets, orders of axes, parts and times."""

import h5py
import numpy as np
import pytest
import xarray

from tests.data.readers import written
from twoscale.data import FileDataset, Reading, import_fields, load_fields
from twoscale.data.axes import AxesOrder, named_order
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError

RNG = np.random.default_rng(0)


def values(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def hdf5(folder, attributes=None, **arrays):
    with h5py.File(folder / "f.h5", "w") as file:
        for name, one in arrays.items():
            file[name.replace("__", "/")] = one
        file.attrs.update(attributes or {})
    return folder / "f.h5"


# PDEBench


def coordinates(*sides):
    names = ("x-coordinate", "y-coordinate", "z-coordinate")
    held = {name: np.linspace(0, 1, side) for name, side in zip(names, sides, strict=False)}
    return held | {"t-coordinate": np.linspace(0, 1, 22)}


def test_pdebench_darcy(tmp_path):
    nu, tensor = values(15, 12, 10), values(15, 1, 12, 10)
    file = hdf5(tmp_path, nu=nu, tensor=tensor, **coordinates(12, 10))
    found = load_fields(file)
    assert np.array_equal(found.inputs, nu)
    assert np.array_equal(found.outputs, tensor[:, 0])


def test_pdebench_lines_in_time(tmp_path):
    tensor = values(15, 21, 32)
    file = hdf5(tmp_path, tensor=tensor, **coordinates(32))
    found = load_fields(file, time="0/-1")
    assert np.array_equal(found.inputs, tensor[:, 0])
    assert np.array_equal(found.outputs, tensor[:, 20])
    dataset = FileDataset(file, Reading.of(time="0:2/5,-1"))
    assert dataset.input_space == Space(Grid((1, 32)), 2, names=("tensor@0", "tensor@1"))
    assert dataset.output_space.names == ("tensor@5", "tensor@20")
    assert np.array_equal(dataset.read("output", 3, 5)[:, :, 0], tensor[3:5][:, [5, 20]])
    with pytest.raises(TwoscaleError, match=r"'tensor' has 21 times.*0/-1"):
        load_fields(file, inputs="tensor", outputs="tensor")


def test_pdebench_flow(tmp_path):
    fields = {name: values(15, 5, 8, 8) for name in ("Vx", "Vy", "density")}
    file = hdf5(tmp_path, **fields, **coordinates(8, 8))
    dataset = FileDataset(
        file, Reading.of(inputs=["Vx", "Vy"], outputs="density", time="0:2/-1", select="2:12")
    )
    names = ("Vx@0", "Vx@1", "Vy@0", "Vy@1")
    assert dataset.input_space == Space(Grid((8, 8)), 4, names=names)
    assert dataset.ranks == (4, 3)
    assert np.array_equal(dataset.read("input", 0, 10)[:, 2], fields["Vy"][2:12, 0])
    assert np.array_equal(dataset.read("output", 0, 10), fields["density"][2:12, 4])


@pytest.mark.parametrize("prefix", ["", "samples/", "seed_"])
def test_one_group_for_each_sample(tmp_path, prefix):
    data = values(12, 6, 8, 9, 2)
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for place, sample in enumerate(data):
            group = file.create_group(f"{prefix}{place:02}")
            group["data"] = sample
            for axis, side in (("t", 6), ("x", 8), ("y", 9)):
                group[f"grid/{axis}"] = np.linspace(0, 1, side)
    found = load_fields(tmp_path / "f.h5", inputs="data", outputs="data", time="0/-1")
    assert np.array_equal(found.inputs, data[:, 0].transpose(0, 3, 1, 2))
    assert np.array_equal(found.outputs, data[:, -1].transpose(0, 3, 1, 2))


def test_groups_without_coordinates_are_asked_about(tmp_path):
    data = values(12, 8, 9)
    with h5py.File(tmp_path / "f.h5", "w") as file:
        for place, sample in enumerate(data):
            file[f"{place}/a"] = sample
            file[f"{place}/u"] = 2 * sample
    words = r"12 pieces of shape \(8, 9\).* one sample \(axes hw\).* holds 8 samples \(axes nw"
    with pytest.raises(TwoscaleError, match=words):
        load_fields(tmp_path / "f.h5", inputs="a", outputs="u")
    found = load_fields(tmp_path / "f.h5", inputs="a", outputs="u", axes="hw")
    assert np.array_equal(found.outputs, 2 * data)
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        del file["7/u"]
        file["7/u"] = data[0, :5]
    with pytest.raises(TwoscaleError, match=r"'0/u' has \(8, 9\), '7/u' has \(5, 9\)"):
        load_fields(tmp_path / "f.h5", inputs="a", outputs="u", axes="hw")
    with h5py.File(tmp_path / "f.h5", "r+") as file:
        del file["7/u"]
    with pytest.raises(TwoscaleError, match="has '0/u' but no '7/u'"):
        load_fields(tmp_path / "f.h5", inputs="a", outputs="u", axes="hw")


# The Well


@pytest.fixture
def well(tmp_path):
    """Two files in The Well's layout: 3 trajectories of 5 times each."""
    arrays = {"density": values(6, 5, 8, 9), "velocity": values(6, 5, 8, 9, 2)}
    arrays["strain"] = values(6, 5, 8, 9, 2, 2)
    arrays["wall"] = values(8, 9)
    for place in range(2):
        part = slice(3 * place, 3 * place + 3)
        with h5py.File(tmp_path / f"well_{place}.hdf5", "w") as file:
            file.attrs["n_trajectories"] = 3
            file["dimensions/time"] = np.arange(5.0)
            file["dimensions"].attrs["spatial_dims"] = ["x", "y"]
            file["t0_fields/density"] = arrays["density"][part]
            file["t0_fields/wall"] = arrays["wall"]
            file["t0_fields/wall"].attrs.update(sample_varying=False, time_varying=False)
            file["t1_fields/velocity"] = arrays["velocity"][part]
            file["t2_fields/strain"] = arrays["strain"][part]
            file["scalars/viscosity"] = 0.1 * (place + 1)
            file["scalars/viscosity"].attrs.update(sample_varying=False, time_varying=False)
            wraps = file.create_group("boundary_conditions/y_periodic")
            wraps.attrs.update(bc_type="PERIODIC", associated_dims=["y"])
    return tmp_path, arrays


def test_the_well(well):
    folder, arrays = well
    keys = {"inputs": ["density", "velocity", "wall"], "outputs": "t2_fields/strain"}
    asked = Reading.of(**keys, parameters="viscosity", time="0/-1")
    dataset = FileDataset(folder, asked)
    assert dataset.samples == 6
    assert dataset.input_space.grid == Grid((8, 9), periodic=(False, True))
    assert dataset.input_space.names == (
        "density@0", "velocity[0]@0", "velocity[1]@0", "wall", "viscosity",
    )  # fmt: skip
    inputs = dataset.read("input", 0, 6)
    assert np.array_equal(inputs[:, 0], arrays["density"][:, 0])
    assert np.array_equal(inputs[:, 1:3], arrays["velocity"][:, 0].transpose(0, 3, 1, 2))
    assert np.array_equal(inputs[:, 3], np.broadcast_to(arrays["wall"], (6, 8, 9)))
    strain = arrays["strain"][:, -1].reshape(6, 8, 9, 4).transpose(0, 3, 1, 2)
    assert np.array_equal(dataset.read("output", 0, 6), strain)
    np.testing.assert_allclose(dataset.read("parameters", 0, 6)[:, 0], [0.1] * 3 + [0.2] * 3)


# Orders of axes


@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        ({"a": (16, 16, 30), "u": (16, 16, 30)}, "hwn"),
        ({"a": (30, 16, 16), "u": (20, 20, 30)}, "a=nhw,u=hwn"),
        ({"a": (8, 8, 30), "u": (16, 16, 30)}, "hwn"),
        ({"a": (8, 9, 30), "u": (16, 17, 30)}, "hwn"),
        ({"a": (30, 10, 14, 3), "u": (30, 10, 14)}, "nhw,nhwc"),
        ({"a": (30, 16, 16, 7), "u": (30, 16, 16)}, "nhw,nhwc"),
        ({"a": (16, 16, 3, 30), "u": (16, 16, 1, 30)}, "hwcn"),
        ({"a": (3, 16, 16, 30), "u": (1, 16, 16, 30)}, "chwn"),
        ({"a": (16, 30), "u": (24, 30)}, "wn"),
        ({"a": (16, 16, 30), "u": (16, 16, 30), "p": (30,)}, "hwn"),
    ],
)
def test_two_possible_readings_are_asked_about(tmp_path, shapes, axes):
    arrays = {name: values(*shape) for name, shape in shapes.items()}
    file = written.npz(tmp_path, **arrays)
    keys = {"inputs": "a", "outputs": "u", "parameters": "p" if "p" in shapes else None}
    words = "samples must agree" if "=" in axes else rf"(in two ways|must agree).*axes {axes}\)"
    with pytest.raises(TwoscaleError, match=words):
        load_fields(file, **keys)
    x, u, _ = load_fields(file, **keys, axes=axes)
    assert len(x) == len(u) == 30
    order = AxesOrder.parse(axes)
    for name, found in (("a", x), ("u", u)):
        letters = order.of(name, len(shapes[name]))
        wanted = [letters.index(one) for one in "nchw" if one in letters]
        assert np.array_equal(found, arrays[name].transpose(wanted))


def test_the_other_reading_can_be_chosen_too(tmp_path):
    file = written.npz(tmp_path, a=values(16, 16, 30), u=values(16, 16, 30))
    assert load_fields(file, axes="sample,height,width").inputs.shape == (16, 16, 30)


@pytest.mark.parametrize(
    "shape", [(30, 16, 16), (12, 10, 14), (30, 3, 16, 16), (30, 40), (9, 9, 9)]
)
def test_a_usual_order_needs_no_option(tmp_path, shape):
    file = written.npz(tmp_path, a=values(*shape), u=values(*shape))
    assert load_fields(file).inputs.shape == shape


@pytest.mark.parametrize("write", [written.hdf5, written.mat73, written.plain_zarr])
def test_samples_last_in_every_kind_of_file(tmp_path, write):
    a, u = values(9, 10, 30), values(9, 10, 30)
    found = load_fields(write(tmp_path, a=a, u=u), axes="hwn", select="3:20:4")
    assert np.array_equal(found.inputs, np.moveaxis(a, 2, 0)[3:20:4])


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((30, 5, 16), "ntw"),
        ((30, 16, 5), "nwt"),
        ((30, 16, 16, 5), "nhwt"),
        ((30, 5, 8, 9), "nthw"),
        ((30, 5, 8, 9, 2), "nthwc"),
        ((30, 5, 2, 8, 9), "ntchw"),
    ],
)
def test_an_axis_of_time_in_doubt_is_asked_about(tmp_path, shape, axes):
    u = values(*shape)
    file = written.npz(tmp_path, u=u)
    with pytest.raises(TwoscaleError, match=rf"in two ways: .*\(axes {axes}\)"):
        load_fields(file, time="0/-1")
    found = load_fields(file, time="0/-1", axes=axes)
    last = u.take(-1, axis=axes.index("t"))
    assert np.array_equal(found.outputs, np.moveaxis(last, -1, 1) if axes[-1] == "c" else last)


def test_a_coefficient_without_time(tmp_path):
    a, u = values(30, 16, 16), values(30, 5, 16, 16)
    file = written.npz(tmp_path, a=a, u=u)
    found = load_fields(file, time="/1:")
    assert np.array_equal(found.inputs, a)
    assert np.array_equal(found.outputs, u[:, 1:])


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("sample", "y", "x"), "nhw"),
        (("lon", "lat", "time", "member"), "whtn"),
        (("batch", "channel", "row", "column"), "nchw"),
        (("sims", "x"), "nw"),
        (("sample", "y"), "nw"),
        (("dim_0", "dim_1", "dim_2"), None),
        (("x", "x"), None),
        (("n", "z", "y", "x"), None),
        ((), None),
    ],
)
def test_names_of_axes(names, order):
    assert named_order(names) == order


@pytest.mark.parametrize(
    "text", ["nhx", "nn", "nh", "a=", "nhw,nwh", "sample,height,depth", "nhw;"]
)
def test_orders_that_are_none(text):
    with pytest.raises(TwoscaleError, match="'axes'"):
        AxesOrder.parse(text)


def test_an_order_must_fit_its_array(tmp_path):
    file = written.npz(tmp_path, a=values(30, 8, 8), u=values(30, 8, 8))
    with pytest.raises(TwoscaleError, match="gives 'u' the 4 axes nchw, it has 3"):
        load_fields(file, axes="u=nchw")
    with pytest.raises(TwoscaleError, match="axes chw of 'a' are without samples"):
        load_fields(file, axes="chw")


# Parts and times


def test_parts_of_the_grid(tmp_path):
    a, u = values(30, 16, 16), values(30, 16, 16)
    file = written.npz(tmp_path, a=a, u=u)
    found = load_fields(file, select="sample=5:,height=::2,width=1:9")
    assert np.array_equal(found.inputs, a[5:, ::2, 1:9])
    assert np.array_equal(load_fields(file, select=slice(None, -10)).outputs, u[:-10])
    with pytest.raises(TwoscaleError, match="'select' leaves nothing of 'a'"):
        load_fields(file, select="50:")


def test_channels_keep_their_numbers(tmp_path):
    a = values(30, 5, 8, 8)
    file = written.npz(tmp_path, a=a, u=a[:, 0], p=values(30, 2))
    keys = {"inputs": "a", "outputs": "u", "parameters": "p"}
    dataset = FileDataset(file, Reading.of(**keys, select="channel=1:4:2"))
    assert dataset.input_space.names == ("a[1]", "a[3]", "p[0]", "p[1]")
    assert np.array_equal(dataset.read("input", 0, 30), a[:, 1:4:2])
    one = FileDataset(file, Reading.of(**keys, select="channel=2:3"))
    assert one.input_space.names == ("a[2]", "p[0]", "p[1]")


def test_parts_along_axes_that_are_not_there(tmp_path):
    file = written.npz(tmp_path, a=values(30, 8, 8), u=values(30, 8, 8))
    with pytest.raises(TwoscaleError, match=r"no array has the axis c .*select"):
        load_fields(file, select="channel=0:1")
    with pytest.raises(TwoscaleError, match="no array has an axis of time"):
        load_fields(file, time="0/1", axes="nhw")


def test_rows_of_parameters(tmp_path):
    """MATLAB has no arrays of one axis: the numbers of all samples are a row or a column."""
    fields = values(30, 8, 8)
    for shape in ((1, 30), (30, 1), (30,)):
        file = written.mat5(tmp_path, a=fields, u=fields, p=np.arange(30.0).reshape(shape))
        found = load_fields(file, inputs="a", outputs="u", parameters="p", select="2:5")
        assert found.parameters.tolist() == [[2], [3], [4]]


@pytest.mark.parametrize(
    "text", ["5", "a:b", "depth=0:2", "time=0:2", "::-1", "::0", "0:2;", "=0:2x"]
)
def test_parts_that_are_none(text):
    with pytest.raises(TwoscaleError, match="'select' takes ranges"):
        Reading(select=text)


@pytest.mark.parametrize("text", ["0", "0/", "1/2/3", "a/b", "0/1.5"])
def test_times_that_are_none(text):
    with pytest.raises(TwoscaleError, match=r"'time' says.*0/-1"):
        Reading(time=text)


def test_times():
    reading = Reading(time="0:6:2,-1 -> 3")
    assert reading.times_of("input", "u", 8) == [0, 2, 4, 7]
    assert reading.times_of("output", "u", 8) == [3]
    with pytest.raises(TwoscaleError, match="'u' has the times 0 to 2: 3 is"):
        reading.times_of("output", "u", 3)
    with pytest.raises(TwoscaleError, match="'u' has 8 times and is an input"):
        Reading(time="/3").times_of("input", "u", 8)


def test_a_dataset_remembers_how_it_was_read(tmp_path):
    file = written.npz(tmp_path, a=values(16, 16, 30), u=values(16, 16, 30))
    dataset = import_fields(file, tmp_path / "d", axes="hwn", select="0:20,height=::2")
    kept = Reading.from_dict(dataset.metadata["reading"])
    assert (kept.inputs, kept.outputs, kept.known) == (("a",), ("u",), {"a": "hwn", "u": "hwn"})
    other = kept.for_other(Reading.of(inputs="b"))
    assert (other.inputs, other.outputs) == (("b",), ("u",))
    assert other.ranges == {"h": slice(None, None, 2)}


def test_times_of_named_axes(tmp_path):
    field = values(30, 4, 8, 9)
    held = xarray.Dataset({"u": (("sample", "time", "lat", "lon"), field)})
    held.to_netcdf(tmp_path / "f.nc", engine="h5netcdf")
    found = load_fields(tmp_path / "f.nc", time="0/1")
    assert np.array_equal(found.outputs, field[:, 1])


def test_the_identity_of_files(tmp_path):
    file = written.npz(tmp_path, a=values(30, 8, 8), u=values(30, 8, 8))
    first = FileDataset(file, Reading())
    assert FileDataset(file, Reading.of(axes="nhw")).identity == first.identity
    assert FileDataset(file, Reading.of(select="0:20")).identity != first.identity
    written.npz(tmp_path, a=values(30, 8, 8), u=values(30, 8, 8))
    assert FileDataset(file, Reading()).identity != first.identity
