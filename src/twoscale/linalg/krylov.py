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
    residual: Tensor  # (batch,) final relative residual, as the recurrence tracks it


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
    is, so that no sample's result depends on the others of its batch.
    """
    axes = tuple(range(1, right_side.ndim))
    solution = torch.zeros_like(right_side) if start is None else start.clone()
    residual = right_side - apply(solution) if start is not None else right_side.clone()
    scale = _norm(right_side, axes).clamp_min(torch.finfo(right_side.dtype).tiny)
    iterations = torch.zeros(len(right_side), dtype=torch.int64, device=right_side.device)
    direction = torch.zeros_like(right_side)
    previous = torch.ones_like(scale)
    relative = _norm(residual, axes) / scale
    for _ in range(max_steps):
        active = relative > tolerance
        if not bool(active.any()):
            break
        preconditioned = precondition(residual)
        rho = (residual * preconditioned).sum(axes, keepdim=True)
        direction = torch.addcmul(preconditioned, rho / previous, direction)
        image = apply(direction)
        curvature = (direction * image).sum(axes, keepdim=True)
        alpha = torch.where(active & (curvature > 0), rho / curvature, 0.0)
        solution.addcmul_(alpha, direction)
        residual.addcmul_(alpha, image, value=-1)
        iterations += active.flatten()
        previous = torch.where(rho == 0, torch.ones_like(rho), rho)
        relative = torch.where(active, _norm(residual, axes) / scale, relative)
    return CGResult(solution, iterations, relative.flatten())


def _norm(values: Tensor, axes: tuple[int, ...]) -> Tensor:
    return values.square().sum(axes, keepdim=True).sqrt()
