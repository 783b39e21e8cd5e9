"""Surrogates composed of parts as objects: any of the four, beside a method's recipe."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch

from twoscale import (
    Chain,
    CodePredictor,
    Conforming,
    GlobalPCA,
    PatchPCA,
    RestrictedPCA,
    Surrogate,
    TwoScale,
    TwoscaleError,
)
from twoscale.parts import PARTS
from twoscale.predictors import (
    FNO,
    MLP,
    Affine,
    AffineMLP,
    Encoder,
    Kernel,
    Refinement,
    SpectralFilter,
)
from twoscale.representation import WholeField

REPRESENTATIONS = {
    "global": lambda: GlobalPCA(0.9),
    "patches": lambda: PatchPCA(4, patches=(2, 2)),
    "overlap": lambda: PatchPCA(0.9, patches=(2, 2), overlap=True),
    "two-scale": lambda: TwoScale(coarse_components=4),
    "conforming": lambda: Conforming(code_size=40),
    "chain": lambda: Chain({"coarse": RestrictedPCA(4, factor=4), "fine": PatchPCA(0.8)}),
    "whole": WholeField,
}
PREDICTORS = {
    "mlp": lambda: MLP(epochs=2, hidden_width=8),
    "affine": Affine,
    "affine-mlp": lambda: AffineMLP(epochs=2, hidden_width=8),
    "kernel": Kernel,
    "encoder": lambda: Encoder(epochs=1, width=4, blocks=1),
    "fno": lambda: FNO(epochs=1, layers=1, width=3, modes=3),
    "filter": SpectralFilter,
}


def compose(**parts):
    return Surrogate(device="cpu", seed=1, **parts)


def check_saved(surrogate, new, folder):
    """Load what was saved and predict the same bits."""
    surrogate.save(folder)
    loaded = Surrogate.load(folder, device="cpu")
    np.testing.assert_array_equal(loaded.predict(new), surrogate.predict(new))
    assert repr(loaded) == repr(surrogate)
    assert loaded.parts.describe() == surrogate.parts.describe()
    return loaded


@pytest.mark.parametrize("outputs", REPRESENTATIONS)
@pytest.mark.parametrize("inputs", REPRESENTATIONS)
def test_any_two_representations(inputs, outputs, arrays, tmp_path):
    x, u, new, _ = arrays
    surrogate = compose(
        inputs=REPRESENTATIONS[inputs](), predictor=Affine(), outputs=REPRESENTATIONS[outputs]()
    ).fit(x[:80], u[:80])
    assert surrogate.predict(new).shape == new.shape
    check_saved(surrogate, new, tmp_path / "saved")


@pytest.mark.parametrize("predictor", PREDICTORS)
@pytest.mark.parametrize("outputs", ["two-scale", "chain", "whole"])
def test_any_predictor(outputs, predictor, arrays, tmp_path):
    x, u, new, _ = arrays
    surrogate = compose(predictor=PREDICTORS[predictor](), outputs=REPRESENTATIONS[outputs]())
    reads_fields = surrogate.parts.predictor.reads_fields
    assert isinstance(surrogate.parts.inputs, WholeField) == reads_fields
    surrogate.fit(x[:60], u[:60])
    assert np.isfinite(surrogate.predict(new)).all()
    check_saved(surrogate, new, tmp_path / "saved")


def test_a_correction_follows(arrays, tmp_path):
    x, u, new, truth = arrays
    parts = {"inputs": PatchPCA(0.99), "predictor": Affine(), "outputs": PatchPCA(4)}
    plain = compose(**parts).fit(x, u)
    refined = compose(**parts, correction=Refinement(epochs=3, channels=4)).fit(x, u)
    assert not np.array_equal(plain.predict(new), refined.predict(new))
    assert {"training", "refinement"} >= refined.history_.keys() >= {"refinement"}
    loaded = check_saved(refined, new, tmp_path / "saved")
    assert loaded.evaluate(new, truth)["mre"] == refined.evaluate(new, truth)["mre"]
    with pytest.raises(TwoscaleError, match=r"correction maps fields to fields, and Affine\(\)"):
        compose(correction=Affine())


def test_a_composed_surrogate_is_that_of_its_recipe(arrays):
    x, u, new, _ = arrays
    recipe = Surrogate("two-scale", device="cpu", predictor="affine", coarse_components=4)
    composed = compose(
        inputs=PatchPCA(0.99),
        predictor=Affine(objective="block-balanced"),
        outputs=TwoScale(coarse_components=4),
    )
    assert composed.parts.describe() == recipe.parts.describe()
    expected = recipe.fit(x, u).predict(new)
    np.testing.assert_array_equal(
        Surrogate(
            device="cpu",
            inputs=PatchPCA(0.99),
            predictor=Affine(objective="block-balanced"),
            outputs=TwoScale(coarse_components=4),
        )
        .fit(x, u)
        .predict(new),
        expected,
    )


def test_parts_mix_with_a_method_and_its_settings(arrays):
    x, u, *_ = arrays
    surrogate = Surrogate("local", device="cpu", outputs=GlobalPCA(6), epochs=2, patches=2)
    assert surrogate.parts.predictor.arguments["epochs"] == 2
    assert surrogate.parts.inputs.arguments["patches"] == (2, 2)
    kept = surrogate.fit(x, u).retained
    assert kept["output"]["ranks"] == {"pca": [6]}
    assert len(kept["input"]["ranks"]["pca"]) == 4
    named = Surrogate(device="cpu", predictor="affine", outputs=GlobalPCA(6))
    assert isinstance(named.parts.predictor, Affine)


@pytest.mark.parametrize(
    ("parts", "settings", "name"),
    [
        ({"outputs": GlobalPCA(6)}, {"coarse_components": 4}, "coarse_components"),
        ({"predictor": Affine()}, {"epochs": 4}, "epochs"),
        ({"inputs": GlobalPCA(6)}, {"input_variance": 0.9}, "input_variance"),
        ({"predictor": Affine(), "outputs": GlobalPCA(6)}, {"objective": "field"}, "objective"),
    ],
)
def test_a_setting_of_a_replaced_part_is_refused(parts, settings, name):
    with pytest.raises(TwoscaleError, match=f"{name} would have no effect: .* as an object"):
        compose(**parts, **settings)


def test_a_setting_of_two_parts_concerns_the_other_one():
    surrogate = compose(outputs=GlobalPCA(6), solver="full")
    assert surrogate.parts.inputs.arguments["solver"] == "full"


@pytest.mark.parametrize(
    ("part", "value", "words"),
    [
        ("inputs", PatchPCA, r"inputs is an object, not a class: write PatchPCA\("),
        ("predictor", Affine, r"predictor is an object, not a class: write Affine\("),
        ("outputs", TwoScale, r"outputs is an object, not a class: write TwoScale\("),
        ("correction", Refinement, r"correction is an object, not a class: write Refinement\("),
        ("inputs", Affine(), r"inputs must be a Representation, got Affine\("),
        ("outputs", 0.99, "outputs must be a Representation, got 0.99"),
        ("predictor", PatchPCA(0.9), r"predictor must be a CodePredictor, got PatchPCA\(0.9\)"),
        ("predictor", "magic", "predictor must be one of .*, got 'magic'"),
    ],
)
def test_other_things_are_refused(part, value, words):
    with pytest.raises(TwoscaleError, match=words):
        compose(**{part: value})


def test_the_repr_shows_the_parts():
    surrogate = compose(inputs=PatchPCA(0.99), predictor=Affine(), outputs=TwoScale(patches=(2, 2)))
    assert repr(surrogate) == (
        "Surrogate(inputs=PatchPCA(0.99), predictor=Affine(), outputs=TwoScale(patches=(2, 2)), "
        "seed=1)"
    )
    refined = compose(correction=Refinement(epochs=3), predictor=MLP(epochs=7))
    assert "predictor=MLP(epochs=7)" in repr(refined)
    assert repr(refined).endswith("correction=Refinement(epochs=3), seed=1)")


def test_parts_are_left_as_they_were_given(arrays):
    """A fit takes copies: the same objects serve several surrogates."""
    x, u, new, _ = arrays
    parts = {"inputs": PatchPCA(0.9), "predictor": Affine(), "outputs": GlobalPCA(6)}
    one, other = compose(**parts).fit(x, u), compose(**parts).fit(x, 2 * u)
    np.testing.assert_allclose(2 * one.predict(new), other.predict(new), rtol=1e-3, atol=1e-6)
    assert not parts["inputs"].state_dict()
    assert one.operator_.code_operator.inputs is not other.operator_.code_operator.inputs


class Mean(CodePredictor):
    """Predicts the mean code of the training fields, times a factor."""

    name = "mean-of-tests"

    def __init__(self, *, objective: str = "block-balanced", factor: float = 1.0) -> None:
        super().__init__(objective=objective)
        self.factor = factor
        self.register_buffer("mean", torch.empty(0))

    def prepare(self, training, validation, decoder, seed):
        self.mean = self.factor * training.targets.mean(0)

    def restore(self, tensors):
        self.mean = tensors["mean"]
        return self

    def forward(self, codes):
        return self.mean.expand(len(codes), -1)


del PARTS[Mean.name]  # of other tests


@pytest.fixture
def mean(own_parts):
    PARTS[Mean.name] = Mean


LOAD = """
import sys
import numpy as np
import torch
from twoscale import CodePredictor, Surrogate

{definition}

np.save(sys.argv[2], Surrogate.load(sys.argv[1], device="cpu").predict(np.ones((2, 16, 16))))
"""


def test_a_part_of_ones_own_is_saved_and_loaded(arrays, tmp_path, mean):
    x, u, new, _ = arrays
    surrogate = compose(predictor=Mean(factor=2.0), outputs=GlobalPCA(6)).fit(x, u)
    np.testing.assert_allclose(surrogate.predict(new)[0], surrogate.predict(new)[1])
    loaded = check_saved(surrogate, new, tmp_path / "saved")
    assert loaded.parts.predictor.factor == 2.0
    script = LOAD.format(definition=inspect.getsource(Mean))
    result = tmp_path / "elsewhere.npy"
    arguments = [sys.executable, "-c", script, str(tmp_path / "saved"), str(result)]
    subprocess.run(arguments, check=True)
    np.testing.assert_array_equal(np.load(result), surrogate.predict(np.ones((2, 16, 16))))


def test_a_part_that_is_not_known_is_named(arrays, tmp_path, mean):
    x, u, *_ = arrays
    compose(predictor=Mean(), outputs=GlobalPCA(6)).fit(x, u).save(tmp_path / "saved")
    del PARTS[Mean.name]
    words = "no CodePredictor is called 'mean-of-tests': .* has to be imported first"
    with pytest.raises(TwoscaleError, match=words):
        Surrogate.load(tmp_path / "saved", device="cpu")
