"""Muon: momentum whose steps are orthogonal matrices, for kernels and linear maps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from twoscale.runtime.cuda_graphs import side_by_side

_ITERATIONS = 5
_QUINTIC = (3.4445, -4.7750, 2.0315)  # sends every singular value in (0, 1] to around one, quickly
_MOMENTUM = 0.95
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8
_SIZE = 0.2  # root mean square of a step's entries at rate one: about that of Adam


class Muon(torch.optim.Optimizer):
    """Momentum, orthogonalised, for all weights that are matrices; Adam for the others.

    A kernel of a convolution is a matrix of its first axis by all others. A step changes all
    directions of a matrix by the same amount; with Adam a few dominate. Both kinds of steps have
    the same size, so that one rate serves both. Weight decay is decoupled from the gradients. Steps
    can be captured in a CUDA graph.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        *,
        lr: float | Tensor,
        weight_decay: float = 0.0,
    ) -> None:
        known: list[Tensor] = list(parameters)
        matrices = [p for p in known if p.ndim >= 2 and min(len(p), p[0].numel()) > 1]
        ids = {id(p) for p in matrices}
        others = [p for p in known if id(p) not in ids]
        groups = [{"params": some} for some in (matrices, others) if some]
        super().__init__(groups, {"lr": lr})
        self.weight_decay = weight_decay
        self.known = known
        assert all(p.stride(0) == p[0].numel() for p in matrices), "kernels must lie row by row"
        self.alike = _alike(matrices)
        self.others = others
        for parameter in known:  # all state from the start: captured steps make none
            state = self.state[parameter]
            state["first"] = torch.zeros_like(parameter)
            if id(parameter) not in ids:
                state["second"] = torch.zeros_like(parameter)
        self.steps = known[0].new_zeros(())
        self.state[known[0]]["steps"] = self.steps

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # type: ignore[override]
        rate = self.param_groups[0]["lr"]
        self.steps.add_(1)
        if self.weight_decay:
            torch._foreach_mul_(self.known, 1 - self.weight_decay * rate)
        if self.alike:
            self._step_matrices(rate)
        if self.others:
            self._adam(rate)

    def _step_matrices(self, rate: float | Tensor) -> None:
        """Take a step on all matrices; those of the same shape are orthogonalised as one batch."""
        matrices = [p for some in self.alike for p in some]
        gradients = [_gradient(p) for p in matrices]
        momenta = [self.state[p]["first"] for p in matrices]
        torch._foreach_mul_(momenta, _MOMENTUM)
        torch._foreach_add_(momenta, gradients)
        lookahead = iter(torch._foreach_add(gradients, momenta, alpha=_MOMENTUM))
        works = [
            partial(_orthogonal_steps, some, list(islice(lookahead, len(some))), rate)
            for some in self.alike
        ]
        changes = side_by_side(works, matrices[0].device)
        torch._foreach_sub_(matrices, [one for some in changes for one in some])

    def _adam(self, rate: float | Tensor) -> None:
        gradients = [_gradient(p) for p in self.others]
        first = [self.state[p]["first"] for p in self.others]
        second = [self.state[p]["second"] for p in self.others]
        torch._foreach_lerp_(first, gradients, 1 - _BETAS[0])
        torch._foreach_mul_(second, _BETAS[1])
        torch._foreach_addcmul_(second, gradients, gradients, 1 - _BETAS[1])
        one, two = (1 - beta**self.steps for beta in _BETAS)
        sizes = torch._foreach_div(second, two)
        torch._foreach_sqrt_(sizes)
        torch._foreach_add_(sizes, _EPSILON)
        changes = torch._foreach_div(first, sizes)
        torch._foreach_mul_(changes, rate / one)
        torch._foreach_sub_(self.others, changes)


def _orthogonal_steps(
    alike: list[Tensor], lookahead: list[Tensor], rate: float | Tensor
) -> list[Tensor]:
    """Return the steps of matrices of the same shape, from their Nesterov momentum."""
    stacked = torch.stack([_matrix(one) for one in lookahead])
    size = _SIZE * max(stacked.shape[1:]) ** 0.5
    steps = (orthogonalised(stacked) * (size * rate)).contiguous()  # tall ones come transposed
    return [one.as_strided(p.shape, p.stride()) for p, one in zip(alike, steps, strict=True)]


def orthogonalised(matrices: Tensor) -> Tensor:
    """Return matrices (batch, rows, columns) with all singular values moved to around one."""
    x = matrices.bfloat16() if matrices.is_cuda else matrices
    tall = x.shape[1] > x.shape[2]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    a, b, c = _QUINTIC
    for _ in range(_ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)


def _alike(parameters: Iterable[Tensor]) -> list[list[Tensor]]:
    """Return the parameters sorted by their shape as matrices."""
    found: dict[tuple[int, int], list[Tensor]] = {}
    for parameter in parameters:
        found.setdefault((len(parameter), parameter[0].numel()), []).append(parameter)
    return list(found.values())


def _matrix(x: Tensor) -> Tensor:
    """Return first axis x all others, these in the order in which they lie in memory.

    The order of the columns does not change the orthogonal factor. This order saves four copies of
    kernels in channels-last format.
    """
    return x.as_strided((len(x), x[0].numel()), (x[0].numel(), 1))


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad
