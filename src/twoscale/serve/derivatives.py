"""Derivatives of a map from vectors to a vector, sample by sample: gradient, Jacobian, Hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

VectorMap = Callable[[Sequence[Tensor]], Tensor]
"""Vectors (b, n_i) to vectors (b, m); a sample's result depends on its own vectors only."""

_STEP = 6e-6  # of central differences in double precision: about the cube root of its rounding


def gradient(function: VectorMap, vectors: Sequence[Tensor], place: int, sens: Tensor) -> Tensor:
    """Return sens' J (b, n), J the derivative with respect to one of the vectors; sens (b, m)."""
    with torch.enable_grad():
        at = vectors[place].detach().requires_grad_()
        value = (function(_with(vectors, place, at)) * sens).sum()
        if not value.requires_grad:  # the map is constant
            return torch.zeros_like(at)
        (found,) = torch.autograd.grad(value, at)
    return found


def jacobian_action(
    function: VectorMap, vectors: Sequence[Tensor], place: int, direction: Tensor
) -> Tensor:
    """Return J v (b, m), J the derivative with respect to one of the vectors; v (b, n)."""

    def moved(at: Tensor) -> Tensor:
        return function(_with(vectors, place, at))

    return _along(moved, moved, vectors[place], direction)


def hessian_action(
    function: VectorMap,
    vectors: Sequence[Tensor],
    places: tuple[int, int],
    sens: Tensor,
    direction: Tensor,
) -> Tensor:
    """Return d/dt of the gradient at x + t v (b, n).

    The gradient is that of sens' f with respect to the first place; v moves the second one.
    """
    first, second = places

    def by_autograd(at: Tensor) -> Tensor:
        return gradient(function, _with(vectors, second, at), first, sens)

    def by_transform(at: Tensor) -> Tensor:
        given = _with(vectors, second, at)
        inner = lambda one: (function(_with(given, first, one)) * sens).sum()  # noqa: E731
        return torch.func.grad(inner)(given[first])

    return _along(by_transform, by_autograd, vectors[second], direction)


def _along(
    exact: Callable[[Tensor], Tensor],
    plain: Callable[[Tensor], Tensor],
    at: Tensor,
    direction: Tensor,
) -> Tensor:
    """Return the derivative of a function along a direction.

    Forward-mode differentiation of `exact`. Some operations (distances of kernels, products of
    encoders and FNOs) have none. Then it is the central difference of `plain`, the same function
    without transforms, in double precision: its relative error is about 1e-9.
    """
    try:
        return torch.func.jvp(exact, (at,), (direction,))[1].detach()
    except (NotImplementedError, RuntimeError):
        size, length = (one.norm(dim=1, keepdim=True) for one in (at, direction))
        size = torch.where(size > 0, size, 1.0)
        step = _STEP * size / torch.where(length > 0, length, 1.0)
        ends = [plain(at + sign * step * direction) for sign in (1, -1)]
        return (ends[0] - ends[1]) / (2 * step)


def _with(vectors: Sequence[Tensor], place: int, one: Tensor) -> list[Tensor]:
    """Return the vectors with another one at a place."""
    return [one if number == place else vector for number, vector in enumerate(vectors)]
