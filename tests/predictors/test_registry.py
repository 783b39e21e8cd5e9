"""The table of predictors, and predictors of somebody's own."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.pages import python_blocks
from tests.surrogate.tiny import tiny
from twoscale import METHODS, CodePredictor, Surrogate, TwoscaleError, register_predictor
from twoscale.methods.recipes import assemble, resolve, trains_on_fields
from twoscale.methods.settings import SETTINGS
from twoscale.networks import DenseNetwork
from twoscale.parts import PARTS
from twoscale.predictors.registry import PREDICTORS, defaults_of, get_predictor
from twoscale.representation import PatchPCA, TwoScale

DOCUMENT = Path(__file__).parents[2] / "docs/howto/own-predictor.md"


@pytest.fixture(autouse=True)
def forgotten():
    """Predictors that a test makes known are unknown to the next."""
    before = [(table, dict(table)) for table in (PREDICTORS, PARTS)]
    yield
    for table, known in before:
        table.clear()
        table.update(known)


@pytest.fixture
def arrays(poisson16):
    x, u = (fields.numpy() for fields in poisson16)
    return x[:150], u[:150], x[150:160]


class Mean(CodePredictor):
    """The mean output code, times a factor."""

    def __init__(self, *, factor=1.0, epochs=4, objective="block-balanced"):
        super().__init__(objective=objective)
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


def test_the_predictors_by_name():
    assert list(PREDICTORS) == ["mlp", "affine", "affine-mlp", "kernel", "encoder", "fno", "filter"]
    assert all(kind.name == name and PARTS[name] is kind for name, kind in PREDICTORS.items())
    with pytest.raises(TwoscaleError, match=r"predictor must be one of mlp, .*, got 'forest'"):
        get_predictor("forest")


def test_some_train_on_fields():
    on_fields = [name for name in PREDICTORS if trains_on_fields("local", {"predictor": name})]
    assert on_fields == ["encoder", "fno", "filter"]
    assert not trains_on_fields("local", {})
    assert trains_on_fields("fno", {})
    assert trains_on_fields("refinement", {"predictor": "affine"})


def test_every_argument_is_a_setting_with_a_meaning():
    for kind in PREDICTORS.values():
        assert set(defaults_of(kind)) <= set(SETTINGS)


@pytest.mark.parametrize("name", PREDICTORS)
def test_settings_make_the_predictor_of_that_name(name):
    settings = resolve("local", tiny("local", predictor=name))
    predictor = assemble("local", settings).predictor
    assert type(predictor) is PREDICTORS[name]
    assert predictor.arguments.items() <= settings.items()


# Predictors of somebody's own


def test_the_example_of_the_documentation_runs(arrays):
    x, u, _ = arrays
    names = {}
    for block in python_blocks(DOCUMENT.read_text(encoding="utf-8")):
        exec(block, names)
    surrogate = names["surrogate"]
    assert surrogate.settings["neighbours"] == 5
    assert surrogate.operator_.predictor.known.shape[0] == 8 * 135
    own = Surrogate("two-scale", predictor="neighbours", neighbours=1, device="cpu").fit(
        x, u, validation=(x[:5], u[:5])
    )
    with torch.no_grad():
        outputs = own.operator_.outputs
        known = outputs.decode(outputs.encode(torch.as_tensor(u[:4, None])))
    np.testing.assert_allclose(own.predict(x[:4]), known[:, 0].numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_it_is_fitted_saved_and_loaded_by_its_name(method, arrays, tmp_path):
    x, u, new = arrays
    register_predictor("mean", Mean, title="the mean code")
    surrogate = Surrogate(method, factor=0.5, device="cpu", **tiny(method, predictor="mean"))
    surrogate.fit(x, u).save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    assert loaded.settings == surrogate.settings
    np.testing.assert_array_equal(loaded.predict(new), surrogate.predict(new))
    del PREDICTORS["mean"], PARTS["mean"]
    with pytest.raises(TwoscaleError, match=r"called 'mean': .* your own has to be registered"):
        Surrogate.load(tmp_path / "saved", device="cpu")


def test_as_an_object_it_is_saved_and_loaded_too(arrays, tmp_path):
    x, u, new = arrays
    register_predictor("mean", Mean)
    surrogate = Surrogate(
        inputs=PatchPCA(0.9, patches=(2, 2)),
        predictor=Mean(factor=0.25),
        outputs=TwoScale(coarse_components=3),
        device="cpu",
    )
    surrogate.fit(x, u).save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    assert repr(loaded.parts.predictor) == "Mean(factor=0.25)"
    np.testing.assert_array_equal(loaded.predict(new), surrogate.predict(new))


def test_its_arguments_are_its_settings():
    register_predictor("mean", Mean)
    settings = resolve("local", {"predictor": "mean", "epochs": "7"})
    assert (settings["factor"], settings["epochs"]) == (1.0, 7)
    assert not {"ridge", "hidden_width", "patience"} & set(settings)
    assert {"input_variance", "symmetries", "objective", "solver"} <= set(settings)
    with pytest.raises(TwoscaleError, match=r"epochs must be a whole number .* got 'many'"):
        resolve("local", {"predictor": "mean", "epochs": "many"})
    with pytest.raises(TwoscaleError, match=r"no setting 'factr' \(did you mean factor\?\)"):
        resolve("local", {"predictor": "mean", "factr": 2})


def test_its_settings_may_have_names_of_ours_and_mean_something_else(arrays, tmp_path):
    class Other(Mean):
        def __init__(self, *, kernel="rbf", width=0.5):
            super().__init__()

    register_predictor("other", Other)
    surrogate = Surrogate("local", predictor="other", width=0.25, patches=2, device="cpu")
    surrogate.fit(*arrays[:2]).save(tmp_path / "saved")
    settings = Surrogate.load(tmp_path / "saved", device="cpu").settings
    assert (settings["kernel"], settings["width"]) == ("rbf", 0.25)
    assert "objective" not in settings  # it has no such argument


def test_its_arguments_are_not_taken_for_the_surrogates():
    class Seeded(Mean):
        def __init__(self, *, seed=0):
            super().__init__()

    with pytest.raises(TwoscaleError, match="seed of Seeded would be taken for that of the surr"):
        register_predictor("seeded", Seeded)


def test_it_is_told_of_the_objective_and_the_spaces(arrays):
    x, u, _ = arrays

    class Shaped(Mean):
        reads_fields = True

        def bind(self, inputs, outputs):
            self.shapes = inputs.space.shape, outputs.space.shape

    register_predictor("shaped", Shaped)
    settings = resolve("local", {"predictor": "shaped", "objective": "field"})
    assert "input_variance" not in settings
    assert trains_on_fields("local", settings)
    surrogate = Surrogate("local", predictor="shaped", objective="field", device="cpu")
    predictor = surrogate.fit(x[:, :, ::2], u).operator_.predictor
    assert predictor.shapes == ((1, 16, 8), (1, 16, 16))
    assert predictor.nearest


def test_without_epochs_it_says_so():
    class Plain(Mean):
        def __init__(self):
            super().__init__()

    register_predictor("plain", Plain)
    assert Mean.trains_epochs
    assert not Plain.trains_epochs
    assert "epochs" not in resolve("two-scale", {"predictor": "plain"})


def test_a_name_of_ones_own_may_be_given_anew():
    register_predictor("mean", Mean)
    register_predictor("mean", type("Other", (Mean,), {}))
    assert PREDICTORS["mean"].__name__ == "Other"
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


def test_a_class_in_place_of_an_object_is_refused():
    with pytest.raises(TwoscaleError, match=r"predictor is an object, not a class: write Mean\("):
        Surrogate("local", predictor=Mean)


def test_an_unknown_name_is_told_to_be_registered():
    with pytest.raises(TwoscaleError, match=r"predictor must be one of .*register_predictor"):
        Surrogate("local", predictor="mean")
