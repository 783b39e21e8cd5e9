"""Single precision: units that keep squares within its range, and products on tensor cores."""

from __future__ import annotations

import math
import warnings
from contextlib import AbstractContextManager

import torch

from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.runtime.threads import SharedSetting

_LARGEST = 2.0**120  # 1.3e36: sums and differences of a few such numbers are finite
_STEP = 2.0**-23  # from one number to the next, relative
_SMALLEST = 2.0**-120  # 7.5e-37: a sixtieth of it still has all its digits
_FEW_DIGITS = 3  # from a mean of 1e4 deviations on, errors of 5e-3 were seen to grow


def unit_of(size: float) -> float:
    """Return a unit for numbers of this size, a power of four: `size` is from 1/2 to 2 of it.

    Squares of fields of 1e20 or 1e-25 leave the range of single precision; measured in their unit
    they do not. Numbers divided by a power of two, and square roots of a power of four, keep every
    digit: wherever the squares were in range, results stay the same to the last bit.

    >>> unit_of(5.0), unit_of(1e-30) * 4.0**50, unit_of(0.0)
    (4.0, 1.0, 1.0)
    """
    if size == 0 or not math.isfinite(size):
        return 1.0
    _, exponent = math.frexp(size)
    return 4.0 ** (exponent // 2)


def check_range(largest: float) -> None:
    """Raise if fields with values of up to `largest` have sums beyond the range of float32."""
    if not largest <= _LARGEST:  # not a number either: a sum was beyond it already
        raise TwoscaleError(
            "some fields have values too near to the end of single precision (3.4e38): divide the "
            "inputs or outputs by a large number first"
        )


def check_variation(mean: float, spread: float, name: str) -> None:
    """Warn if single precision keeps few digits of the variation of fields; raise if it is tiny.

    `mean` and `spread` are the sizes of the mean field and of the deviations from it.
    """
    if 0 < spread < _SMALLEST:
        raise TwoscaleError(
            f"the {name} fields vary by about {spread:.0e}, too near to the smallest numbers of "
            "single precision: multiply them by a large number first"
        )
    problem = precision_problem(mean, spread)
    if problem is not None:
        text = f"the {name} fields {': '.join(problem)}"
        warnings.warn(text, TwoscaleWarning, stacklevel=2)


def precision_problem(mean: float, spread: float) -> tuple[str, str] | None:
    """Return what is lost of the variation of fields in their mean, and what to do; None if little.

    `mean` and `spread` are the sizes of the mean field and of the deviations from it.
    """
    if not spread > 0:
        return (
            "are all the same in single precision, so that there is nothing to learn",
            "if they do vary, subtract their mean, or scale them",
        )
    digits = math.log10(spread / (max(abs(mean), spread) * _STEP))  # that single precision keeps
    if digits >= _FEW_DIGITS:
        return None
    # A power of ten: the same text for all representations of the same fields.
    share = f"1e{round(math.log10(spread / abs(mean)))}"
    kept = max(0, round(digits))
    return (
        f"vary by about {share} of their mean only, of which single precision keeps about {kept} "
        f"digit{'' if kept == 1 else 's'}",
        "subtract their mean, or fit differences to a reference",
    )


_MATMUL = torch.backends.cuda.matmul
_tensor_cores = SharedSetting(
    lambda: _MATMUL.allow_tf32, lambda allowed: setattr(_MATMUL, "allow_tf32", allowed), True
)


def tensor_cores() -> AbstractContextManager[None]:
    """Round the factors of products on CUDA to ten bits (TF32), as convolutions do by default."""
    return _tensor_cores.changed()


def precision_flags() -> tuple[bool, bool]:
    """Return whether matrix products and convolutions on CUDA use TF32 at present."""
    return torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
