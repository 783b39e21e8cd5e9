"""Optimisers: Muon, and Adam on the rows of a matrix, also as compiled steps of a network."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn

from twoscale.runtime.cuda_graphs import side_by_side
from twoscale.training.plan import Plan

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


class AdamRows:
    """Adam with L2 decay on the rows of one matrix, each with its own rate.

    The fused kernel works through one block of threads per tensor, so on CUDA a row is handed to it
    in pieces.
    """

    def __init__(self, rows: Tensor, gradients: Tensor, plans: Sequence[Plan]) -> None:
        cuda = rows.is_cuda
        members, size = rows.shape
        self.first, self.second = torch.zeros_like(rows), torch.zeros_like(rows)
        self.steps = torch.zeros(members, device=rows.device)
        rates = [plan.learning_rate for plan in plans]
        self.rates: Any = torch.tensor(rates, device=rows.device) if cuda else rates
        piece = max(_PIECE, -(-size // _PIECES)) if cuda else size
        self.arguments = []
        for member in range(members):
            whole = (rows, gradients, self.first, self.second)
            pieces = [values[member].split(piece) for values in whole]
            self.arguments.append([*pieces, [self.steps[member]] * len(pieces[0])])
        self.options: list[dict[str, Any]] = [
            {
                "beta1": 0.9,
                "beta2": 0.999,
                "eps": 1e-8,
                "weight_decay": plan.weight_decay,
                "amsgrad": False,
                "maximize": False,
            }
            for plan in plans
        ]

    def step(self) -> None:
        self.steps.add_(1)
        for member, (rows, gradients, first, second, steps) in enumerate(self.arguments):
            torch._fused_adam_(  # what torch.optim.Adam(fused=True) calls, without its bookkeeping
                rows,
                gradients,
                first,
                second,
                [],
                steps,
                lr=self.rates[member],
                **self.options[member],
            )

    def set_rate(self, member: int, rate: float) -> None:
        self.rates[member] = rate

    def moments(self) -> list[Tensor]:
        return [self.first, self.second, self.steps]


_PIECE = 4096  # at least this many parameters per piece
_PIECES = 72  # about as many as two launches of the fused kernel take


def _steps(
    inputs: Tensor,  # (steps x batch, first layer's inputs), the constant included
    targets: Tensor,  # (steps x batch, codes)
    batch: int,
    signals: list[Tensor],  # inputs of the layers but the first
    outputs: list[Tensor],  # of the layers; all but the last lie inside `signals`
    grads: list[Tensor],  # gradients in the outputs
    transposed_grads: list[Tensor],  # the same, transposed
    transposed_weights: list[Tensor],  # weights, transposed
    inner_weights: list[Tensor],  # weights without the constant's column
    gradients: list[Tensor],  # in the weights, inside `gradient`
    scaled: Tensor,  # (1, codes): the loss's weights times 2 / batch
    error_row: Tensor,
    grad_column: Tensor,
    dot: Tensor,
    total: Tensor,
    # Weights, gradient, moments, none, steps, each in a list: TorchScript drops in-place changes of
    # tensors that are not in a list.
    adam: list[list[Tensor]],
    rate: float,
    weight_decay: float,
) -> None:
    last = len(transposed_weights) - 1
    for start in range(0, inputs.size(0), batch):
        signal = inputs.narrow(0, start, batch)
        for layer in range(last):
            torch.mm(signal, transposed_weights[layer], out=outputs[layer])
            outputs[layer].relu_()
            signal = signals[layer]
        torch.mm(signal, transposed_weights[last], out=outputs[last])
        outputs[last].sub_(targets.narrow(0, start, batch))
        torch.mul(outputs[last], scaled, out=grads[last])
        torch.bmm(error_row, grad_column, out=dot)
        total.add_(dot.view(1), alpha=0.5 * batch)
        for done in range(last):
            layer = last - done
            torch.mm(transposed_grads[layer], signals[layer - 1], out=gradients[layer])
            below = grads[layer - 1]
            torch.mm(grads[layer], inner_weights[layer], out=below)
            torch.ops.aten.threshold_backward(below, outputs[layer - 1], 0, grad_input=below)
        torch.mm(transposed_grads[0], inputs.narrow(0, start, batch), out=gradients[0])
        adam[5][0].add_(1)
        torch._fused_adam_(
            adam[0],
            adam[1],
            adam[2],
            adam[3],
            adam[4],
            adam[5],
            lr=rate,
            beta1=0.9,
            beta2=0.999,
            eps=1e-8,
            weight_decay=weight_decay,
            amsgrad=False,
            maximize=False,
        )


@cache
def scripted_steps() -> Callable[..., None] | None:
    """Return the steps of one small network on a CPU as one compiled call, or None.

    TorchScript runs the same operations, to the same bits, without Python between them (a tenth
    less time) and without holding the interpreter's lock: members on other cores go on meanwhile.
    Where this Python or torch cannot compile them, there are none.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.script(_steps)
    except Exception:  # any failure: the uncompiled steps are used
        return None
