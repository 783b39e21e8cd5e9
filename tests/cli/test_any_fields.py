"""Import, check, fit, evaluate, predict and fine-tune fields of every kind."""

import json

import numpy as np
import pytest

from tests.cli.outcome import refused
from twoscale import Surrogate
from twoscale.data import Dataset

SAMPLES = 60
SETTINGS = ("--method", "two-scale", "--set", "patches=2", "--set", "coarse_factor=4")
SETTINGS += ("--set", "epochs=2")


def waves(seed, *shape):
    """Return smooth fields (samples, *shape) that are periodic on the unit square."""
    generator = np.random.default_rng(seed)
    axes = np.meshgrid(*(np.arange(side) / side for side in shape[-2:]), indexing="ij")
    total = np.zeros((SAMPLES, *shape))
    for k in (1, 2, 3):
        phases = generator.uniform(0, 2 * np.pi, (2, SAMPLES, *shape[:-2], *(1,) * len(axes)))
        for axis, phase in zip(axes, phases[: len(axes)], strict=True):
            total += np.sin(2 * np.pi * k * axis + phase) / k
    return total


def numbers(seed, count):
    return np.random.default_rng(seed).uniform(1, 2, (SAMPLES, count))


def two_channels():
    a, b = waves(0, 12, 14), waves(1, 12, 14)
    arrays = {"a": a, "b": b, "u": 1e5 * a[:, :9, :10], "v": 1e-3 * b[:, :9, :10]}
    return arrays, ("--input", "a,b", "--output", "u,v")


def parameters_beside():
    x, p = waves(2, 17, 23), numbers(3, 2)
    arrays = {"x": x, "p": p, "u": x.cumsum(1) * p[:, :1, None]}
    return arrays, ("--input", "x", "--parameters", "p", "--output", "u", "--periodic", "columns")


def parameters_alone():
    p = numbers(4, 3)
    arrays = {"p": p, "u": np.einsum("np,pij->nij", p, waves(5, 16, 16)[:3])}
    return arrays, ("--parameters", "p", "--output", "u")


def lines():
    x = waves(6, 1, 64)[:, 0]
    return {"x": x, "u": x.cumsum(1)}, ("--input", "x", "--output", "u")


def periodic():
    x = waves(7, 1, 16, 16)
    return {"x": x, "u": np.roll(x, 3, -1)}, ("--input", "x", "--output", "u", "--periodic", "both")


CASES = {
    "two channels": (two_channels, (2, 9, 10)),
    "parameters beside fields": (parameters_beside, (17, 23)),
    "parameters alone": (parameters_alone, (16, 16)),
    "lines": (lines, (64,)),
    "periodic": (periodic, (1, 16, 16)),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def case(request, tmp_path_factory):
    """The folder of a case, its arrays, the words of its import, and the shape of one output."""
    make, shape = request.param
    folder = tmp_path_factory.mktemp("case")
    arrays, words = make()
    np.savez(folder / "f.npz", **arrays)
    return folder, arrays, words, shape


def saved(folder, name, array):
    np.save(folder / name, array)
    return folder / name


def test_the_whole_way(done, case):
    folder, arrays, words, shape = case
    data, run, tuned = folder / "d.zarr", folder / "run", folder / "tuned"

    done("import", folder / "f.npz", *words, "--out", data)
    done("check", data)
    done("fit", data, *SETTINGS, "--out", run)
    done("check", run)
    stored = Dataset(data)
    metrics = json.loads(done("evaluate", run, "--json"))
    assert 0 < metrics["oracle_mre"] < metrics["mre"]
    names = stored.output_space.names
    assert set(metrics.get("channels", {})) == (set(names) if len(names or ()) > 1 else set())
    for values in metrics.get("channels", {}).values():
        assert {"mre", "oracle_mre", "ssim"} <= set(values)
    shown = done("evaluate", run)
    assert all(f"  {name}" in shown for name in metrics.get("channels", {}))

    keys = [name for name in ("a", "b", "x") if name in arrays]
    fields = np.stack([arrays[key] for key in keys], 1) if len(keys) > 1 else None
    fields = arrays[keys[0]] if len(keys) == 1 else fields
    extra, given = (), ()
    if "p" in arrays:
        extra = ("--parameters", saved(folder, "p.npy", arrays["p"][:5]))
    if fields is not None:
        given = (saved(folder, "x.npy", fields[:5]),)
    done("predict", run, *given, *extra, "--out", folder / "prediction.npy")
    predicted = np.load(folder / "prediction.npy")
    assert predicted.shape == (5, *shape)
    surrogate = Surrogate.load(run)
    expected = surrogate.predict(
        None if fields is None else fields[:5], parameters=arrays["p"][:5] if extra else None
    )
    np.testing.assert_allclose(predicted, expected, rtol=1e-4, atol=1e-5 * abs(expected).max())

    one = [saved(folder, "one.npy", fields[0])] if given else []
    if extra:
        one += ["--parameters", saved(folder, "q.npy", arrays["p"][0])]
    done("predict", run, *one, "--out", folder / "one-prediction.npy")
    single = np.load(folder / "one-prediction.npy")
    assert single.shape == shape
    np.testing.assert_allclose(single, predicted[0], rtol=1e-3, atol=1e-4 * abs(expected).max())

    plan = ("--objective", "A3", "--epochs", 2, "--warm-up", 0)
    done("finetune", run, *plan, "--out", tuned)
    done("evaluate", tuned)
    done("fit", data, *SETTINGS, "--out", run, "--overwrite")


def test_inputs_that_the_surrogate_does_not_read(twoscale, tmp_path):
    arrays, words = parameters_alone()
    np.savez(tmp_path / "f.npz", **arrays)
    data, run = tmp_path / "d.zarr", tmp_path / "run"
    assert twoscale("import", tmp_path / "f.npz", *words, "--out", data).status == 0
    assert twoscale("fit", data, *SETTINGS, "--out", run).status == 0
    out = ("--out", tmp_path / "p.npy")
    x, p = (saved(tmp_path, f"{name}.npy", numbers(0, n)) for name, n in (("x", 16), ("q", 2)))
    refused(twoscale("predict", run, *out), "3 parameters", "give --parameters")
    refused(twoscale("predict", run, x, *out), "3 parameters: drop input fields")
    refused(twoscale("predict", run, "--parameters", p, *out), "3", "2")
    assert not (tmp_path / "p.npy").exists()
