"""What makes many exports in one process fast, and a surrogate that several tests share."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from tests.export.files import Data, fitted, make_data
from twoscale import Surrogate


@pytest.fixture(scope="package", autouse=True)
def one_table_of_functions() -> Iterator[None]:
    """Keep torch from reading its ONNX functions anew for each file: half a second each time."""
    try:
        from torch.onnx._internal.exporter._registration import ONNXRegistry

        made = cache(ONNXRegistry.from_torchlib)
    except (ImportError, AttributeError):  # a version of torch that is made otherwise
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ONNXRegistry, "from_torchlib", staticmethod(made))
        yield


@pytest.fixture(scope="package")
def data() -> Data:
    return make_data((8, 9), channels=2, parameters=1)


@pytest.fixture(scope="package")
def surrogate(data) -> Surrogate:
    """A small surrogate of fields and a parameter; tests must not change it."""
    return fitted("global", data, predictor="affine")
