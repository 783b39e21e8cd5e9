import math

import pytest
import torch

from tests.surrogate.linear import LinearDecoder
from twoscale import TwoscaleError
from twoscale.domain.symmetries import MIRRORS
from twoscale.operators.fitting import FitOptions, FitRecord, train_members
from twoscale.predictors import Affine, AffineMLP, Kernel, affine, kernel
from twoscale.training import CodePairs

NETWORK = {
    "hidden_layers": 1,
    "hidden_width": 12,
    "epochs": 60,
    "batch_size": 16,
    "learning_rate": 1e-2,
    "weight_decay": 0.0,
    "patience": 9,
}
MAKERS = {
    "affine": Affine,
    "affine-mlp": lambda: AffineMLP(objective="vector", **NETWORK),
    "affine-mlp on fields": lambda: AffineMLP(objective="field", **NETWORK),
    "kernel": lambda: Kernel(kernel="matern-5/2"),
}
any_predictor = pytest.mark.parametrize("name", MAKERS)


def bent(x):
    return torch.cat([x @ torch.arange(6.0).reshape(3, 2), 2 * x[:, :1] ** 2], 1)


def make_pairs(samples, seed, target=bent):
    x = torch.randn(samples, 3, generator=torch.Generator().manual_seed(seed))
    return CodePairs(x, target(x))


@pytest.fixture(scope="module")
def decoder():
    return LinearDecoder(torch.randn(3, 7, generator=torch.Generator().manual_seed(9)))


@pytest.fixture(scope="module")
def pairs():
    return make_pairs(80, 0), make_pairs(30, 1)


def fit(name, pairs, decoder):
    predictor = MAKERS[name]()
    task = predictor.prepare(*pairs, decoder, 3)
    if task is not None:
        train_members([task], [(FitOptions(3), FitRecord())])
    predictor.complete()
    return predictor


@pytest.fixture(scope="module")
def fitted(pairs, decoder):
    return {name: fit(name, pairs, decoder) for name in MAKERS}


def error(predictor, pairs, decoder):
    with torch.no_grad():
        wrong = predictor(pairs.inputs) - pairs.targets
    return float(decoder.decode(wrong).norm() / decoder.decode(pairs.targets).norm())


# Every predictor


@any_predictor
def test_the_recorded_error_is_the_relative_error_of_decoded_validation_fields(
    name, fitted, pairs, decoder
):
    expected = error(fitted[name], pairs[1], decoder)
    assert fitted[name].chosen["validation_error"] == pytest.approx(expected, rel=1e-3)


@any_predictor
def test_a_restored_predictor_gives_the_same_bits(name, fitted, pairs):
    state = fitted[name].state_dict()
    restored = MAKERS[name]().restore({key: state[key] for key in sorted(state)})
    with torch.no_grad():
        assert torch.equal(restored(pairs[1].inputs), fitted[name](pairs[1].inputs))


@any_predictor
def test_incomplete_weights_are_refused(name, fitted):
    state = dict(fitted[name].state_dict())
    del state[list(state)[-1]]
    with pytest.raises(TwoscaleError, match=r"the weights (lack|do not fit)"):
        MAKERS[name]().restore(state)


@any_predictor
def test_codes_are_left_unchanged(name, decoder):
    pairs = make_pairs(40, 0), make_pairs(20, 1)
    before = [(part.inputs.clone(), part.targets.clone()) for part in pairs]
    fit(name, pairs, decoder)
    for part, (inputs, targets) in zip(pairs, before, strict=True):
        assert torch.equal(part.inputs, inputs)
        assert torch.equal(part.targets, targets)


def test_what_bends_needs_more_than_an_affine_map(fitted, pairs, decoder):
    errors = {name: error(fitted[name], pairs[1], decoder) for name in MAKERS}
    assert max(errors["kernel"], errors["affine-mlp"]) < 0.5 * errors["affine"]


# Affine


def test_the_strength_may_be_given(pairs, decoder):
    predictor = Affine(ridge=0.25)
    assert predictor.prepare(*pairs, decoder, 0) is None
    assert predictor.chosen["ridge"] == pytest.approx(0.25)


# Affine with a network


def test_a_network_that_does_not_help_is_dropped(pairs, decoder):
    """Validation targets of the opposite sign: whatever the network learns is wrong."""
    training = make_pairs(80, 0)
    straight = Affine()
    straight.prepare(*pairs, decoder, 0)
    with torch.no_grad():
        base = straight(pairs[1].inputs)
        validation = CodePairs(pairs[1].inputs, 2 * base - pairs[1].targets)
    predictor = fit("affine-mlp", (training, validation), decoder)
    assert predictor.chosen["correction_kept"] is False
    with torch.no_grad():
        assert not predictor.correction(validation.inputs).any()
    expected = predictor.chosen["affine_validation_error"]
    assert predictor.chosen["validation_error"] == expected


@pytest.mark.parametrize(("error", "kept"), [(0.9995, False), (0.9985, True)])
def test_a_network_has_to_take_off_a_thousandth(error, kept, pairs, decoder, monkeypatch):
    errors = iter([1.0, error])  # of the affine map, and with the network
    monkeypatch.setattr(affine.FieldErrors, "relative", lambda *_: next(errors))
    predictor = fit("affine-mlp", pairs, decoder)
    assert predictor.chosen["correction_kept"] is kept
    assert predictor.chosen["validation_error"] == (error if kept else 1.0)


def test_a_network_that_helps_is_kept(fitted):
    for name in ("affine-mlp", "affine-mlp on fields"):
        chosen = fitted[name].chosen
        assert chosen["correction_kept"] is True
        assert chosen["validation_error"] < chosen["affine_validation_error"]


# Kernel


def test_more_samples_than_memory_holds_are_refused_with_how_many_fit(pairs, decoder, monkeypatch):
    monkeypatch.setattr(kernel, "free_memory", lambda device: 8 * 5 * 40**2)
    wanted = r"a kernel on 80 training fields needs .* set kernel_samples to at most 40, or"
    with pytest.raises(TwoscaleError, match=wanted):
        MAKERS["kernel"]().prepare(*pairs, decoder, 0)


def test_the_number_of_samples_may_be_limited(pairs, decoder):
    training, validation = pairs
    limited = Kernel(kernel="matern-5/2", length_scale=1.0, ridge=1e-6, kernel_samples=20)
    limited.prepare(training, validation, decoder, 0)
    assert len(limited.regression.centres) == 20
    torch.testing.assert_close(
        limited.regression.centres,
        training.inputs[:20].double() * limited.regression.weights,
    )


def test_a_limit_counts_samples_not_their_images(pairs, decoder):
    inputs, targets = (torch.cat([codes] * 4) for codes in (pairs[0].inputs, pairs[0].targets))
    training = CodePairs(inputs, targets, group=MIRRORS)
    limited = Kernel(kernel="matern-5/2", length_scale=1.0, ridge=1e-3, kernel_samples=20)
    limited.prepare(training, pairs[1], decoder, 0)
    centres = limited.regression.centres.unflatten(0, (4, 20))
    assert torch.equal(centres[0], centres[3])
    assert math.isfinite(limited.chosen["validation_error"])
