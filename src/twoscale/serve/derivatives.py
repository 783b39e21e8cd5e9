"""Derivatives of a map from vectors to a vector, sample by sample: gradient, Jacobian, Hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from twoscale.runtime.memory import is_out_of_memory

VectorMap = Callable[[Sequence[Tensor]], Tensor]
"""Vectors (b, n_i) to vectors (b, m); a sample's result depends on its own vectors only."""

_STEP = 6e-6  # of central differences in double precision: about the cube root of its rounding


def gradient(function: VectorMap, vectors: Sequence[Tensor], number: int, sens: Tensor) -> Tensor:
    """Return sens' J (b, n), J the derivative with respect to one of the vectors; sens (b, m)."""
    with torch.enable_grad():
        at = vectors[number].detach().requires_grad_()
        value = (function(_with(vectors, number, at)) * sens).sum()
        if not value.requires_grad:  # the map is constant
            return torch.zeros_like(at)
        return torch.autograd.grad(value, at)[0]


def jacobian_action(
    function: VectorMap, vectors: Sequence[Tensor], number: int, direction: Tensor
) -> Tensor:
    """Return J v (b, m), J the derivative with respect to one of the vectors; v (b, n)."""

    def moved(at: Tensor) -> Tensor:
        return function(_with(vectors, number, at))

    def exactly() -> Tensor:
        """w' J is linear in w, so that its derivative along v is J v."""
        value, pull, *_ = torch.func.vjp(moved, vectors[number])
        _, push, *_ = torch.func.vjp(lambda weight: pull(weight)[0], torch.zeros_like(value))
        return push(direction)[0]

    return _exact_or_difference(exactly, moved, vectors[number], direction)


def hessian_action(
    function: VectorMap,
    vectors: Sequence[Tensor],
    first: int,
    second: int,
    sens: Tensor,
    direction: Tensor,
) -> Tensor:
    """Return d/dt of the gradient at x + t v (b, n).

    The gradient is that of sens' f with respect to the first vector; v moves the second one.
    """

    def moved(at: Tensor) -> Tensor:
        return gradient(function, _with(vectors, second, at), first, sens)

    def grad(start: Tensor) -> Tensor:
        """Return the derivative of sens' f along v, where the first vector is `start`."""
        inputs = _with(vectors, first, start)
        inner = torch.func.grad(lambda at: (function(_with(inputs, second, at)) * sens).sum())
        return (inner(inputs[second]) * direction).sum()

    def exactly() -> Tensor:
        return torch.func.grad(grad)(vectors[first])

    return _exact_or_difference(exactly, moved, vectors[second], direction)


def _exact_or_difference(
    exactly: Callable[[], Tensor],
    moved: Callable[[Tensor], Tensor],
    at: Tensor,
    direction: Tensor,
) -> Tensor:
    """Return a derivative along a direction by automatic differentiation, if there is one.

    Some operations (distances of kernels, products of encoders and FNOs) can be differentiated only
    once; torch's function transforms refuse them. Then it is a central difference of `moved`, in
    double precision, with a relative error of about 1e-9. Memory that runs out is an error.
    """
    try:
        return exactly().detach()
    except (NotImplementedError, RuntimeError) as error:
        if is_out_of_memory(error):
            raise
        size, length = (one.norm(dim=1, keepdim=True) for one in (at, direction))
        size = torch.where(size > 0, size, 1.0)
        step = _STEP * size / torch.where(length > 0, length, 1.0)
        ends = [moved(at + sign * step * direction) for sign in (1, -1)]
        return (ends[0] - ends[1]) / (2 * step)


def _with(vectors: Sequence[Tensor], number: int, replacing: Tensor) -> list[Tensor]:
    """Return the vectors with another one in place of that number."""
    return [*vectors[:number], replacing, *vectors[number + 1 :]]
