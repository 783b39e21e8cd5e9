"""The table of predictors, and predictors of somebody's own."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.surrogate.tiny import TINY, tiny
from twoscale import METHODS, CodePredictor, Grid, Surrogate, TwoscaleError, register_predictor
from twoscale.methods.recipes import resolve, trains_on_fields
from twoscale.methods.settings import CLOSED_FORMS, SETTINGS
from twoscale.networks import DenseNetwork
from twoscale.predictors.registry import PREDICTORS, SETTINGS_TOGETHER, TOGETHER

DOCUMENT = Path(__file__).parents[2] / "docs/predictors.md"
LATENT = [name for name, method in METHODS.items() if "predictor" in method.defaults]


@pytest.fixture(autouse=True)
def forgotten():
    """Predictors that a test makes known are unknown to the next."""
    before = dict(PREDICTORS)
    yield
    PREDICTORS.clear()
    PREDICTORS.update(before)


@pytest.fixture
def arrays(poisson16):
    x, u = (fields.numpy() for fields in poisson16)
    return x[:150], u[:150], x[150:160]


class Mean(CodePredictor):
    """The mean output code, times a factor."""

    def __init__(self, *, factor=1.0, epochs=4, nearest=False):
        super().__init__(nearest=nearest)
        self.factor = factor
        self.epochs = epochs
        self.register_buffer("mean", torch.empty(0))

    def prepare(self, training, validation, decoder, seed):
        self.mean = self.factor * training.targets.mean(0)

    def restore(self, tensors):
        self.mean = tensors["mean"]
        return self

    def forward(self, codes):
        return self.mean.expand(len(codes), -1)


# The table


def test_the_lists_follow_from_the_table():
    assert list(PREDICTORS) == ["mlp", "affine", "affine-mlp", "kernel", "encoder"]
    assert CLOSED_FORMS == ("affine", "kernel")
    assert [name for name in PREDICTORS if trains_on_fields("local", {"predictor": name})] == [
        "encoder"
    ]
    assert not trains_on_fields("local", {})
    assert trains_on_fields("fno", {})
    assert all(kind.title for kind in PREDICTORS.values())


def test_settings_of_the_table_have_a_meaning():
    for kind in PREDICTORS.values():
        assert set(kind.settings) <= set(SETTINGS)


@pytest.mark.parametrize("method", LATENT)
def test_predictors_that_came_together_share_their_settings(method):
    usual = resolve(method, {})
    for name in TOGETHER:
        assert resolve(method, {"predictor": name}) == usual | {"predictor": name}
    assert SETTINGS_TOGETHER.items() <= usual.items()


@pytest.mark.parametrize("method", LATENT)
def test_any_other_has_its_own_in_their_place(method):
    usual, encoder = resolve(method, {}), resolve(method, {"predictor": "encoder"})
    own = PREDICTORS["encoder"].settings
    assert encoder == own | {"predictor": "encoder"} | {
        name: value
        for name, value in usual.items()
        if name not in {*SETTINGS_TOGETHER, "input_variance", "predictor", *own}
    }


def test_an_optimiser_brings_its_rate():
    chosen = {"predictor": "encoder", "optimiser": "adam"}
    settings = resolve("local", chosen)
    assert (settings["learning_rate"], settings["clip"]) == (1e-3, 0.1)
    assert resolve("local", chosen | {"clip": 2})["clip"] == 2.0


@pytest.mark.parametrize("name", PREDICTORS)
def test_what_is_built_is_of_the_class_in_the_table(name):
    kind = PREDICTORS[name]
    predictor = kind.build(Grid.square(16), resolve("local", tiny("local", predictor=name)))
    assert type(predictor) is kind.predictor


# Predictors of somebody's own


def test_the_example_of_the_documentation_runs(arrays):
    x, u, _ = arrays
    (block,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    names = {"x": x, "u": u}
    exec(block, names)
    surrogate = names["surrogate"]
    assert surrogate.settings["neighbours"] == 5
    assert surrogate.operator_.predictor.known.shape[0] == 8 * 135
    own = Surrogate("two-scale", predictor="neighbours", neighbours=1, device="cpu").fit(
        x, u, validation=(x[:5], u[:5])
    )
    with torch.no_grad():
        outputs = own.operator_.outputs
        known = outputs.decode(outputs.encode(torch.as_tensor(u[:4])))
    np.testing.assert_allclose(own.predict(x[:4]), known.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", LATENT)
def test_it_is_fitted_saved_and_loaded_by_its_name(method, arrays, tmp_path):
    x, u, new = arrays
    register_predictor("mean", Mean, title="the mean code")
    small = {name: value for name, value in TINY[method].items() if "hidden" not in name}
    surrogate = Surrogate(method, predictor="mean", factor=0.5, device="cpu", **small)
    surrogate.fit(x, u).save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    assert loaded.settings == surrogate.settings
    np.testing.assert_array_equal(loaded.predict(new), surrogate.predict(new))
    del PREDICTORS["mean"]
    with pytest.raises(TwoscaleError, match=r"got 'mean': .* first, by twoscale.register_predict"):
        Surrogate.load(tmp_path / "saved", device="cpu")


def test_its_arguments_are_its_settings():
    register_predictor("mean", Mean)
    settings = resolve("local", {"predictor": "mean", "epochs": "7"})
    assert (settings["factor"], settings["epochs"]) == (1.0, 7)
    assert not {"ridge", "hidden_width", "patience", "nearest"} & set(settings)
    assert {"input_variance", "symmetries", "objective", "solver"} <= set(settings)
    with pytest.raises(TwoscaleError, match=r"epochs must be a whole number .* got 'many'"):
        resolve("local", {"predictor": "mean", "epochs": "many"})
    with pytest.raises(TwoscaleError, match=r"no setting 'factr' \(did you mean factor\?\)"):
        resolve("local", {"predictor": "mean", "factr": 2})


def test_its_settings_may_have_names_of_ours_and_mean_something_else(arrays, tmp_path):
    class Other(Mean):
        def __init__(self, *, kernel="rbf", width=0.5, nearest=False):
            super().__init__(nearest=nearest)

    register_predictor("other", Other)
    surrogate = Surrogate("local", predictor="other", width=0.25, patches=2, device="cpu")
    surrogate.fit(*arrays[:2]).save(tmp_path / "saved")
    settings = Surrogate.load(tmp_path / "saved", device="cpu").settings
    assert (settings["kernel"], settings["width"]) == ("rbf", 0.25)


def test_its_arguments_are_not_taken_for_the_surrogates():
    class Seeded(Mean):
        def __init__(self, *, seed=0, nearest=False):
            super().__init__(nearest=nearest)

    with pytest.raises(TwoscaleError, match="seed of Seeded would be taken for that of the surr"):
        register_predictor("seeded", Seeded)


def test_it_is_told_of_the_objective_and_the_grid():
    class Shaped(Mean):
        reads_fields = True

        def __init__(self, shape, nearest):
            super().__init__(nearest=nearest)
            self.shape = shape

    register_predictor("shaped", Shaped)
    settings = resolve("local", {"predictor": "shaped", "objective": "field"})
    assert "input_variance" not in settings
    predictor = PREDICTORS["shaped"].build(Grid(8, 16), settings)
    assert (predictor.shape, predictor.nearest) == ((8, 16), True)
    assert trains_on_fields("local", settings)


def test_a_name_of_ones_own_may_be_given_anew():
    register_predictor("mean", Mean)
    register_predictor("mean", type("Other", (Mean,), {}))
    assert PREDICTORS["mean"].predictor.__name__ == "Other"
    with pytest.raises(TwoscaleError, match="'kernel' is one of twoscale's own predictors"):
        register_predictor("kernel", Mean)


class _Unfinished(CodePredictor):
    def forward(self, codes):
        return codes


class _Demanding(Mean):
    def __init__(self, size):
        super().__init__()


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (DenseNetwork, "a predictor is a subclass of CodePredictor, got .*DenseNetwork"),
        (lambda: Mean(), "a predictor is a subclass of CodePredictor, got <function"),
        (_Unfinished, "_Unfinished lacks prepare, restore: see CodePredictor"),
        (
            _Demanding,
            "the arguments of _Demanding are settings and need defaults: give one to size",
        ),
    ],
)
def test_what_is_no_predictor_is_refused(given, wanted):
    with pytest.raises(TwoscaleError, match=wanted):
        register_predictor("mine", given)
    assert "mine" not in PREDICTORS


def test_a_class_that_is_not_registered_is_told_to_be():
    with pytest.raises(TwoscaleError, match=r"predictor must be one of .*register_predictor"):
        Surrogate("local", predictor=Mean)
