"""Two-scale localised PCA-Net: fast surrogates of PDE solution operators.

The public names stand in `__init__.pyi`. A module is imported when one of its names is first used.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from twoscale._version import __version__ as __version__
from twoscale.errors import TwoscaleError as TwoscaleError
from twoscale.errors import TwoscaleWarning as TwoscaleWarning


@cache
def _modules() -> dict[str, str]:
    """Return the module of every public name."""
    import ast  # the import of the package alone does without
    from pathlib import Path

    listed = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in listed.body if isinstance(node, ast.ImportFrom)]
    return {name.name: str(node.module) for node in imports for name in node.names}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted(_modules())
    if name.startswith("__") or name not in _modules():
        raise AttributeError(f"module 'twoscale' has no attribute '{name}'")
    value = getattr(import_module(_modules()[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_modules()})
