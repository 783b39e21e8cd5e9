"""Fitted numbers of a module: stored and taken back under their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from torch import Tensor, nn

from twoscale.errors import TwoscaleError

Kind = TypeVar("Kind", bound=nn.Module)


def restore_buffers(module: Kind, tensors: Mapping[str, Tensor]) -> Kind:
    """Return a module with the buffers that its class declares, taken from tensors by name."""
    for name in type(module).__annotations__:
        if name not in tensors:
            raise TwoscaleError(f"the trust lacks '{name}': the artifact is damaged")
        module.register_buffer(name, tensors[name])
    return module
