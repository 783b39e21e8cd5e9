"""Predictors by name, and predictors of somebody's own."""

import numpy as np
import pytest
import torch

from tests.surrogate.tiny import tiny
from twoscale import CodePredictor, Surrogate, TwoscaleError
from twoscale.methods.recipes import assemble, resolve
from twoscale.parts import PARTS, is_ours
from twoscale.predictors import get_predictor, predictors
from twoscale.representation import PatchPCA, TwoScale
from twoscale.settings import settings_of

pytestmark = pytest.mark.usefixtures("own_parts")
OURS = [name for name, kind in predictors().items() if is_ours(kind)]


@pytest.fixture
def arrays(poisson16):
    x, u = (fields.numpy() for fields in poisson16)
    return x[:150], u[:150], x[150:160]


class Mean(CodePredictor):
    """The mean output code, times a factor; a subclass with a name is known by it."""

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


def define(name="mean", bases=(Mean,), **attributes):
    return type("Own", bases, {"name": name, **attributes})


def test_the_predictors_by_name():
    assert OURS == ["affine", "affine-mlp", "encoder", "filter", "fno", "kernel", "mlp"]
    for name in ("forest", "refinement-net", "two-scale"):  # the second corrects fields only
        with pytest.raises(TwoscaleError, match=rf"one of affine, .*, got '{name}'"):
            get_predictor(name)


@pytest.mark.parametrize("name", OURS)
def test_every_argument_is_a_setting_with_a_meaning(name):
    assert all(setting.meaning for setting in settings_of(get_predictor(name)).values())
    settings = resolve("local", tiny("local", predictor=name))
    predictor = assemble("local", settings).predictor
    assert type(predictor) is get_predictor(name)
    assert predictor.arguments.items() <= settings.items()


@pytest.mark.parametrize("method", ["global", "refinement", "two-scale", "whole-field"])
def test_it_is_fitted_saved_and_loaded_by_its_name(method, arrays, tmp_path):
    x, u, new = arrays
    define()
    surrogate = Surrogate(method, factor=0.5, device="cpu", **tiny(method, predictor="mean"))
    surrogate.fit(x, u).save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    assert loaded.settings == surrogate.settings
    np.testing.assert_array_equal(loaded.predict(new), surrogate.predict(new))
    del PARTS["mean"]
    with pytest.raises(TwoscaleError, match=r"called 'mean'.* imported first"):
        Surrogate.load(tmp_path / "saved", device="cpu")


def test_as_an_object_it_is_saved_and_loaded_too(arrays, tmp_path):
    x, u, new = arrays
    surrogate = Surrogate(
        inputs=PatchPCA(0.9, patches=(2, 2)),
        predictor=define()(factor=0.25),
        outputs=TwoScale(coarse_components=3),
        device="cpu",
    )
    surrogate.fit(x, u).save(tmp_path / "saved")
    loaded = Surrogate.load(tmp_path / "saved", device="cpu")
    assert repr(loaded.parts.predictor) == "Own(factor=0.25)"
    np.testing.assert_array_equal(loaded.predict(new), surrogate.predict(new))


def test_its_arguments_are_its_settings():
    define()
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
        name = "other"

        def __init__(self, *, kernel="rbf", width=0.5):
            super().__init__()

    surrogate = Surrogate("local", predictor="other", width=0.25, patches=2, device="cpu")
    surrogate.fit(*arrays[:2]).save(tmp_path / "saved")
    settings = Surrogate.load(tmp_path / "saved", device="cpu").settings
    assert (settings["kernel"], settings["width"]) == ("rbf", 0.25)
    assert "objective" not in settings  # it has no such argument
    assert Mean.trains_epochs
    assert not Other.trains_epochs


def test_it_is_told_of_the_objective_and_the_spaces(arrays):
    x, u, _ = arrays

    def bind(self, inputs, outputs):
        self.shapes = inputs.space.shape, outputs.space.shape

    define("shaped", reads_fields=True, bind=bind)
    settings = resolve("local", {"predictor": "shaped", "objective": "field"})
    assert "input_variance" not in settings
    surrogate = Surrogate("local", predictor="shaped", objective="field", device="cpu")
    predictor = surrogate.fit(x[:, :, ::2], u).operator_.predictor
    assert predictor.shapes == ((1, 16, 8), (1, 16, 16))
    assert predictor.targets_nearest_codes


def _demanding(self, size):
    """A constructor without a default."""


def _seeded(self, *, seed=0):
    """A constructor with an argument that is the surrogate's."""


@pytest.mark.parametrize(
    ("name", "init", "wanted"),
    [
        ("mine", _demanding, "Own .* need defaults: give one to size"),
        ("mine", _seeded, "seed of Own would be taken for that of the surrogate"),
        ("kernel", Mean.__init__, "'kernel' is one of twoscale's own"),
    ],
)
def test_a_class_that_cannot_be_named_is_refused(name, init, wanted):
    with pytest.raises(TwoscaleError, match=wanted):
        define(name, __init__=init)
    assert "mine" not in predictors()


def test_a_class_in_place_of_an_object_is_refused():
    with pytest.raises(TwoscaleError, match=r"predictor is an object, not a class: write Mean\("):
        Surrogate("local", predictor=Mean)
