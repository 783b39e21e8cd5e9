"""Every method and predictor becomes a graph that predicts the same, whatever the fields are.

Each case has several parts, because an export takes about a second.
"""

import numpy as np
import pytest

from tests.covering import covering
from tests.export.files import Data, check_file, fitted, make_data, session
from twoscale import METHODS

pytest.importorskip("onnxruntime")

GRIDS = {"divisible": ((16, 16), False), "odd": ((15, 17), False), "periodic": ((16, 16), True)}
METHOD_CASES = covering(METHODS, (1, 3), GRIDS)
SETTINGS = {
    "two-scale": {"few_features": False},
    "three-scale": {"few_features": False},
    "conforming": {"patches": 2},  # a smaller graph
}

CASES = {
    "affine, average over quarter turns": (
        "global",
        make_data((5, 5)),
        {"predictor": "affine", "symmetries": "rotations", "average_symmetries": True},
    ),
    "affine-mlp, fields and parameters, several outputs": (
        "global",
        make_data((8, 6), channels=2, outputs=2, parameters=3, positive=True),
        {"predictor": "affine-mlp", "input_transform": "reciprocal,none"},
    ),
    "filter, complex modes, average over shifts": (
        "whole-field",
        make_data((8, 5), channels=2, outputs=2),
        {
            "predictor": "filter",
            "periodic": (False, True),
            "symmetries": "shifts",
            "average_symmetries": True,
        },
    ),
    "filter, real modes, a parameter": (
        "global",
        make_data((8, 6), parameters=1),
        {"predictor": "filter"},
    ),
    "fno, codes, different grids": (
        "global",
        make_data((8, 6), shape_out=(10, 8), outputs=2),
        {"predictor": "fno"},
    ),
    "encoder, two members, a parameter": (
        "global",
        make_data((8, 8), parameters=1),
        {"predictor": "encoder", "members": 2, "cut": 4},
    ),
}


@pytest.mark.parametrize(("method", "channels", "grid"), METHOD_CASES)
def test_files_of_methods_predict_what_the_surrogate_predicts(method, channels, grid, tmp_path):
    shape, periodic = GRIDS[grid]
    data = make_data(shape, channels=channels)
    surrogate = fitted(method, data, periodic=periodic, **SETTINGS.get(method, {}))
    exported = surrogate.export(tmp_path / "model.onnx")
    assert exported.difference <= 1e-5
    assert exported.checked_with.startswith("onnxruntime ")
    check_file(surrogate, tmp_path / "model.onnx", data)


@pytest.mark.parametrize("name", CASES)
def test_files_of_predictors_predict_what_the_surrogate_predicts(name, tmp_path):
    method, data, options = CASES[name]
    surrogate = fitted(method, data, **options)
    surrogate.export(tmp_path / "model.onnx")
    names = [one.name for one in session(tmp_path / "model.onnx").get_inputs()]
    assert names == list(data.given(1))
    check_file(surrogate, tmp_path / "model.onnx", data)


def test_kernels_of_parameters_alone_keep_double_precision(tmp_path):
    data = make_data((8, 8), parameters=3, channels=0)
    surrogate = fitted("global", data, predictor="kernel", ridge=1e-12, length_scale=8.0)
    assert surrogate.operator_.predictor.regression.coefficients.abs().max() > 1e3
    assert surrogate.export(tmp_path / "model.onnx").difference < 1e-6
    assert [one.name for one in session(tmp_path / "model.onnx").get_inputs()] == ["parameters"]
    check_file(surrogate, tmp_path / "model.onnx", data)


def test_transforms_of_inputs_on_a_line(tmp_path):
    """Fields on a line have a height of one; values without a logarithm give NaN."""
    data = make_data((1, 30), positive=True)
    lines = Data(data.inputs[:, 0, 0], data.outputs[:, 0, 0])
    surrogate = fitted("local", lines, predictor="affine", patches="1x4", input_transform="log")
    surrogate.export(tmp_path / "model.onnx")
    (found,) = session(tmp_path / "model.onnx").run(None, data.given(5))
    np.testing.assert_allclose(found[:, 0, 0], surrogate.predict(lines.inputs[:5]), rtol=1e-4)
    wrong = {"fields": data.inputs[:2].copy()}
    wrong["fields"][1, 0, 0, 3] = -1.0
    (found,) = session(tmp_path / "model.onnx").run(None, wrong)
    assert found.shape == (2, 1, 1, 30)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).any()  # never a number that looks right
