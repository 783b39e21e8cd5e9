"""Surrogates as a server: fields by JSON and npy, vectors and derivatives by UM-Bridge."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from twoscale.errors import missing_extra
from twoscale.serve.limits import Limits

if TYPE_CHECKING:
    from twoscale.serve.model import ServedModel, load_models
    from twoscale.serve.server import HttpServer, Server

__all__ = ["HttpServer", "Limits", "ServedModel", "Server", "load_models", "require"]

# Loaded at their first use: the command line reads defaults from here, and must not wait for torch.
_MODULES = {"HttpServer": "server", "ServedModel": "model", "Server": "server"}
_MODULES["load_models"] = "model"


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require()
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def require() -> None:
    """Raise if a package that serves is missing."""
    for package in ("starlette", "uvicorn"):
        try:
            import_module(package)
        except ImportError as error:
            raise missing_extra(package, "serve") from error
