"""Arguments that no surrogate takes, and what is said of them."""

import numpy as np
import pytest
import torch

from tests.surrogate.tiny import make, tiny
from twoscale import METHODS, Surrogate
from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.fields import samples
from twoscale.fields.samples import check_prediction
from twoscale.fields.source import Batch

any_method = pytest.mark.parametrize("method", METHODS)


def test_an_unfitted_surrogate_says_so(arrays, tmp_path):
    _, _, new, truth = arrays
    surrogate = make("local")
    for act in (
        lambda: surrogate.predict(new),
        lambda: surrogate.evaluate(new, truth),
        lambda: surrogate.save(tmp_path / "x"),
    ):
        with pytest.raises(TwoscaleError, match="not fitted yet: call fit or load first"):
            act()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shape", [(2, 16, 17), (2, 32, 32)])
def test_another_grid_is_refused(fitted, shape):
    fields = np.zeros(shape, dtype=np.float32)
    message = f"fitted on inputs of 16x16 fields, these are {shape[1]}x{shape[2]} fields"
    message += ": set resample"
    with pytest.raises(TwoscaleError, match=message):
        fitted["local"].predict(fields)
    with pytest.raises(TwoscaleError, match=message):
        fitted["local"].evaluate(fields, fields)


@pytest.mark.parametrize("shape", [(2, 3, 16, 16), (2, 2, 16), (12, 16)])
def test_other_channels_and_lines_are_refused(fitted, shape):
    came = {2: "12x16", 3: "2x16", 4: "3x16x16"}[len(shape)]
    with pytest.raises(TwoscaleError, match=f"inputs of 16x16 fields, these are {came} fields"):
        fitted["local"].predict(np.zeros(shape, dtype=np.float32))


BAD_ARRAYS = [
    (np.zeros((0, 16, 16)), r"shape \(samples, height, width\), .* got \(0, 16, 16\)"),
    (np.zeros(16), r"shape \(samples, height, width\), .* got \(16,\)"),
    (np.zeros((2, 1, 4, 16, 16)), "in three dimensions are not supported; take slices"),
    (np.full((2, 16, 16), np.nan), "contain NaN or infinite values"),
    (np.full((2, 16, 16), np.inf), "contain NaN or infinite values"),
    (np.zeros((2, 16, 16), dtype=complex), "must be real numbers, got complex128: .* two channels"),
    (torch.zeros(2, 16, 16, dtype=torch.complex64), "must be real numbers, got torch.complex64"),
    (np.full((2, 16, 16), "a"), "must be real numbers, got dtype <U1"),
    ([[1.0, 2.0], [1.0]], "are a list whose entries differ in shape"),
    ({"a": 1.0}, "must be an array, got dict"),
]


@pytest.mark.parametrize(("array", "message"), BAD_ARRAYS, ids=[m[-25:] for _, m in BAD_ARRAYS])
def test_bad_arrays_are_refused(fitted, array, message):
    with pytest.raises(TwoscaleError, match="the input fields " + ".*" + message):
        fitted["local"].predict(array)


def test_nothing_to_predict_from_is_refused(fitted):
    with pytest.raises(TwoscaleError, match="nothing to predict from: give input fields"):
        fitted["local"].predict(None)


def test_one_bad_value_anywhere_in_the_training_set_is_found(arrays):
    x, u, _, _ = arrays
    bad = u.copy()
    bad[77, 3, 5] = np.nan
    with pytest.raises(TwoscaleError, match=r"the .* output fields contain NaN or infinite values"):
        make("local").fit(x, bad)
    bad = x.copy()
    bad[77, 3, 5] = -np.inf
    with pytest.raises(TwoscaleError, match=r"the .* input fields contain NaN or infinite values"):
        make("local").fit(bad, u)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("two-scale", {}),
        ("conforming", {}),
        ("fno", {}),
        ("two-scale", {"predictor": "encoder"}),
        ("two-scale", {"predictor": "kernel"}),
    ],
)
def test_values_near_the_ends_of_single_precision_are_refused(arrays, method, settings):
    x, u, _, _ = arrays
    surrogate = Surrogate(method, device="cpu", **tiny(method, **settings))
    unit = u / abs(u).max()
    for side in ((x, unit * np.float32(3e38)), (x / abs(x).max() * np.float32(3e38), u)):
        with pytest.raises(TwoscaleError, match="too near to the end of single precision"):
            surrogate.fit(*side)
    with pytest.raises(
        TwoscaleError, match=r"infinite values \(in single precision, which ends at"
    ):
        surrogate.fit(x, unit.astype(np.float64) * 1e40)
    with pytest.raises(TwoscaleError, match=r"output fields vary by .*, too near to the smallest"):
        surrogate.fit(x, unit * np.float32(1e-38))


def test_predictions_that_are_not_finite_are_refused(arrays):
    x, u, _, _ = arrays
    surrogate = make("two-scale", predictor="affine").fit(x, u * np.float32(1e30 / abs(u).max()))
    far = np.full_like(x[:2], 1e15)
    for given in (far, torch.from_numpy(far)):
        with pytest.raises(TwoscaleError, match=r"predicted fields contain NaN .*: the inputs may"):
            surrogate.predict(given)


def test_sums_that_overflow_are_no_reason_to_refuse(arrays):
    x, u, _, _ = arrays
    surrogate = make("local", predictor="affine").fit(x, u * np.float32(1e34 / abs(u).max()))
    assert np.isfinite(surrogate.predict(np.repeat(x, 40, 0))).all()


@pytest.mark.parametrize(("method", "settings"), [("global", {}), ("fno", {}), ("refinement", {})])
def test_a_mean_of_a_million_deviations_is_told_once(arrays, method, settings):
    x, u, _, _ = arrays
    wide = u.astype(np.float64) + 1e6 * u.std()
    with pytest.warns(TwoscaleWarning) as told:
        make(method, **settings).fit(x, wide)
    (warning,) = told.list
    assert "the training output fields vary by about 1e-6 of their mean" in str(warning.message)
    with pytest.warns(TwoscaleWarning, match="the training input fields vary by about 1e-5"):
        make(method, **settings).fit(x + np.float32(1e5 * x.std()), u)


def test_a_variation_that_the_conversion_loses_is_told(arrays):
    x, u, _, _ = arrays
    with pytest.warns(TwoscaleWarning, match="output fields are all the same in single precision"):
        make("local").fit(x, u.astype(np.float64) + 1e12 * u.std())


@pytest.mark.parametrize("method", ["two-scale", "fno"])
def test_a_training_that_diverges_without_infinities_is_told(arrays, method):
    x, u, _, _ = arrays
    rate = {"learning_rate": 10.0, "epochs": 5}
    with pytest.warns(TwoscaleWarning, match=r"training diverged: .* epoch 1 on .* epoch \d, but"):
        make(method, **rate).fit(x, u)


def test_ordinary_trainings_are_not_told(arrays, recwarn):
    x, u, _, _ = arrays
    for method in ("two-scale", "fno"):
        make(method, epochs=20).fit(x, u)
    assert not recwarn.list


def test_unequal_numbers_of_fields_are_refused(arrays):
    x, u, _, _ = arrays
    with pytest.raises(TwoscaleError, match="there are 160 inputs but 150 outputs: they must be"):
        make("local").fit(x, u[:150])
    with pytest.raises(TwoscaleError, match="there are 9 validation inputs but 8 outputs"):
        make("local").fit(x, u, validation=(x[:9], u[:8]))


def test_validation_on_another_grid_is_refused(arrays):
    x, u, _, _ = arrays
    message = "training inputs are 16x16 fields, validation inputs 8x16 fields: they must agree"
    with pytest.raises(TwoscaleError, match=message):
        make("local").fit(x, u, validation=(x[:, ::2], u[:, ::2]))
    message = "training outputs are 16x16 fields, validation outputs 2x16x16 fields"
    with pytest.raises(TwoscaleError, match=message):
        make("local").fit(x, u, validation=(x, np.stack([u, u], 1)))


def test_too_few_pairs_are_refused(arrays):
    x, u, _, _ = arrays
    with pytest.raises(TwoscaleError, match="needs at least 4 pairs of fields, got 3"):
        make("local").fit(x[:3], u[:3])


@any_method
def test_more_patches_than_a_grid_can_be_cut_into_are_refused(method, arrays):
    x, u, _, _ = arrays
    if method in ("global", "fno", "whole-field"):  # they cut nothing
        make(method, patches=9).fit(x[:40], u[:40])
        return
    with pytest.raises(TwoscaleError, match="16 nodes can be cut into 1 to 8 patches, got 9"):
        make(method, patches=9).fit(x, u)


def test_illegal_coarse_grids_are_refused(arrays):
    x, u, _, _ = arrays
    with pytest.raises(TwoscaleError, match="between 1 and 8 on a grid of 16x16, got 9"):
        make("two-scale", coarse_factor=9).fit(x, u)
    with pytest.raises(TwoscaleError, match="factor 4 gives 16 values for 16 fields"):
        make("two-scale").fit(x[:18], u[:18])


def test_unknown_names_are_refused_at_once():
    with pytest.raises(TwoscaleError, match="no method is called 'magic'"):
        Surrogate("magic")
    with pytest.raises(TwoscaleError, match="did you mean epochs"):
        Surrogate("local", epoch=3)
    with pytest.raises(TwoscaleError, match="the device is auto, cpu or cuda, got 'tpu'"):
        Surrogate("local", device="tpu")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_missing_gpu_is_told():
    assert Surrogate("local").device.type == "cpu"
    with pytest.raises(TwoscaleError, match="no device cuda here"):
        Surrogate("local", device="cuda")


@pytest.mark.parametrize("name", ["cpu:abc", "cuda:abc", "cpu:-1", "mps", ""])
def test_a_device_that_is_none_is_told(name):
    with pytest.raises(TwoscaleError, match=f"the device is auto, cpu or cuda, got '{name}'"):
        Surrogate("local", device=name)


@pytest.mark.parametrize("name", ["cpu:1", "cuda:99"])
def test_a_device_number_that_is_not_here_is_told(name):
    with pytest.raises(TwoscaleError, match=f"no device {name} here"):
        Surrogate("local", device=name)


@pytest.mark.parametrize("seed", [0, 2**63 - 1, np.int64(5), np.uint8(7)])
def test_whole_numbers_are_seeds(seed):
    assert Surrogate("local", seed=seed).seed == int(seed)
    assert type(Surrogate("local", seed=seed).seed) is int


@pytest.mark.parametrize("seed", [-1, 2**63, True, False, 1.0, "1", None])
def test_nothing_else_is_a_seed(seed):
    with pytest.raises(TwoscaleError, match="the seed must be a whole number from 0"):
        Surrogate("local", seed=seed)


@pytest.mark.parametrize("batch_size", [0, -3])
def test_a_batch_holds_at_least_one_field(fitted, arrays, batch_size):
    with pytest.raises(TwoscaleError, match=f"at least 1, got {batch_size}"):
        fitted["local"].predict(arrays[2], batch_size=batch_size)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("name", "place"), [("input", 0), ("predicted", 1)])
def test_one_product_finds_what_is_not_finite_on_either_side(monkeypatch, value, name, place):
    sides = torch.zeros(2, 7, 1, 4, 5)
    check_prediction(Batch.of(sides[0]), sides[1])
    sides[place, 6, 0, 3, 4] = value  # beside a zero on the other side
    for together in (2**31 - 1, 40):
        monkeypatch.setattr(samples, "_DOT_VALUES", together)
        with pytest.raises(TwoscaleError, match=f"the {name} fields contain NaN or infinite"):
            check_prediction(Batch.of(sides[0]), sides[1])
    large = torch.full((7, 1, 4, 5), 1e30)
    check_prediction(Batch.of(large), large)
