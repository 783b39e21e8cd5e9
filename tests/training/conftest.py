"""Pairs to train on."""

import pytest

from tests.training.tools import make_pairs


@pytest.fixture(scope="module")
def pairs():
    return make_pairs(70), make_pairs(20, seed=1)
