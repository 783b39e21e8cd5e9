"""A Python environment with twoscale and its declared base dependencies, and nothing else.

It is made without a network. The package is built as a wheel from a copy of the sources, and
unpacked. The distributions that [project.dependencies] name, and those that they need, are linked
from the running environment.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
_BUILT_FROM = ("src", "pyproject.toml", "README.md", "LICENSE")
_BUILD = "from setuptools import build_meta; build_meta.build_wheel({folder!r})"


def make_environment(folder: Path) -> Path:
    """Make the environment in an empty folder; return its interpreter."""
    venv.create(folder / "environment", symlinks=True, with_pip=False)
    (packages,) = (folder / "environment").glob("[Ll]ib/**/site-packages")
    with zipfile.ZipFile(_wheel(folder)) as wheel:
        wheel.extractall(packages)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for found in _closure(project["dependencies"]).values():
        for place in _importable(found):
            link = packages / place
            link.parent.mkdir(exist_ok=True)
            if not link.exists():
                link.symlink_to(Path(str(found.locate_file(place))).resolve())
    (python,) = (folder / "environment").glob("*/python")
    return python


def _wheel(folder: Path) -> Path:
    """Build the package from a copy, so that the checkout stays as it is."""
    sources = folder / "sources"
    sources.mkdir()
    for name in _BUILT_FROM:
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / name, sources / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, sources / name)
    command = [sys.executable, "-c", _BUILD.format(folder=str(folder))]
    built = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def _closure(requirements: list[str]) -> dict[str, Distribution]:
    """Return all distributions that some requirements need on this machine, by name."""
    found: dict[str, Distribution] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
            continue
        name = canonicalize_name(wanted.name)
        if name not in found:
            found[name] = distribution(name)
            waiting += map(Requirement, found[name].requires or ())
    return found


def _importable(found: Distribution) -> Iterator[str]:
    """Yield a distribution's packages and modules; of a namespace, the packages within it."""
    places = {path.parts[:2] for path in found.files or () if ".." not in path.parts}
    for parts in places:
        top = Path(str(found.locate_file(parts[0])))
        shared = top.is_dir() and top.suffix == "" and not (top / "__init__.py").exists()
        if parts[0] != "__pycache__":
            yield "/".join(parts) if shared and len(parts) == 2 else parts[0]
