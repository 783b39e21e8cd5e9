"""Every method fitted once, for all tests of surrogates."""

import pytest

from tests.surrogate.tiny import make
from twoscale import METHODS
from twoscale.source import ArraySource
from twoscale.surrogate.context import FieldPairs


@pytest.fixture(scope="session")
def arrays(poisson16):
    """Training inputs and outputs, new inputs and outputs, as NumPy arrays."""
    x, u = (fields.numpy() for fields in poisson16)
    return x[:160], u[:160], x[160:], u[160:]


@pytest.fixture(scope="session")
def pairs(poisson16):
    """Training and validation pairs."""
    x, u = poisson16
    return (
        FieldPairs(ArraySource(x[:120]), ArraySource(u[:120])),
        FieldPairs(ArraySource(x[120:150]), ArraySource(u[120:150])),
    )


@pytest.fixture(scope="session")
def fitted(arrays):
    """Every method, fitted with its equation known."""
    x, u, _, _ = arrays
    return {method: make(method, problem="poisson", seed=2).fit(x, u) for method in METHODS}


@pytest.fixture(scope="session")
def saved(fitted, tmp_path_factory):
    """Every fitted surrogate as a folder."""
    root = tmp_path_factory.mktemp("saved")
    for method, surrogate in fitted.items():
        surrogate.save(root / method)
    return root
