"""Fixtures that several test modules share: small sets of fields, made once per session."""

from __future__ import annotations

from typing import NamedTuple

import pytest
import torch
from torch import Tensor

from twoscale import Grid, Poisson


class Dataset(NamedTuple):
    """Pairs of fields (samples, height, width), float32. Tests must not write to them."""

    inputs: Tensor
    outputs: Tensor


def make_poisson(shape: tuple[int, int], samples: int, *, seed: int = 0) -> Dataset:
    problem = Poisson()
    inputs = problem.sample(Grid(*shape), range(samples), seed=seed)
    return Dataset(inputs.float(), problem.solve(inputs).float())


@pytest.fixture(scope="session")
def poisson32() -> Dataset:
    return make_poisson((32, 32), 240)


@pytest.fixture(scope="session")
def poisson16() -> Dataset:
    return make_poisson((16, 16), 200)


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(7)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if torch.cuda.is_available():
        return
    skip = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(skip)
