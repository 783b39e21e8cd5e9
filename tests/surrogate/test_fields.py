"""Fields of any rank, channels, parameters and grids, on their way in and out of a surrogate."""

import numpy as np
import pytest
import torch

from twoscale import Surrogate, TwoscaleError

COUNT = 60


def surrogate_of(method="two-scale", **options):
    usual = {"predictor": "affine", "few_features": False, "coarse_components": 4}
    return Surrogate(method, device="cpu", **usual | options)


def smooth(*shape, seed=0):
    """Random combinations (samples, …, length) of six fields that are smooth along a row."""
    generator = np.random.default_rng(seed)
    points = np.linspace(0, 1, shape[-1])
    waves = np.stack([np.cos(np.pi * k * points) for k in range(4)])
    modes = generator.standard_normal((6, *shape[1:-1], 4)) @ waves
    return np.tensordot(generator.standard_normal((shape[0], 6)), modes, 1).astype(np.float32)


@pytest.fixture(scope="module")
def square():
    x = smooth(COUNT, 16, 16)
    return x, x.cumsum(2)


# Ranks


@pytest.mark.parametrize(
    ("input_shape", "output_shape"),
    [
        ((64,), (64,)),
        ((16, 16), (16, 16)),
        ((1, 16, 16), (1, 16, 16)),
        ((2, 16, 16), (3, 16, 16)),
        ((64,), (16, 64)),
        ((2, 16, 16), (16, 16)),
        ((16, 16), (1, 16, 16)),
        ((1, 64), (64,)),
    ],
    ids=str,
)
def test_results_have_the_axes_of_the_training_outputs(input_shape, output_shape, tmp_path):
    x, u = smooth(COUNT, *input_shape), smooth(COUNT, *output_shape, seed=1)
    surrogate = surrogate_of().fit(x, u)
    assert surrogate.ranks_ == (x.ndim, u.ndim)
    predicted = surrogate.predict(x[:3])
    assert predicted.shape == (3, *output_shape)
    assert surrogate.predict(torch.from_numpy(x[:3])).shape == (3, *output_shape)
    surrogate.save(tmp_path / "s")
    loaded = Surrogate.load(tmp_path / "s", device="cpu")
    np.testing.assert_array_equal(loaded.predict(x[:3]), predicted)
    assert loaded.ranks_ == surrogate.ranks_
    parts = [loaded.predict(**given) for _, given in loaded.input_parts(x)]
    np.testing.assert_allclose(np.concatenate(parts), loaded.predict(x))


# Channels


def test_channels_have_errors_of_their_own(square, tmp_path):
    x, u = square
    both = np.stack([u, 1e5 * (u + x)], 1)
    names = {"input_names": ("force",), "output_names": ("speed", "pressure")}
    surrogate = surrogate_of().fit(x[:, None], both, **names)
    metrics = surrogate.evaluate(x[:, None], both)
    assert list(metrics["channels"]) == ["speed", "pressure"]
    errors = [one["mre"] for one in metrics["channels"].values()]
    assert metrics["mre"] == pytest.approx(np.sqrt(np.mean(np.square(errors))))
    oracles = [one["oracle_mre"] for one in metrics["channels"].values()]
    assert metrics["oracle_mre"] == pytest.approx(np.sqrt(np.mean(np.square(oracles))))
    surrogate.save(tmp_path / "s")
    loaded = Surrogate.load(tmp_path / "s", device="cpu")
    assert loaded.output_space_.names == ("speed", "pressure")
    assert loaded.input_space_.names == ("force",)
    assert loaded.evaluate(x[:, None], both)["channels"] == metrics["channels"]


def test_channels_without_names_are_numbered(square):
    x, u = square
    metrics = surrogate_of().fit(x, np.stack([u, -x], 1)).evaluate(x, np.stack([u, -x], 1))
    assert list(metrics["channels"]) == ["0", "1"]
    assert "channels" not in surrogate_of().fit(x, u).evaluate(x, u)


@pytest.mark.parametrize("names", [("a",), ("a", "a"), ("a", "b", "c")])
def test_names_that_do_not_fit_are_refused(names, square):
    x, u = square
    with pytest.raises(TwoscaleError, match="2 channels need as many different names"):
        surrogate_of().fit(x, np.stack([u, u], 1), output_names=names)


# Parameters


@pytest.fixture(scope="module")
def scaled(square):
    """Fields whose outputs depend on two parameters each."""
    x, u = square
    p = np.random.default_rng(3).uniform(0.5, 1.5, (COUNT, 2))
    return x, (u + 20 * p[:, :1, None] * np.linspace(0, 1, 16)).astype(np.float32), p


def test_parameters_beside_fields(scaled, tmp_path):
    x, u, p = scaled
    settings = {"input_variance": 0.9999, "residual_variance": 0.9999}
    surrogate = surrogate_of(**settings).fit(x, u, parameters=p)
    assert surrogate.input_space_.parameters == 2
    assert surrogate.evaluate(x, u, parameters=p)["mre"] < 0.01
    without = surrogate_of(**settings).fit(x, u)
    assert surrogate.evaluate(x, u, parameters=p)["mre"] < 0.2 * without.evaluate(x, u)["mre"]
    surrogate.save(tmp_path / "s")
    loaded = Surrogate.load(tmp_path / "s", device="cpu")
    first = surrogate.predict(x[:3], parameters=p[:3])
    np.testing.assert_array_equal(loaded.predict(x[:3], parameters=p[:3]), first)
    assert not np.array_equal(loaded.predict(x[:3], parameters=p[3:6]), first)


def test_parameters_alone(scaled, tmp_path):
    _, _, p = scaled
    points = np.linspace(0, 1, 16)
    u = p[:, :1, None] * points[:, None] + p[:, 1:, None] * points**2
    surrogate = surrogate_of().fit(None, u, parameters=p)
    assert surrogate.evaluate(None, u, parameters=p)["mre"] < 0.01
    predicted = surrogate.predict(None, parameters=p[:3])
    assert isinstance(predicted, np.ndarray)
    assert predicted.shape == (3, 16, 16)
    tensor = surrogate.predict(None, parameters=torch.from_numpy(p[:3]))
    assert isinstance(tensor, torch.Tensor)
    surrogate.save(tmp_path / "s")
    loaded = Surrogate.load(tmp_path / "s", device="cpu")
    np.testing.assert_array_equal(loaded.predict(None, parameters=p[:3]), predicted)
    one = surrogate_of().fit(None, u, parameters=p[:, 0])  # a single one needs no second axis
    assert one.input_space_.parameters == 1


def test_wrong_numbers_of_parameters_are_refused(scaled):
    x, u, p = scaled
    surrogate = surrogate_of().fit(x, u, parameters=p)
    with pytest.raises(TwoscaleError, match="fitted with 2 parameters for each sample, got none"):
        surrogate.predict(x)
    with pytest.raises(TwoscaleError, match="fitted with 2 parameters for each sample, got 1"):
        surrogate.predict(x, parameters=p[:, :1])
    with pytest.raises(TwoscaleError, match="60 input fields but parameters of 59 samples"):
        surrogate.predict(x, parameters=p[:59])
    with pytest.raises(TwoscaleError, match="60 input fields but parameters of 59 samples"):
        surrogate_of().fit(x, u, parameters=p[:59])
    with pytest.raises(TwoscaleError, match="the parameters contain NaN"):
        surrogate_of().fit(x, u, parameters=p * np.nan)
    with pytest.raises(
        TwoscaleError, match="16x16 fields and 2 parameters, these are 16x16 fields and 1 parameter"
    ):
        surrogate.evaluate(x, u, parameters=p[:, :1])
    channels = np.stack([x, x, x], 1)
    with pytest.raises(
        TwoscaleError, match="16x16 fields and 2 parameters, these are 3x16x16 fields"
    ):
        surrogate.evaluate(channels, u)
    plain = surrogate_of().fit(x, u)
    with pytest.raises(TwoscaleError, match="with no parameters for each sample, got 2"):
        plain.predict(x, parameters=p)
    with pytest.raises(TwoscaleError, match="neither training input fields nor parameters"):
        surrogate_of().fit(None, u, validation=(None, u))


# Validation


def test_validation_with_parameters_is_a_triple(scaled):
    x, u, p = scaled
    order = np.random.default_rng(0).permutation(COUNT)
    rest, last = np.sort(order[:-6]), np.sort(order[-6:])
    by_hand = surrogate_of().fit(
        x[rest], u[rest], parameters=p[rest], validation=(x[last], u[last], p[last])
    )
    automatic = surrogate_of().fit(x, u, parameters=p)
    expected = automatic.predict(x, parameters=p)
    np.testing.assert_array_equal(by_hand.predict(x, parameters=p), expected)
    words = "training inputs are 16x16 fields and 2 parameters, validation inputs 16x16 fields"
    with pytest.raises(TwoscaleError, match=words):
        surrogate_of().fit(x, u, parameters=p, validation=(x, u))
    with pytest.raises(
        TwoscaleError, match=r"a pair .*, with parameters a triple, .* got 4 things"
    ):
        surrogate_of().fit(x, u, validation=(x, u, p, p))
    words = "16x16 fields and 2 parameters, validation inputs 3x16x16 fields"
    with pytest.raises(TwoscaleError, match=words):
        surrogate_of().fit(x, u, parameters=p, validation=(np.stack([x, x, x], 1), u))


# Grids


@pytest.mark.parametrize("periodic", [True, (False, True)])
def test_periodic_axes_are_kept(periodic, square, tmp_path):
    x, u = square
    surrogate = surrogate_of(periodic=periodic).fit(x, u)
    wraps = (True, True) if periodic is True else periodic
    assert surrogate.input_space_.grid.periodic == surrogate.output_space_.grid.periodic == wraps
    surrogate.save(tmp_path / "s")
    loaded = Surrogate.load(tmp_path / "s", device="cpu")
    assert loaded.periodic == wraps
    np.testing.assert_array_equal(loaded.predict(x), surrogate.predict(x))
    one, two = (each.evaluate(x, u)["common_seams"] for each in (surrogate, loaded))
    assert one == two
    plain = surrogate_of().fit(x, u).evaluate(x, u)["common_seams"]
    assert one["value_jump"] != plain["value_jump"], "the wrap is a seam"


@pytest.mark.parametrize("periodic", ["yes", (True,), (1, 0), 3])
def test_what_is_not_periodic_is_refused(periodic):
    with pytest.raises(TwoscaleError, match="periodic is true, false, or a pair of them"):
        surrogate_of(periodic=periodic)


@pytest.mark.parametrize("method", ["local", "two-scale", "fno"])
def test_inputs_and_outputs_may_have_grids_of_their_own(method, tmp_path):
    x, u = smooth(COUNT, 8, 12), smooth(COUNT, 17, 23, seed=1)
    if method == "fno":
        surrogate = Surrogate("fno", device="cpu", epochs=1, width=3, layers=1, modes=3)
    else:
        own = {"few_features": False} if method == "two-scale" else {}
        surrogate = Surrogate(method, device="cpu", predictor="affine", **own)
    surrogate.fit(x, u)
    predicted = surrogate.predict(x[:2])
    assert predicted.shape == (2, 17, 23)
    assert surrogate.evaluate(x, u)["mre"] > 0
    surrogate.save(tmp_path / "s")
    np.testing.assert_array_equal(
        Surrogate.load(tmp_path / "s", device="cpu").predict(x[:2]), predicted
    )
    with pytest.raises(TwoscaleError, match="inputs of 8x12 fields, these are 17x23 fields"):
        surrogate.predict(u[:2])
    with pytest.raises(TwoscaleError, match="outputs of 17x23 fields, these are 8x12 fields"):
        surrogate.evaluate(x, x)
