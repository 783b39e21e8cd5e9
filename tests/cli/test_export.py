"""The command that writes a run as one file."""

import json

import numpy as np
import pytest
import torch

from twoscale import Surrogate
from twoscale.export.torch_file import METADATA
from twoscale.run import Run


def test_a_run_becomes_a_file(run_folder, twoscale, tmp_path):
    pytest.importorskip("onnxruntime")
    import onnxruntime

    path = tmp_path / "model.onnx"
    done = twoscale("export", run_folder, path)
    assert done.status == 0, done.err
    assert done.out.startswith(f"two-scale in {path}: 16x16 fields to 16x16 fields")
    assert "relative to their norm (checked with onnxruntime" in done.out
    x = np.random.default_rng(0).standard_normal((3, 1, 16, 16)).astype(np.float32)
    session = onnxruntime.InferenceSession(str(path))
    (found,) = session.run(["prediction"], {"fields": x})
    expected = Surrogate.load(run_folder, device="cpu").predict(x[:, 0])
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-5 * np.abs(expected).max())
    told = session.get_modelmeta().custom_metadata_map
    metrics = Run.open(run_folder).metrics
    assert json.loads(told["mean_relative_l2"]) == {"test": metrics["mean_relative_l2"]}
    assert json.loads(told["problem"])["name"] == "poisson"


def test_json_and_quiet(run_folder, twoscale, tmp_path):
    path = tmp_path / "model.pt2"
    answer = json.loads(twoscale("export", run_folder, path, "--json").out)
    extra = {METADATA: ""}
    torch.export.load(path, extra_files=extra)
    assert answer["out"] == str(path)
    assert answer["size"] == path.stat().st_size
    assert answer["metadata"] == json.loads(extra[METADATA])
    assert answer["difference"] < 1e-5
    done = twoscale("export", run_folder, path, "--overwrite", "--quiet")
    assert done.out == f"{path}\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("model.pickle", "the suffix decides the format of an exported file"),
        ("model", "end it in .onnx (ONNX) or .pt2 (torch.export)"),
        ("there.onnx", "exists already"),
        ("missing/../there.onnx/model.onnx", "cannot"),
    ],
)
def test_what_is_refused(run_folder, twoscale, tmp_path, name, message):
    (tmp_path / "there.onnx").write_text("mine")
    done = twoscale("export", run_folder, tmp_path / name)
    assert done.status == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["there.onnx"]
    assert (tmp_path / "there.onnx").read_text() == "mine"
