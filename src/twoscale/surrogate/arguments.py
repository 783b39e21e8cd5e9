"""What users hand over, checked: devices and arrays of fields."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.source import ArraySource, FieldSource
from twoscale.fields.symmetries import GROUPS
from twoscale.problems import Problem

_DOT_VALUES = 2**31 - 1  # at most, in one product

Fields = np.ndarray | Tensor | FieldSource


def resolve_device(name: str) -> torch.device:
    """Return the device called `name`; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = name.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise TwoscaleError(f"the device is auto, cpu or cuda, got '{name}'")
    devices = torch.cuda.device_count() if kind == "cuda" else 1
    if int(number or 0) >= devices:
        raise TwoscaleError(f"there is no device {name} here: use --device cpu or auto")
    return torch.device(name)


def problem_symmetries(problem: Problem | None) -> str:
    """Return the name of a problem's symmetries."""
    if problem is None:
        raise TwoscaleError(
            "symmetries=problem needs a known problem: name the symmetries of yours instead "
            f"({', '.join(GROUPS)})"
        )
    return problem.symmetric_under


def as_fields(array: Any, name: str) -> Tensor:
    """Return `array` as float32 fields (samples, height, width), or say what is wrong with it."""
    fields = real_fields(array, name)
    check_finite(fields, name)
    return fields


def real_fields(array: Any, name: str) -> Tensor:
    """Return the same without a look at the values: on a GPU that waits for all its work."""
    if isinstance(array, np.ndarray):
        if array.dtype.kind not in "fiub":
            raise TwoscaleError(f"the {name} fields must be real numbers, got dtype {array.dtype}")
        with np.errstate(over="ignore"):  # what becomes infinite is refused with all that is
            values = np.ascontiguousarray(array, dtype=np.float32)
        tensor = torch.from_numpy(values if values.flags.writeable else values.copy())
    elif isinstance(array, Tensor):
        if array.is_complex():
            raise TwoscaleError(f"the {name} fields must be real numbers, got dtype {array.dtype}")
        tensor = array.float()
    else:
        raise TwoscaleError(f"the {name} fields must be an array, got {type(array).__name__}")
    if tensor.ndim != 3 or not len(tensor):
        raise TwoscaleError(
            f"the {name} fields must have shape (samples, height, width), got {tuple(array.shape)}"
        )
    return tensor


def check_finite(fields: Tensor, name: str) -> None:
    """Raise if any value is NaN or infinite."""
    if not math.isfinite(float(fields.sum())):  # tells at a tenth of the cost
        _look_closely(fields, name)


def check_prediction(inputs: Tensor, predicted: Tensor) -> None:
    """Raise if any value of a prediction or of its inputs is NaN or infinite.

    One product sees to both, and a GPU is waited for once: whatever is multiplied by NaN or an
    infinity is one of them too.
    """
    one, other = inputs.reshape(-1), predicted.reshape(-1)
    if len(one) <= _DOT_VALUES and math.isfinite(float(torch.dot(one, other))):
        return
    _look_closely(inputs, "input")
    _look_closely(
        predicted,
        "predicted",
        ": the inputs may be far from those of the training, or values near that end",
    )


def _look_closely(fields: Tensor, name: str, cause: str = "") -> None:
    """Raise if a value is not finite; the sum of finite ones may be infinite."""
    for chunk in ArraySource(fields).chunks():
        if not bool(torch.isfinite(chunk).all()):
            raise TwoscaleError(
                f"the {name} fields contain NaN or infinite values (in single precision, which "
                f"ends at 3.4e38){cause}"
            )
