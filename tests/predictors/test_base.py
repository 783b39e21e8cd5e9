"""What every predictor promises."""

import re

import pytest
import torch

from twoscale import TwoscaleError
from twoscale.networks import DenseNetwork
from twoscale.predictors import CodePredictor, Refinement, predictors
from twoscale.predictors.base import check_stored_weights, check_weights, load_weights

EVERY = [*predictors().values(), Refinement]


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_a_predictor_says_what_it_is(kind):
    """The traits that tables, studies and searches read."""
    assert kind.title
    assert "Parameters\n" in kind.__doc__
    assert ">>> " in kind.__doc__
    assert kind.trains_epochs == ("epochs" in kind().arguments)
    assert kind.closed_form != kind.trains_epochs


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_every_parameter_is_documented(kind):
    headings = re.findall(r"^    ([a-z_]+(?:, [a-z_]+)*)$", kind.__doc__, re.MULTILINE)
    documented = {name for heading in headings for name in heading.split(", ")}
    assert set(kind().arguments) <= documented


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
def test_a_plain_predictor_shows_no_arguments(kind):
    assert repr(kind()) == f"{kind.__name__}()"
    assert repr(kind(objective="score-normalised")) == (
        f"{kind.__name__}(objective='score-normalised')"
    )


def test_traits():
    names = {kind.name: kind for kind in EVERY}
    assert [name for name, kind in names.items() if kind.closed_form] == [
        "affine",
        "filter",
        "kernel",
    ]
    reading = [name for name, kind in names.items() if kind.reads_fields]
    assert reading == ["encoder", "filter", "fno", "refinement-net"]


def test_the_contract_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        CodePredictor()


def test_a_mismatch_of_weights_is_told_in_one_line():
    state = DenseNetwork((3, 4)).state_dict()
    with pytest.raises(TwoscaleError, match="the weights do not fit the model") as caught:
        load_weights(DenseNetwork((3, 5)), state)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_weights_that_are_not_finite_are_refused(value):
    network = DenseNetwork((3, 4))
    check_weights(network)
    with torch.no_grad():
        network.linear[0].bias[1] = value
    with pytest.raises(TwoscaleError, match=r"the fit gave 0\.bias values that are NaN"):
        check_weights(network)
    with pytest.raises(TwoscaleError, match=r"weights 0\.bias are NaN .* the artifact is damaged"):
        check_stored_weights(network)
