"""The predictor that reads fields."""

import numpy as np
import pytest
import torch

from tests.conftest import make_poisson
from tests.sources import field_pairs
from twoscale import Grid, Surrogate, TwoscaleError
from twoscale.domain.space import Space
from twoscale.domain.symmetries import MIRRORS, SQUARE
from twoscale.fields.source import ArraySource
from twoscale.predictors import CodePredictor, Encoder
from twoscale.predictors.field_predictor import _NumberedImages
from twoscale.surrogate.together import fit_together

TINY = {"predictor": "encoder", "width": 4, "blocks": 1, "batch_size": 16, "coarse_components": 4}


@pytest.fixture(scope="module")
def data():
    inputs, outputs = (fields.numpy() for fields in make_poisson((16, 16), 90))
    return inputs[:70], outputs[:70], (inputs[70:], outputs[70:])


def make(**settings):
    return Surrogate("two-scale", device="cpu", **{"epochs": 2, **TINY, **settings})


def fitted(data, **settings):
    inputs, outputs, validation = data
    return make(**settings).fit(inputs, outputs, validation=validation)


class _Echo(CodePredictor):
    def prepare(self, *given):
        raise AssertionError

    def restore(self, tensors):
        raise AssertionError

    def forward(self, codes):
        return codes


@pytest.mark.parametrize(("shape", "group"), [((6, 6), SQUARE), ((4, 6), MIRRORS)])
def test_images_are_those_of_the_symmetries(shape, group):
    fields = torch.randn(5, 2, *shape)
    images = _NumberedImages(_Echo(), fields.flatten(1), group, Space(Grid(shape), 2))
    expected = torch.cat([symmetry(fields).flatten(1) for symmetry in group])
    assert torch.equal(images(images.rows()), expected)
    some = torch.tensor([7, 0, 13])
    assert torch.equal(images(some), expected[some])
    assert images.state_dict() == {}


def test_it_learns(data):
    few, many = (fitted(data, epochs=n, symmetries="square", learning_rate=1e-2) for n in (1, 20))
    errors = [s.evaluate(*data[2])["mre"] for s in (few, many)]
    assert errors[1] < 0.5 * errors[0]
    losses = many.history_["training"]
    assert len(losses["validation_loss"]) == 20
    assert losses["learning_rate"][0] < 1e-3 < max(losses["learning_rate"]) <= 1e-2
    # Trained on the relative error of fields: that is what the validation loss is.
    predicted = torch.as_tensor(many.predict(data[2][0]))[:, None]
    decoder = many.operator_.outputs
    pairs = field_pairs(*(ArraySource(torch.as_tensor(one)[:, None]) for one in data[2]))
    nearest = decoder.decode(many.operator_.encode_pairs(pairs).targets)
    error = (predicted - nearest).flatten(1).norm(dim=1) / nearest.flatten(1).norm(dim=1)
    assert float(error.mean()) == pytest.approx(min(losses["validation_loss"]), rel=1e-3)


@pytest.mark.parametrize("method", ["global", "local", "overlap", "three-scale", "conforming"])
def test_it_predicts_codes_of_any_representation(method, data):
    inputs, outputs, validation = data
    settings = {k: v for k, v in TINY.items() if k != "coarse_components"} | {"epochs": 1}
    if method == "conforming":
        settings["code_size"] = 40
    surrogate = Surrogate(method, device="cpu", **settings).fit(
        inputs, outputs, validation=validation
    )
    metrics = surrogate.evaluate(*validation)
    assert metrics["input_code"] == 256
    assert np.isfinite(metrics["mre"])


@pytest.mark.parametrize("method", ["whole-field", "two-scale", "three-scale", "overlap"])
@pytest.mark.parametrize(
    ("channels", "value", "noise"), [(1, 1e3, 0.0), (1, 1.0, 1e-7), (2, 1e-3, 1e-4)]
)
def test_nodes_that_hardly_vary_do_not_make_it_diverge(method, channels, value, noise):
    """A boundary of a fixed value, five nodes wide: cells and patches of constants too."""
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(40, channels, 17, 16, generator=generator).cumsum(2)
    outputs = value * (1 + noise * torch.randn(inputs.shape, generator=generator))
    outputs[..., 5:-5, 5:-5] += 0.1 * value * torch.tanh(inputs[..., 5:-5, 5:-5])
    settings = {"predictor": "encoder", "width": 4, "blocks": 1, "epochs": 1, "device": "cpu"}
    surrogate = Surrogate(method, **settings).fit(inputs.numpy(), outputs.numpy())
    error = torch.as_tensor(surrogate.predict(inputs.numpy())) - outputs
    assert error.norm() < 3 * (outputs - outputs.mean(0)).norm()


@pytest.mark.parametrize("objective", ["vector", "block-balanced", "score-normalised"])
def test_the_objective_is_a_separate_choice(objective, data):
    surrogate = fitted(data, objective=objective)
    assert np.isfinite(surrogate.evaluate(*data[2])["mre"])


def test_among_others_it_is_fitted_as_alone(data):
    inputs, outputs, validation = data
    network = {"epochs": 2, "hidden_width": 8, "hidden_layers": 1, "coarse_components": 4}
    surrogates = [Surrogate("two-scale", device="cpu", **network), make()]
    finished = []
    fit_together(surrogates, [(inputs, outputs, validation)] * 2, finished=finished.append)
    assert sorted(finished) == [0, 1]
    assert np.array_equal(surrogates[1].predict(inputs), fitted(data).predict(inputs))


def test_members_are_trained_each_for_itself_and_averaged(data, tmp_path):
    alone, both = fitted(data, symmetries="mirrors"), fitted(data, symmetries="mirrors", members=2)
    predictor, lone = (
        both.operator_.code_operator.predictor,
        alone.operator_.code_operator.predictor,
    )
    first, second = predictor.network.members
    for ours, theirs in zip(first.parameters(), lone.network.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)
    assert not torch.allclose(first.network.lift.weight, second.network.lift.weight, rtol=0.1)
    both.save(tmp_path / "model")
    again = Surrogate.load(tmp_path / "model", device="cpu")
    assert np.array_equal(again.predict(data[0][:5]), both.predict(data[0][:5]))


def test_it_can_be_fine_tuned(data):
    surrogate = fitted(data, epochs=1)
    tuned = surrogate.finetune(
        *data[:2], validation=data[2], objective="A1", epochs=3, learning_rate=1e-3
    )
    assert tuned.evaluate(*data[2])["mre"] < surrogate.evaluate(*data[2])["mre"]


def test_the_optimiser_brings_its_rate():
    def chosen(**arguments):
        plan = Encoder(**arguments).plan
        return plan.learning_rate, plan.clip

    assert chosen() == (4e-3, None)
    assert chosen(optimiser="adam") == (1e-3, 0.1)
    assert chosen(optimiser="adam", learning_rate=1e-2, clip=2.0) == (1e-2, 2.0)
    assert make(learning_rate="none").settings["learning_rate"] is None
    with pytest.raises(TwoscaleError, match="optimiser must be one of muon, adam"):
        Encoder(optimiser="sgd")


@pytest.mark.gpu
def test_on_cuda_it_learns_as_on_the_cpu(data):
    inputs, outputs, validation = data
    errors = []
    for device in ("cpu", "cuda"):
        surrogate = Surrogate(
            "two-scale", device=device, **{**TINY, "width": 8, "epochs": 40, "symmetries": "square"}
        )
        surrogate.fit(inputs, outputs, validation=validation)
        errors.append(surrogate.evaluate(*validation)["mre"])
        again = surrogate.predict(inputs[:5])
        assert np.allclose(surrogate.predict(inputs[:5]), again, rtol=1e-5, atol=1e-8)
    assert errors[1] == pytest.approx(errors[0], rel=0.5)


@pytest.mark.gpu
def test_on_cuda_members_are_trained_side_by_side(data):
    inputs, outputs, validation = data
    alone, both = (
        Surrogate("two-scale", device="cuda", members=members, **{**TINY, "epochs": 8})
        .fit(inputs, outputs, validation=validation)
        .operator_.code_operator.predictor.network
        for members in (1, 2)
    )
    for ours, theirs in zip(both.members[0].parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0.1, atol=1e-2)
