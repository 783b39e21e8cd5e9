"""The steps of one small network on a CPU as one compiled call.

TorchScript runs the same operations, to the same bits, without Python between them (a tenth less
time) and without holding the interpreter's lock: members on other cores go on meanwhile.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor


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
    adam: list[list[Tensor]],  # weights, gradient, moments, none, steps: as lists, or what is
    # done to them would be taken for unseen and left out
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
    """Return the compiled steps, or None where this Python or torch cannot compile them."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return torch.jit.script(_steps)
    except Exception:  # whatever it is, there is the same without compiling
        return None
