"""Imports point downwards only, and the library needs none of its optional dependencies."""

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import twoscale

PACKAGE = Path(twoscale.__file__).parent

LAYERS = [
    {"_version", "errors"},
    {"settings"},
    {"files", "runtime", "parts"},
    {"domain"},
    {"fields"},
    {"cluster"},
    {"math"},
    {"problems", "representation", "networks"},
    {"training"},
    {"predictors"},
    {"operators"},
    {"methods"},
    {"finetuning"},
    {"trust"},
    {"export"},
    {"surrogate"},
    {"search"},
    {"__init__"},
    {"data"},
    {"run"},
    {"report", "serve"},
    {"explore"},
    {"cli", "__main__"},
]
"""From the bottom up; a module may import its own layer and those below."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

OPTIONAL = [
    "zarr",
    "numcodecs",
    "fsspec",
    "s3fs",
    "h5py",
    "xarray",
    "h5netcdf",
    "PIL",
    "typer",
    "rich",
    "matplotlib",
    "jinja2",
    "pydantic",
    "yaml",
    "skimage",
    "sklearn",
    "dask",
    "distributed",
    "onnx",
    "onnxscript",
    "onnxruntime",
    "starlette",
    "uvicorn",
]


def modules():
    """Every module of the package, with the name of its part: its first folder or file."""
    return [
        (path, path.relative_to(PACKAGE).parts[0].removesuffix(".py"))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


@cache
def imported_parts(path):
    """Return the parts of the package that a module imports, with the line of each import."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute here"
            # `from twoscale import x` names either a part or something the package itself offers.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "twoscale":
                part = rest[0] if rest and rest[0] in LEVEL else "__init__"
                found.append((part, node.lineno))
    return found


@pytest.mark.parametrize(("path", "part"), modules(), ids=lambda value: Path(value).stem)
def test_imports_point_downwards(path, part):
    assert part in LEVEL, f"say in LAYERS where {part} belongs"
    for imported, line in imported_parts(path):
        assert LEVEL[imported] <= LEVEL[part], f"{path.name}:{line} imports {imported} from above"


def test_the_library_does_not_know_the_lab():
    mentions = [path for path, _ in modules() if "twoscale_lab" in path.read_text()]
    assert not mentions


def test_the_check_sees_imports():
    """It would be worth nothing if it found none."""
    found = {part for path, _ in modules() for part, _ in imported_parts(path)}
    assert found >= {
        "errors",
        "domain",
        "fields",
        "math",
        "problems",
        "representation",
        "training",
    }


def run_without(names, code):
    """Run `code` in a new process in which importing any of `names` fails."""
    blocked = f"import sys\nfor name in {names!r}: sys.modules[name] = None\n"
    return subprocess.run(
        [sys.executable, "-c", blocked + code], capture_output=True, text=True, check=False
    )


def test_the_library_works_without_optional_dependencies():
    code = """
import numpy as np
from twoscale import Grid, Poisson, Surrogate

problem = Poisson()
x = problem.sample(Grid.square(16), range(60), seed=0)
u = problem.solve(x)
surrogate = Surrogate("two-scale", device="cpu", problem=problem, epochs=1, coarse_components=3)
metrics = surrogate.fit(x, u).evaluate(x, u)
assert 0 < metrics["ssim"] <= 1
print("fine")
"""
    result = run_without(OPTIONAL, code)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "fine"


def test_importing_is_free_of_side_effects():
    """No output, no change of torch's threads, dtype or random state."""
    code = """
import torch
before = torch.get_num_threads(), torch.get_default_dtype(), torch.random.get_rng_state().tolist()
import twoscale
after = torch.get_num_threads(), torch.get_default_dtype(), torch.random.get_rng_state().tolist()
assert before == after
"""
    result = run_without([], code)
    assert result.returncode == 0, result.stderr
    assert result.stdout == result.stderr == ""


def test_every_public_name_exists():
    assert all(hasattr(twoscale, name) for name in twoscale.__all__)
