import pytest
import torch

from tests.surrogate.linear import LinearDecoder
from twoscale import TwoscaleError
from twoscale.operators.fitting import FitOptions, FitRecord, train_members
from twoscale.predictors import MLP
from twoscale.training import CodePairs
from twoscale.training.task import CodeLoss, code_weights

EPOCHS = 4
TRAINING = {"epochs": EPOCHS, "batch_size": 16, "learning_rate": 1e-2, "weight_decay": 0.0}


def make(layers=2, width=6, objective="block-balanced"):
    return MLP(
        hidden_layers=layers, hidden_width=width, objective=objective, patience=9, **TRAINING
    )


def make_pairs(samples, seed):
    generator = torch.Generator().manual_seed(seed)
    codes = torch.randn(samples, 3, generator=generator)
    return CodePairs(codes, torch.cat([codes, codes[:, :1] ** 2], 1))


def decoder(shrink=(1.0, 1.0, 0.5, 0.1)):
    return LinearDecoder(torch.diag(torch.tensor(shrink)), [1, 3])


def fitted(predictor, pairs, record, through=None, seed=0):
    task = predictor.prepare(*pairs, through or decoder(), seed)
    train_members([task], [(FitOptions(seed), record)])
    predictor.complete()
    return predictor


@pytest.fixture(scope="module")
def fit():
    """A fitted predictor, its pairs and what accompanied the fit."""
    pairs, record = (make_pairs(60, 0), make_pairs(20, 1)), FitRecord()
    return fitted(make(), pairs, record, seed=3), pairs, record


@pytest.mark.parametrize("shrink", [(1.0, 1.0, 0.5, 0.1), (0.0, 0.0, 0.0, 0.0)])
def test_fields_that_are_all_alike_are_learned_as_codes(shrink):
    inputs = make_pairs(60, 0).inputs
    pairs = (CodePairs(inputs, torch.zeros(60, 4)), CodePairs(inputs[:20], torch.zeros(20, 4)))
    predictor = fitted(make(objective="field"), pairs, FitRecord(), decoder(shrink))
    assert predictor(inputs).shape == (60, 4)
    assert bool(torch.isfinite(predictor(inputs)).all())


def test_it_maps_codes_to_codes_through_its_hidden_layers(fit):
    predictor, pairs, _ = fit
    assert predictor(pairs[1].inputs).shape == (20, 4)
    sizes = [layer.in_features for layer in predictor.network if hasattr(layer, "in_features")]
    assert sizes == [3, 6, 6]


def test_the_fit_is_timed_recorded_and_minimises_its_objective(fit):
    predictor, (training, held_out), record = fit
    assert set(record.clock.seconds) == {"training"}
    history = record.histories["training"]
    assert len(history["validation_loss"]) == EPOCHS
    variance = training.targets.var(0, unbiased=False)
    loss = CodeLoss(code_weights("block-balanced", [1, 3], variance))
    with torch.no_grad():
        expected = float(loss(predictor(held_out.inputs), held_out.targets))
    assert min(history["validation_loss"]) == pytest.approx(expected, rel=1e-4)


@pytest.fixture(scope="module")
def mixed():
    """A decoder that stretches, mixes and, in one direction, forgets."""
    matrix = torch.randn(4, 9, generator=torch.Generator().manual_seed(5))
    matrix[3] = matrix[0] - matrix[1]
    return LinearDecoder(1e-3 * matrix, [1, 3])


def test_the_field_objective_is_the_relative_mean_square_of_decoded_fields(mixed):
    training, held_out = make_pairs(60, 0), make_pairs(20, 1)
    record = FitRecord()
    predictor = fitted(make(objective="field"), (training, held_out), record, mixed)
    with torch.no_grad():
        error = mixed.decode(predictor(held_out.inputs)) - mixed.decode(held_out.targets)
        size = mixed.decode(training.targets).square().sum((1, 2, 3)).mean()
    expected = float(error.square().sum((1, 2, 3)).mean() / size)
    history = record.histories["training"]
    assert min(history["validation_loss"]) == pytest.approx(expected, rel=1e-3)


def test_the_field_objective_is_learnt_better_than_by_another(mixed):
    """Of a direction that no field shows nothing need be learnt."""
    pairs = make_pairs(200, 0), make_pairs(50, 1)

    def error(objective):
        predictor = fitted(make(1, 20, objective), pairs, FitRecord(), mixed)
        with torch.no_grad():
            wrong = predictor(pairs[1].inputs) - pairs[1].targets
        return float(mixed.decode(wrong).norm())

    assert error("field") < error("vector")


@pytest.mark.parametrize("hidden", [(0, 3), (1, 7), (2, 6), (7, 4)])
def test_restoring_gives_the_same_bits_whatever_the_order_of_the_tensors(hidden):
    """Files hold tensors in the order of their names as text: layer 10 before layer 2."""
    pairs = make_pairs(30, 0), make_pairs(10, 1)
    predictor = fitted(make(*hidden), pairs, FitRecord())
    state = predictor.state_dict()
    restored = make(*hidden).restore({name: state[name] for name in sorted(state)})
    with torch.no_grad():
        assert torch.equal(restored(pairs[1].inputs), predictor(pairs[1].inputs))


def test_weights_of_other_hidden_layers_are_refused(fit):
    for hidden in ((2, 4), (1, 6), (3, 6)):
        with pytest.raises(TwoscaleError, match="the weights do not fit the model"):
            make(*hidden).restore(fit[0].state_dict())
