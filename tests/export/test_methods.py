"""Every method becomes an ONNX file that predicts the same, whatever the fields are."""

import pytest

from tests.covering import covering
from tests.export.files import check_file, fitted, make_data
from twoscale import METHODS

pytest.importorskip("onnxruntime")

GRIDS = {"divisible": ((16, 16), False), "odd": ((15, 17), False), "periodic": ((16, 16), True)}
CASES = covering(METHODS, (1, 3), GRIDS)
SETTINGS = {
    "two-scale": {"few_features": False},
    "three-scale": {"few_features": False},
    "conforming": {"patches": 2},  # a smaller graph
}


@pytest.mark.parametrize(("method", "channels", "grid"), CASES)
def test_the_file_predicts_what_the_surrogate_predicts(method, channels, grid, tmp_path):
    shape, periodic = GRIDS[grid]
    data = make_data(shape, channels=channels)
    surrogate = fitted(method, data, periodic=periodic, **SETTINGS.get(method, {}))
    exported = surrogate.export(tmp_path / "model.onnx")
    assert exported.difference <= 1e-5
    assert exported.checked_with.startswith("onnxruntime ")
    check_file(surrogate, tmp_path / "model.onnx", data)
