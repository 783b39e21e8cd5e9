"""Exported files: their metadata, their check, what is refused, and what is left behind."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch

from tests.export.files import BATCHES, LARGEST_DIFFERENCE, fitted, make_data
from tests.files.folders import names
from twoscale import Poisson, Surrogate, TwoscaleError
from twoscale.export import exporting, onnx_file, torch_file
from twoscale.export.exporting import sample_inputs
from twoscale.export.torch_file import METADATA


@pytest.fixture(scope="module")
def onnx_model(surrogate, tmp_path_factory):
    """The surrogate as an ONNX file, and the result of its export."""
    pytest.importorskip("onnx")
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    return path, surrogate.export(path)


# Metadata


def test_an_onnx_file_tells_what_it_is(onnx_model):
    import onnx

    path, exported = onnx_model
    model = onnx.load(path)
    onnx.checker.check_model(model)
    found = {one.key: json.loads(one.value) for one in model.metadata_props}
    assert found == exported.metadata
    assert found["method"] == "global"
    assert found["problem"] is None
    fields, parameters = found["inputs"]["fields"], found["inputs"]["parameters"]
    assert fields["shape"] == ["batch", 2, 8, 9]
    assert (fields["channels"], fields["periodic"]) == (["0", "1"], [False, False])
    assert (parameters["type"], parameters["names"]) == ("float32", ["2"])
    assert (parameters["shape"], parameters["axes"][1]) == (["batch", 1], "parameters")
    assert found["outputs"]["prediction"]["shape"] == ["batch", 1, 8, 9]
    for one in model.graph.input:
        assert one.type.tensor_type.shape.dim[0].dim_param == "batch"
    assert exported.size == path.stat().st_size


def test_files_hold_no_paths_of_sources(onnx_model, surrogate, tmp_path):
    surrogate.export(tmp_path / "model.pt2")
    for path in (onnx_model[0], tmp_path / "model.pt2"):
        content = path.read_bytes()
        assert b"site-packages" not in content
        assert b".py" not in content


def test_metadata_tell_errors_and_radii_and_channels_that_must_be_positive(tmp_path):
    data = make_data((8, 8), positive=True)
    problem = Poisson()
    options = {"problem": problem, "input_transform": "log"}
    surrogate = fitted("global", data, predictor="affine", **options)
    first = surrogate.export(tmp_path / "a.pt2").metadata
    assert first["mean_relative_l2"] == {}
    assert first["radius"] is None
    assert first["inputs"]["fields"]["positive"] == ["0"]
    assert first["problem"] == {"name": "poisson", "parameters": problem.parameters()}
    metrics = surrogate.calibrate(data.inputs, data.outputs).evaluate(data.inputs, data.outputs)
    found = surrogate.export(tmp_path / "b.pt2", metrics=metrics).metadata
    assert found["mean_relative_l2"] == {"test": metrics["mean_relative_l2"]}
    radius = found["radius"]
    assert (radius["level"], radius["calibration_samples"]) == (0.95, 64)
    assert radius["mean"] == metrics["trust"]["mean_radius"]
    assert set(radius["powers"]) == {"residual", "distance"}


# Files that run elsewhere


def test_an_onnx_file_needs_neither_torch_nor_twoscale(onnx_model, surrogate, data, tmp_path):
    pytest.importorskip("onnxruntime")
    np.savez(tmp_path / "given.npz", **data.given(5))
    code = f"""
import sys
sys.modules["torch"] = sys.modules["twoscale"] = sys.modules["onnx"] = None
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession({str(onnx_model[0])!r})
(found,) = session.run(["prediction"], dict(np.load("given.npz")))
np.save("found.npy", found)
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    found = np.load(tmp_path / "found.npy")
    expected = surrogate.predict(data.inputs[:5], parameters=data.parameters[:5])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_torch_file_takes_batches_of_any_size(surrogate, data, tmp_path):
    before = surrogate.predict(data.inputs, parameters=data.parameters)
    exported = surrogate.export(tmp_path / "model.pt2")
    after = surrogate.predict(data.inputs, parameters=data.parameters)
    np.testing.assert_array_equal(after, before)
    assert exported.checked_with.startswith("torch ")
    extra = {METADATA: ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=extra)
    assert json.loads(extra[METADATA]) == exported.metadata
    module = program.module()
    for batch in BATCHES:
        given = {name: torch.from_numpy(one) for name, one in data.given(batch).items()}
        expected = surrogate.predict(data.inputs[:batch], parameters=data.parameters[:batch])
        with torch.no_grad():
            found = module(*given.values()).numpy()
        error = np.linalg.norm(found - expected)
        assert error <= LARGEST_DIFFERENCE * np.linalg.norm(expected)


@pytest.mark.parametrize("method", ["fno", "conforming", "whole-field"])
def test_torch_files_of_other_methods(method, tmp_path):
    data = make_data((9, 12))
    surrogate = fitted(method, data, **({"patches": 2} if method == "conforming" else {}))
    assert surrogate.export(tmp_path / "model.pt2").difference <= LARGEST_DIFFERENCE


@pytest.mark.gpu
def test_a_surrogate_on_a_gpu_is_exported_from_a_copy(tmp_path):
    data = make_data((8, 8))
    surrogate = Surrogate("whole-field", width=4, blocks=1, epochs=1, device="cuda")
    surrogate.fit(data.inputs, data.outputs)
    assert surrogate.export(tmp_path / "model.pt2").difference < LARGEST_DIFFERENCE
    assert next(surrogate.operator_.parameters()).is_cuda


# What is refused


def refused(surrogate, folder, words, suffix="model.pt2", **options):
    """Check that an export is refused, and that nothing is written."""
    before = names(folder)
    with pytest.raises(TwoscaleError, match=words):
        surrogate.export(folder / suffix, **options)
    assert names(folder) == before


@pytest.mark.parametrize("name", ["model", "model.pt", "model.onx"])
def test_an_unknown_suffix(surrogate, name, tmp_path):
    refused(surrogate, tmp_path, r"suffix .* end it in \.onnx", name)


def test_nothing_is_replaced_without_being_asked(surrogate, tmp_path):
    path = tmp_path / "model.pt2"
    path.write_text("mine")
    refused(surrogate, tmp_path, "exists already")
    assert path.read_text() == "mine"
    surrogate.export(path, overwrite=True)
    assert path.stat().st_size > 1000
    (tmp_path / "folder.pt2").mkdir()
    refused(surrogate, tmp_path, "something else", "folder.pt2", overwrite=True)


@pytest.mark.parametrize("package", ["onnx", "onnxscript"])
def test_a_missing_package_is_named_with_its_extra(surrogate, package, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_file, "find_spec", lambda name: None if name == package else name)
    refused(surrogate, tmp_path, rf"'{package}': .*twoscale\[export\]", "model.onnx")


def test_a_file_that_predicts_something_else_is_not_written(surrogate, tmp_path, monkeypatch):
    right = torch_file.prediction

    def wrong(file):
        predict, name = right(file)
        return lambda inputs: 1.001 * predict(inputs), name

    monkeypatch.setattr(torch_file, "prediction", wrong)
    refused(surrogate, tmp_path, r"by 1\.0e-03")


def test_a_graph_with_another_shape_is_not_written(surrogate, monkeypatch):
    fields, space = sample_inputs(surrogate.operator_), surrogate.input_space_
    graph = exporting.FieldGraph(surrogate.operator_, space)
    monkeypatch.setattr(graph, "forward", lambda *inputs: torch.zeros(1, 1, 8, 9))
    with pytest.raises(TwoscaleError, match="where the surrogate gives"):
        exporting.check(graph, lambda inputs: torch.zeros(1, 1, 9, 8), fields, space)


def test_what_cannot_be_traced_is_refused_in_one_sentence(surrogate, tmp_path, monkeypatch):
    def forward(self, fields, scalars):
        return fields[: int(fields.sum())]

    monkeypatch.setattr(type(surrogate.operator_), "forward", forward)
    refused(surrogate, tmp_path, "cannot be traced .* torch operations only")


def test_without_onnxruntime_the_result_says_so(surrogate, tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    monkeypatch.setattr(
        onnx_file, "find_spec", lambda name: None if name == "onnxruntime" else name
    )
    exported = surrogate.export(tmp_path / "model.onnx")
    assert (exported.checked_with, exported.difference) == (None, None)
    assert "not checked, because onnxruntime is not installed" in exported.check_text
    assert names(tmp_path) == ["model.onnx"]
