"""The JavaScript of the documentation predicts what the surrogate predicts.

It needs Node and the package onnxruntime-web or onnxruntime-node. `npm install --ignore-scripts` in
this folder installs the first; the environment variable `NODE_PATH` leads to other folders.
"""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.pages import DOCS, blocks
from twoscale import Surrogate

PACKAGES = ("onnxruntime-web", "onnxruntime-node")


def packages():
    """The folder with the packages, and the names of those that are there."""
    folder = Path(os.environ.get("NODE_PATH", Path(__file__).parent / "node_modules")).resolve()
    return folder, [name for name in PACKAGES if (folder / name).is_dir()]


def the_page():
    ((_, code),) = blocks((DOCS / "export.md").read_text(encoding="utf-8"), "javascript")
    return code


def test_the_page_shows_the_names_of_the_graph():
    code = the_page()
    assert "session.run({ fields })" in code
    assert "const { prediction }" in code
    assert all(name in code for name in PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_page_predicts(package, tmp_path):
    pytest.importorskip("onnx")
    folder, found = packages()
    if shutil.which("node") is None:
        pytest.skip("Node is not installed")
    if package not in found:
        pytest.skip(f"{package} is not installed: tests/export/package.json")
    x = np.random.default_rng(0).standard_normal((30, 16, 16)).astype(np.float32)
    surrogate = Surrogate("global", predictor="affine", device="cpu").fit(x, x.cumsum(axis=1))
    surrogate.export(tmp_path / "model.onnx")
    (tmp_path / "node_modules").symlink_to(folder)
    script = tmp_path / "page.mjs"
    script.write_text(the_page().replace('"onnxruntime-web"', f'"{package}"'))
    done = subprocess.run(
        ["node", script], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    expected = surrogate.predict(np.ones((1, 16, 16), np.float32))[0, 0, 0]
    assert "1, 1, 16, 16" in done.stdout
    assert float(done.stdout.split()[-1]) == pytest.approx(expected, rel=1e-3)
