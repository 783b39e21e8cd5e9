"""Every predictor, and everything else a surrogate may have, becomes a part of the graph."""

import numpy as np
import pytest

from tests.export.files import Data, check_file, fitted, make_data, session

pytest.importorskip("onnxruntime")

PREDICTORS = {
    "affine": ("global", {}),
    "affine-mlp": ("overlap", {}),
    "kernel": ("local", {}),
    "filter": ("whole-field", {}),
    "filter of complex modes": ("global", {"predictor": "filter", "periodic": (False, True)}),
    "fno of codes": ("conforming", {"predictor": "fno", "code_size": 30}),
    "encoder": ("two-scale", {"members": 2, "cycles": 2, "few_features": False}),
}


@pytest.mark.parametrize("name", PREDICTORS)
def test_predictors(name, tmp_path):
    method, options = PREDICTORS[name]
    data = make_data(channels=2, outputs=2)
    surrogate = fitted(method, data, **{"predictor": name, **options})
    surrogate.export(tmp_path / "model.onnx")
    check_file(surrogate, tmp_path / "model.onnx", data)


def test_kernels_keep_double_precision(tmp_path):
    data = make_data(parameters=3, channels=0)
    surrogate = fitted("global", data, predictor="kernel", ridge=1e-12)
    assert surrogate.operator_.predictor.regression.coefficients.abs().max() > 1e3
    exported = surrogate.export(tmp_path / "model.onnx")
    assert exported.difference < 1e-6


@pytest.mark.parametrize(
    ("symmetries", "images", "periodic"), [("square", 8, False), ("shifts", 16, True)]
)
def test_averages_over_symmetries(symmetries, images, periodic, tmp_path):
    data = make_data()
    surrogate = fitted(
        "global",
        data,
        predictor="affine",
        symmetries=symmetries,
        average_symmetries=True,
        periodic=periodic,
    )
    assert len(surrogate.operator_.group) == images
    surrogate.export(tmp_path / "model.onnx")
    check_file(surrogate, tmp_path / "model.onnx", data)


@pytest.mark.parametrize("transform", ["log", "reciprocal,none"])
def test_transforms_of_inputs(transform, tmp_path):
    data = make_data(channels=2, positive=True)
    surrogate = fitted("local", data, predictor="affine", input_transform=transform)
    surrogate.export(tmp_path / "model.onnx")
    check_file(surrogate, tmp_path / "model.onnx", data)
    wrong = data.given(2)
    wrong["fields"][1, 0, 3, 3] = -1.0
    (found,) = session(tmp_path / "model.onnx").run(None, wrong)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).any()  # never a number that looks right


PARAMETERS = {"beside": ("local", 2), "beside-whole": ("whole-field", 1), "alone": ("fno", 0)}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_are_an_input_of_their_own(name, tmp_path):
    method, channels = PARAMETERS[name]
    data = make_data(channels=channels, parameters=3)
    surrogate = fitted(method, data)
    surrogate.export(tmp_path / "model.onnx")
    names = [one.name for one in session(tmp_path / "model.onnx").get_inputs()]
    assert names == (["fields", "parameters"] if channels else ["parameters"])
    check_file(surrogate, tmp_path / "model.onnx", data)


@pytest.mark.parametrize("method", ["two-scale", "whole-field"])
def test_inputs_and_outputs_on_different_grids(method, tmp_path):
    data = make_data((12, 9), shape_out=(20, 16), outputs=2)
    options = {"few_features": False} if method == "two-scale" else {}
    surrogate = fitted(method, data, **options)
    surrogate.export(tmp_path / "model.onnx")
    check_file(surrogate, tmp_path / "model.onnx", data)


def test_fields_on_a_line_have_a_height_of_one(tmp_path):
    data = make_data((1, 30))
    lines = Data(data.inputs[:, 0, 0], data.outputs[:, 0, 0])
    surrogate = fitted("local", lines, predictor="affine", patches="1x4")
    surrogate.export(tmp_path / "model.onnx")
    (found,) = session(tmp_path / "model.onnx").run(None, data.given(5))
    assert found.shape == (5, 1, 1, 30)
    np.testing.assert_allclose(found[:, 0, 0], surrogate.predict(lines.inputs[:5]), rtol=1e-4)
