"""Surrogates fitted together are each what `fit` makes of them alone."""

import itertools
import weakref

import numpy as np
import pytest

from tests.surrogate import tiny
from twoscale import Surrogate, fit_together
from twoscale.operators import fitting
from twoscale.representation import GlobalPCA
from twoscale.representation.block_pca import BlockPCA


@pytest.fixture(scope="module")
def arrays(poisson16):
    """Training pair, validation pair, new inputs, as NumPy arrays."""
    x, u = (fields.numpy() for fields in poisson16)
    return (x[:120], u[:120]), (x[120:160], u[120:160]), x[160:]


@pytest.fixture(scope="module")
def data(arrays):
    """What every surrogate is fitted on: training pair and validation pair."""
    training, validation, _ = arrays
    return *training, validation


def make(method="two-scale", **options):
    return tiny.make(method, **options)


def members(surrogate):
    return {stage: history["members"] for stage, history in surrogate.history_.items()}


def check_alike(together, alone, new, *, tolerance=0.0):
    """The same predictions and the same histories, but for the number of members."""
    expected = alone.predict(new)
    atol = tolerance * np.abs(expected).max()
    np.testing.assert_allclose(together.predict(new), expected, rtol=0, atol=atol)
    assert together.history_.keys() == alone.history_.keys()
    for stage, history in alone.history_.items():
        ours = together.history_[stage]
        assert ours.keys() == history.keys()
        assert ours["best_epoch"] == history["best_epoch"]
        for name in ("validation_loss", "learning_rate"):
            assert ours[name] == pytest.approx(history[name], rel=tolerance, abs=0.0)
        # A reported sum only, of which the batched product rounds its last digit differently.
        assert ours["training_loss"] == pytest.approx(history["training_loss"], rel=1e-5, abs=0.0)


# Seeds


@pytest.mark.parametrize("method", ["global", "local", "overlap", "two-scale"])
def test_seeds_with_codes_of_equal_size_are_bit_for_bit_those_fitted_alone(method, arrays, data):
    surrogates = [make(method, seed=seed) for seed in range(3)]
    fit_together(surrogates, [data] * 3)
    sizes = {surrogate.evaluate(*data[2])["output_code"] for surrogate in surrogates}
    assert len(sizes) == 1
    for surrogate in surrogates:
        alone = make(method, seed=surrogate.seed).fit(*data[:2], validation=data[2])
        check_alike(surrogate, alone, arrays[2])
        assert members(surrogate) == {"training": 3}
        assert members(alone) == {"training": 1}


def test_seeds_with_splits_and_codes_of_their_own(arrays):
    (x, u), _, new = arrays
    plans = [{"seed": seed, "input_variance": 0.9 + 0.03 * seed} for seed in range(3)]
    surrogates = [make(**plan) for plan in plans]
    fit_together(surrogates, [(x, u, None)] * 3)
    assert len({surrogate.evaluate(x, u)["input_code"] for surrogate in surrogates}) == 3
    for surrogate, plan in zip(surrogates, plans, strict=True):
        check_alike(surrogate, make(**plan).fit(x, u), new, tolerance=1e-5)
        assert members(surrogate) == {"training": 3}


def test_surrogates_are_independent_afterwards(arrays, data, tmp_path):
    one, two = make(seed=0), make(seed=1)
    fit_together([one, two], [data] * 2)
    expected = two.predict(arrays[2])
    one.fit(*data[:2], validation=data[2])
    two.save(tmp_path / "two")
    np.testing.assert_array_equal(two.predict(arrays[2]), expected)
    loaded = Surrogate.load(tmp_path / "two", device="cpu")
    np.testing.assert_array_equal(loaded.predict(arrays[2]), expected)


def test_what_accompanies_a_fit_is_there(data):
    surrogates = [make(seed=seed) for seed in range(2)]
    calls = []
    fit_together(surrogates, [data] * 2, progress=lambda *call: calls.append(call[:3]))
    assert [call for call in calls if call[0] == "training"] == [
        ("training", epoch, 3) for epoch in (0, 1, 2, 3)
    ]
    for surrogate in surrogates:
        assert surrogate.training_samples_ == 120
        assert surrogate.finetuning_ is None
        stages = {"pca_input", "pca_coarse", "pca_residual", "transform", "training"}
        assert set(surrogate.timings_) >= stages


# Methods and variants


def test_methods_may_be_mixed(arrays, data):
    plans = {"two-scale": {}, "fno": {"epochs": 1}, "local": {}, "refinement": {}}
    surrogates = [make(method, **plan) for method, plan in plans.items()]
    fit_together(surrogates, [data] * 4)
    for surrogate in surrogates:
        alone = make(surrogate.method, **plans[surrogate.method])
        alone.fit(*data[:2], validation=data[2])
        check_alike(surrogate, alone, arrays[2], tolerance=1e-5)
    assert [members(surrogate)["training"] for surrogate in surrogates] == [3, 1, 3, 3]


@pytest.mark.parametrize(
    "variant", [{"hidden_width": 6}, {"hidden_layers": 2}, {"epochs": 2}, {"batch_size": 16}]
)
def test_networks_and_plans_of_another_kind_are_trained_apart(variant, arrays, data):
    surrogates = [make(), make(**variant), make(seed=1)]
    fit_together(surrogates, [data] * 3)
    assert [members(surrogate)["training"] for surrogate in surrogates] == [2, 1, 2]
    alone = make(**variant).fit(*data[:2], validation=data[2])
    check_alike(surrogates[1], alone, arrays[2])


def test_different_numbers_of_samples_are_trained_apart(arrays):
    (x, u), validation, new = arrays
    sizes = [120, 80, 120]
    surrogates = [make(seed=seed) for seed in range(3)]
    fit_together(surrogates, [(x[:size], u[:size], validation) for size in sizes])
    assert [members(surrogate)["training"] for surrogate in surrogates] == [2, 1, 2]
    for surrogate, size in zip(surrogates, sizes, strict=True):
        assert surrogate.training_samples_ == size
        alone = make(seed=surrogate.seed).fit(x[:size], u[:size], validation=validation)
        check_alike(surrogate, alone, new, tolerance=1e-5)


def test_validation_sets_may_differ_in_size(arrays):
    (x, u), (held_x, held_u), new = arrays
    surrogates = [make(seed=seed) for seed in range(2)]
    held = [(held_x[:count], held_u[:count]) for count in (40, 15)]
    fit_together(surrogates, [(x, u, pair) for pair in held])
    for surrogate, pair in zip(surrogates, held, strict=True):
        assert members(surrogate) == {"training": 2}
        check_alike(surrogate, make(seed=surrogate.seed).fit(x, u, validation=pair), new)


def test_parameters_may_follow(arrays):
    (x, u), _, new = arrays
    p = np.linspace(1, 2, len(x))[:, None]
    surrogates = [make(seed=seed) for seed in range(2)]
    fit_together(surrogates, [(x, u * p[:, :, None], None, p)] * 2)
    for surrogate in surrogates:
        alone = make(seed=surrogate.seed).fit(x, u * p[:, :, None], parameters=p)
        predicted, expected = (
            each.predict(new, parameters=p[: len(new)]) for each in (surrogate, alone)
        )
        np.testing.assert_allclose(predicted, expected, rtol=1e-5, atol=1e-5)


# Time and memory


def test_each_is_charged_an_equal_share_of_the_time(data, monkeypatch):
    ticks = itertools.count()  # a stage lasts one second
    monkeypatch.setattr(
        "twoscale.runtime.progress.now", lambda: float(next(ticks))
    )  # a stage lasts 1 s
    surrogates = [make(seed=seed) for seed in range(4)]
    fit_together(surrogates, [data] * 4)
    for surrogate in surrogates:
        assert surrogate.timings_["training"] == 1 + 0.25  # prepared alone, trained together
        assert surrogate.timings_["transform"] == 1.0


def test_data_given_as_functions_are_asked_for_one_at_a_time(arrays, data):
    events = []
    surrogates = [make(seed=seed) for seed in range(3)]

    def load(seed):
        events.append(f"data {seed}")
        return data

    def progress(stage, done, total, remark):
        if done == total:
            events.append(stage)

    loads = (lambda seed=seed: load(seed) for seed in range(3))
    fit_together(surrogates, loads, progress=progress)
    fits = [[f"data {seed}", "representations"] for seed in range(3)]
    assert events == [*itertools.chain(*fits), "training"]
    held = [make(seed=seed) for seed in range(3)]
    fit_together(held, [data] * 3)
    for one, other in zip(surrogates, held, strict=True):
        check_alike(one, other, arrays[2])


@pytest.mark.parametrize("method", ["two-scale", "fno"])
def test_fields_of_one_surrogate_at_a_time_are_in_memory(method, data):
    alive = []

    def load():
        assert not any(reference() is not None for reference in alive)
        x, u = (fields.copy() for fields in data[:2])
        alive.extend((weakref.ref(x), weakref.ref(u)))
        return x, u, data[2]

    fit_together([make(method, seed=seed) for seed in range(3)], [load] * 3)


# Predictors


def test_predictors_of_all_kinds_together(arrays, data):
    """Networks learn side by side, what an affine map leaves among them; the rest is solved."""
    kinds = ("mlp", "affine", "affine-mlp", "kernel")
    surrogates = [make(predictor=kind) for kind in kinds]
    fit_together(surrogates, [data] * 4, same=[0] * 4)
    for surrogate, kind in zip(surrogates, kinds, strict=True):
        alone = make(predictor=kind).fit(*data[:2], validation=data[2])
        check_alike(surrogate, alone, arrays[2])
        assert members(surrogate) == ({"training": 2} if "mlp" in kind else {})


def test_fits_with_and_without_symmetries_share_no_representation(arrays, data):
    surrogates = [
        make(predictor="affine", symmetries=symmetries) for symmetries in ("none", "mirrors")
    ]
    fit_together(surrogates, [data] * 2, same=[0, 0])
    for surrogate, symmetries in zip(surrogates, ("none", "mirrors"), strict=True):
        alone = make(predictor="affine", symmetries=symmetries)
        alone.fit(*data[:2], validation=data[2])
        check_alike(surrogate, alone, arrays[2])


# Memory of the device


class Meter:
    """A device whose counter of peak memory can be read and reset, as CUDA's."""

    def __init__(self):
        self.peak = 0.0

    def use(self, gigabytes):
        self.peak = max(self.peak, gigabytes)

    def forget(self):
        self.peak = 0.0


@pytest.fixture
def meter(monkeypatch):
    """A device on which global PCA needs 7 GB, patches 4, networks on codes 3, on fields 5."""
    meter = Meter()
    monkeypatch.setattr(fitting, "device_peak_gigabytes", lambda: meter.peak)
    for module in ("operators.fitting", "surrogate.driver", "surrogate.surrogate"):
        monkeypatch.setattr(f"twoscale.{module}.reset_peak_memory", meter.forget)
    fit, train = BlockPCA.fit, fitting.train_together

    def fit_pca(self, *arguments, **options):
        meter.use(7.0 if isinstance(self, GlobalPCA) else 4.0)
        return fit(self, *arguments, **options)

    def train_networks(tasks, *, name, **options):
        meter.use(3.0 if name == "training" else 5.0)
        return train(tasks, name=name, **options)

    monkeypatch.setattr(BlockPCA, "fit", fit_pca)
    monkeypatch.setattr(fitting, "train_together", train_networks)
    return meter


PEAKS = {"global": 7.0, "local": 4.0, "refinement": 5.0, "fno": 3.0}


@pytest.mark.parametrize("order", [list(PEAKS), list(reversed(PEAKS))], ids=["down", "up"])
@pytest.mark.parametrize("shared", [False, True], ids=["own PCA", "shared PCA"])
def test_the_peak_of_memory_is_that_of_the_own_parts(order, shared, data, meter):
    """Neither does a later fit hide a peak, nor is an earlier one's taken for one's own."""
    surrogates = [make(method) for method in order]
    fit_together(surrogates, [data] * 4, same=[0] * 4 if shared else None)
    assert {one.method: one.peak_device_gigabytes_ for one in surrogates} == PEAKS
    for method in order:
        alone = make(method).fit(*data[:2], validation=data[2])
        assert alone.peak_device_gigabytes_ == PEAKS[method]


def test_a_fit_that_failed_leaves_no_peak_to_others(data, meter, monkeypatch):
    def too_large(self, *arguments, **options):
        meter.use(9.0)
        raise MemoryError

    monkeypatch.setattr(GlobalPCA, "fit", too_large)
    surrogates, errors = [make("local"), make("global")], []
    fit_together(surrogates, [data] * 2, failed=lambda place, error: errors.append(place))
    assert errors == [1]
    assert surrogates[0].peak_device_gigabytes_ == PEAKS["local"]


def test_a_fine_tuning_has_a_peak_of_its_own(data, meter):
    fitted = make("global").fit(*data[:2], validation=data[2])
    tuned = fitted.finetune(*data[:2], validation=data[2], objective="A1", epochs=1)
    assert (fitted.peak_device_gigabytes_, tuned.peak_device_gigabytes_) == (7.0, 5.0)
