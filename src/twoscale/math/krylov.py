"""Conjugate gradients on a batch of independent systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Operator = Callable[[Tensor], Tensor]
Error = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Returns (batch,) errors of solutions from these, their residuals and preconditioned residuals."""


@dataclass(frozen=True)
class CGResult:
    solution: Tensor  # (batch, ...)
    iterations: Tensor  # (batch,) steps taken by each system
    residual: Tensor  # (batch,) ||b - A x|| / ||b||, computed from the solution


def conjugate_gradients(
    apply: Operator,
    right_side: Tensor,
    *,
    precondition: Operator,
    start: Tensor | None = None,
    tolerance: float = 1e-10,
    max_steps: int = 500,
    error: Error | None = None,
) -> CGResult:
    """Solve A x = b for each sample of a batch by preconditioned conjugate gradients.

    A system stops when its error is at most `tolerance` and then stays as it is, so that no
    sample's result depends on the others of its batch. The error is the relative residual
    ||b - A x|| / ||b||, or what the function `error` says. The steps follow the residual by a
    recurrence that rounding separates from the truth. Therefore the residual is computed at the
    end: a system that only claims to be there starts again from its solution, as long as each start
    halves its error.
    """
    axes = tuple(range(1, right_side.ndim))
    solution = torch.zeros_like(right_side) if start is None else start.clone()
    residual = right_side - apply(solution) if start is not None else right_side.clone()
    scale = _norm(right_side, axes).clamp_min(torch.finfo(right_side.dtype).tiny)

    def measured() -> tuple[Tensor, Tensor | None]:
        """Return the errors, and the preconditioned residuals if these were needed."""
        if error is None:
            return _norm(residual, axes) / scale, None
        preconditioned = precondition(residual)
        return error(solution, residual, preconditioned).reshape(scale.shape), preconditioned

    steps = torch.zeros_like(scale, dtype=torch.int64)
    direction, previous = torch.zeros_like(right_side), torch.ones_like(scale)
    before = torch.full_like(scale, torch.inf)
    claimed, preconditioned = measured()
    while True:
        active = (claimed > tolerance) & (steps < max_steps)
        if not bool(active.any()):
            residual = right_side - apply(solution)
            true, preconditioned = measured()
            active = (claimed <= tolerance) & (true > tolerance) & (true <= before / 2)
            active &= steps < max_steps
            if not bool(active.any()):
                relative = _norm(residual, axes) / scale
                return CGResult(solution, steps.flatten(), relative.flatten())
            before, claimed = true, torch.where(active, true, claimed)
            direction, previous = torch.zeros_like(direction), torch.ones_like(previous)
        if preconditioned is None:
            preconditioned = precondition(residual)
        rho = (residual * preconditioned).sum(axes, keepdim=True)
        direction = torch.addcmul(preconditioned, rho / previous, direction)
        image = apply(direction)
        curvature = (direction * image).sum(axes, keepdim=True)
        alpha = torch.where(active & (curvature > 0), rho / curvature, 0.0)
        solution.addcmul_(alpha, direction)
        residual.addcmul_(alpha, image, value=-1)
        steps += active
        previous = torch.where(rho == 0, torch.ones_like(rho), rho)
        latest, preconditioned = measured()
        claimed = torch.where(active, latest, claimed)


def _norm(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    return values.square().sum(axes, keepdim=True).sqrt()
