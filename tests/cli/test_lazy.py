"""Help, version and completion do not wait for the libraries that compute."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

import twoscale

HEAVY = ["torch", "numpy", "scipy", "matplotlib", "zarr", "h5py", "yaml", "sklearn"]

CODE = """
import contextlib, io, sys
from twoscale.cli import main
for arguments in {arguments!r}:
    sys.argv = ["twoscale", *arguments]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main()
    assert "wo" in printed.getvalue(), arguments
    loaded = sorted(set(sys.modules) & set({heavy!r}))
    assert not loaded, (arguments, loaded)
"""

COMMANDS = [
    *("demo", "generate", "import", "check", "fit", "finetune", "evaluate", "predict"),
    *("export", "report", "serve"),
]
if find_spec("twoscale_lab"):
    COMMANDS += ["bench", "study", "study list", "study run", "study compare"]


def test_help_and_version_load_nothing_heavy():
    asked = [["--version"], ["--help"], *([*name.split(), "--help"] for name in COMMANDS)]
    code = CODE.format(arguments=asked, heavy=HEAVY)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_importing_the_package_loads_nothing_heavy():
    code = f"import sys, twoscale; assert not set(sys.modules) & set({HEAVY!r})"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_names_that_are_not_there():
    with pytest.raises(AttributeError, match="no attribute 'Surogate'"):
        twoscale.Surogate  # noqa: B018
