"""Conjugate gradients on a batch of independent systems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Operator = Callable[[Tensor], Tensor]


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
) -> CGResult:
    """Solve A x = b for each sample of a batch by preconditioned conjugate gradients.

    A system stops at relative residual ||b - A x|| / ||b|| <= `tolerance` and then stays as it
    is, so that no sample's result depends on the others of its batch. The steps follow the
    residual by a recurrence that rounding separates from the truth. Therefore the residual is
    computed at the end: a system that only claims to be there starts again from its solution, as
    long as each start halves its residual.
    """
    axes = tuple(range(1, right_side.ndim))
    solution = torch.zeros_like(right_side) if start is None else start.clone()
    residual = right_side - apply(solution) if start is not None else right_side.clone()
    scale = _norm(right_side, axes).clamp_min(torch.finfo(right_side.dtype).tiny)
    steps = torch.zeros_like(scale, dtype=torch.int64)
    direction, previous = torch.zeros_like(right_side), torch.ones_like(scale)
    claimed, before = _norm(residual, axes) / scale, torch.full_like(scale, torch.inf)
    while True:
        active = (claimed > tolerance) & (steps < max_steps)
        if not bool(active.any()):
            residual = right_side - apply(solution)
            relative = _norm(residual, axes) / scale
            active = (claimed <= tolerance) & (relative > tolerance) & (relative <= before / 2)
            active &= steps < max_steps
            if not bool(active.any()):
                return CGResult(solution, steps.flatten(), relative.flatten())
            before, claimed = relative, torch.where(active, relative, claimed)
            direction, previous = torch.zeros_like(direction), torch.ones_like(previous)
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
        claimed = torch.where(active, _norm(residual, axes) / scale, claimed)


def _norm(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    return values.square().sum(axes, keepdim=True).sqrt()
