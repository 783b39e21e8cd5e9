"""The example of a problem of one's own, without an installation."""

from __future__ import annotations

import importlib
import sys
import tomllib
from pathlib import Path

from twoscale.parts import Registry
from twoscale.problems import base

FOLDER = Path(__file__).parents[2] / "examples" / "advection_diffusion"


def load_example():
    sys.path.insert(0, str(FOLDER))
    try:
        return importlib.import_module("advection_diffusion")
    finally:
        sys.path.remove(str(FOLDER))


def pretend_installed(place, monkeypatch):
    """Make the example look installed, with the entry points of its pyproject.toml."""
    project = tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]
    folder = place / "advection_diffusion-1.0.dist-info"
    folder.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (folder / "METADATA").write_text(metadata)
    (group,) = project["entry-points"]
    lines = [f"{name} = {place}" for name, place in project["entry-points"][group].items()]
    (folder / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]))
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.delitem(sys.modules, "advection_diffusion", raising=False)
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setattr(base, "PROBLEMS", Registry("problems"))
