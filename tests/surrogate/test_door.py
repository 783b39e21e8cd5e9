"""Arrays of any kind and rank at every entrance of a surrogate."""

import warnings

import numpy as np
import pytest
import torch

from tests.surrogate.test_fields import smooth, surrogate_of
from twoscale import Surrogate, TwoscaleError, TwoscaleWarning, fit_auto, fit_together
from twoscale.fields import arrays

h5py, xarray, zarr = map(pytest.importorskip, ("h5py", "xarray", "zarr"))

COUNT = 40


@pytest.fixture(scope="module")
def square():
    x = smooth(COUNT, 12, 12)
    return x, x.cumsum(2)


@pytest.fixture(scope="module")
def fitted(square):
    return surrogate_of().fit(*square)


def test_lists_fit_like_arrays(square, fitted):
    x, u = square
    listed = surrogate_of().fit(x.tolist(), u.tolist())
    predicted = listed.predict(x[:3].tolist())
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_array_equal(predicted, fitted.predict(x[:3]))
    assert listed.evaluate(x.tolist(), list(u))["mre"] == fitted.evaluate(x, u)["mre"]


def test_arrays_on_disk_fit_like_arrays(square, fitted, tmp_path):
    x, u = square
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["x"], file["u"] = x, u
    stored = zarr.create_array(str(tmp_path / "x.zarr"), data=x)
    with h5py.File(tmp_path / "f.h5") as file:
        one = surrogate_of().fit(file["x"], file["u"])
        two = surrogate_of().fit(stored, file["u"], validation=(file["x"], file["u"]))
        np.testing.assert_array_equal(one.predict(file["x"]), fitted.predict(x))
        assert two.evaluate(stored, file["u"])["mre"] < 0.1


def test_arrays_larger_than_the_memory_are_passed_over(square, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "available_memory", lambda: 4 * 12 * 12 * COUNT)
    x, u = (
        zarr.create_array(str(tmp_path / name), data=fields)
        for name, fields in zip(("x.zarr", "u.zarr"), square, strict=True)
    )
    stored = surrogate_of().fit(x, u)
    expected = fitted.predict(square[0])
    np.testing.assert_allclose(stored.predict(x), expected, atol=1e-3 * abs(expected).max())
    assert stored.evaluate(x, u)["mre"] == pytest.approx(fitted.evaluate(*square)["mre"], rel=0.01)


def test_searches_and_many_fits_take_any_kind(square):
    x, u = (fields.tolist() for fields in square)
    together = [surrogate_of(seed=seed) for seed in range(2)]
    fit_together(together, [(x, u, None)] * 2)
    assert all(one.evaluate(x, u)["mre"] < 0.1 for one in together)
    found = fit_auto(x, u, budget=0.01, validation=0.25)
    assert found.surrogate.training_samples_ == 30


def test_parameters_take_any_kind(square):
    x, u = square
    p = np.linspace(0, 1, COUNT)
    expected = surrogate_of().fit(x, u, parameters=p).predict(x, parameters=p)
    for kind in (list, torch.from_numpy, lambda values: xarray.DataArray(values, dims="n")):
        surrogate = surrogate_of().fit(x, u, parameters=kind(p))
        np.testing.assert_array_equal(surrogate.predict(x, parameters=kind(p)), expected)


def test_a_share_may_be_held_out(square):
    assert surrogate_of().fit(*square, validation=0.25).training_samples_ == 30
    for share in (0.0, 1.0, True):
        with pytest.raises(TwoscaleError, match="between 0 and 1, got"):
            surrogate_of().fit(*square, validation=share)
    with pytest.raises(TwoscaleError, match=r"or the share of samples .* got str"):
        surrogate_of().fit(*square, validation="x")


# One channel, with its axis or without


def test_one_channel_may_have_an_axis_anywhere(square, fitted):
    x, u = square
    other = surrogate_of().fit(x[:, None], u[:, None], validation=(x, u))
    mixed = surrogate_of().fit(x, u[:, None], validation=(x[:, None], u))
    assert (other.ranks_, mixed.ranks_) == ((4, 4), (3, 4))
    for surrogate in (fitted, other, mixed):
        shape = (3, 12, 12) if surrogate is fitted else (3, 1, 12, 12)
        both = surrogate.predict(x[:3]), surrogate.predict(x[:3, None])
        assert {one.shape for one in both} == {shape}
        errors = {surrogate.evaluate(a, b)["mre"] for a in (x, x[:, None]) for b in (u, u[:, None])}
        assert len(errors) == 1
    tuned = fitted.finetune(x[:, None], u[:, None], objective="A3", epochs=1, warm_up=0, ramp=0)
    assert tuned.ranks_ == (3, 3)


def test_one_sample_may_come_without_its_axis(square, fitted, tmp_path):
    x, u = square
    batch = fitted.predict(x[:1])
    one = fitted.predict(x[0])
    assert one.shape == (12, 12)
    np.testing.assert_array_equal(one, batch[0])
    assert fitted.predict(torch.from_numpy(x[0])).shape == (12, 12)
    with pytest.raises(TwoscaleError, match="16x12 fields: set resample"):
        fitted.predict(np.zeros((16, 12)))
    p = np.stack([np.linspace(0, 1, COUNT), np.ones(COUNT)], 1)
    p[:, 1] -= p[:, 0] ** 2
    with_two = surrogate_of().fit(x, u, parameters=p)
    expected = with_two.predict(x[:1], parameters=p[:1])
    for row in (p[0], p[:1]):
        np.testing.assert_array_equal(with_two.predict(x[0], parameters=row), expected[0])
    alone = surrogate_of().fit(None, u, parameters=p)
    assert alone.predict(None, parameters=p[0].tolist()).shape == (12, 12)


def test_channels_on_a_line_are_told_apart_once_they_are_known():
    x, u = smooth(COUNT, 3, 64), smooth(COUNT, 64, seed=1)
    surrogate = Surrogate("global", predictor="affine", device="cpu").fit(x[:, :, None], u)
    assert surrogate.input_space_.shape == (3, 1, 64)
    np.testing.assert_array_equal(surrogate.predict(x), surrogate.predict(x[:, :, None]))
    assert surrogate.predict(x[0]).shape == (64,)
    with pytest.warns(TwoscaleWarning, match=r"3 channels on a line, give fields\[:, :, None\]"):
        Surrogate("global", predictor="affine", device="cpu").fit(x, u)


# Labels


def labelled(x, **more):
    coords = {"run": np.arange(len(x)) + 7, "lat": np.linspace(-1, 1, 12)} | more
    return xarray.DataArray(
        x, dims=("run", "lat", "lon"), coords=coords, name="permeability", attrs={"unit": "m2"}
    )


def test_labelled_inputs_give_labelled_predictions(square, fitted):
    x, u = square
    given = labelled(x[:3])
    predicted = fitted.predict(given)
    assert isinstance(predicted, xarray.DataArray)
    np.testing.assert_array_equal(predicted.values, fitted.predict(x[:3]))
    assert predicted.dims == given.dims
    assert predicted.coords["run"].values.tolist() == [7, 8, 9]
    assert predicted.coords["lat"].equals(given.coords["lat"])
    assert predicted.name is None
    assert not predicted.attrs
    one = fitted.predict(given[0])
    assert one.dims == ("lat", "lon")
    both = np.stack([u, -x], 1)
    named = surrogate_of().fit(labelled(x), both, output_names=["speed", "heat"])
    predicted = named.predict(given)
    assert predicted.dims == ("run", "channel", "lat", "lon")
    assert predicted.sel(channel="heat").shape == (3, 12, 12)


def test_labels_of_another_grid_are_not_kept(square):
    x, u = square
    coarse = surrogate_of().fit(x, u[:, ::2, :])
    predicted = coarse.predict(labelled(x[:2]))
    assert predicted.dims == ("run", "output_lat", "lon")
    assert "output_lat" not in predicted.coords
    line = Surrogate("global", predictor="affine", device="cpu").fit(x, u[:, 0])
    assert line.predict(labelled(x[:2])).dims == ("run", "lon")


def test_axes_that_the_inputs_lack_have_plain_names(square):
    x, u = square
    lines = xarray.DataArray(x[:, 0], dims=("run", "lon"))
    surrogate = Surrogate("global", predictor="affine", device="cpu")
    predicted = surrogate.fit(lines, u, output_names=["speed"]).predict(lines[:2])
    assert predicted.dims == ("run", "row", "lon")
    scalars = xarray.DataArray(x[:, 0, :3], dims=("run", "row"))
    surrogate.fit(None, u[:, None], parameters=scalars, output_names=["speed"])
    predicted = surrogate.predict(None, parameters=scalars[:2])
    assert predicted.dims == ("run", "channel", "output_row", "column")
    assert predicted.coords["channel"].values.tolist() == ["speed"]


def test_plain_arrays_cause_no_warnings(square):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(surrogate_of().fit(*square), Surrogate)
