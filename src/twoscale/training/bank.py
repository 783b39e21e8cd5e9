"""A bank of MLPs of the same depth and width, stepped together with hand-written gradients.

Weights of all members lie in one matrix, a row per member; a layer of the bank is one batched
product. The bias is the weight of a constant input, kept as the last column of each layer's input,
so that products with and gradients of the bias cost nothing extra. Members whose codes differ in
size are padded with zeros: a weight whose input is always zero, or whose output is not in the loss,
has no gradient and stays zero. On a GPU the product with very long codes is taken in parts: with
a small minibatch one product of thousands of terms would use a small part of the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from twoscale.networks import DenseNetwork
from twoscale.runtime.scratch import Scratch
from twoscale.training.learner import Learner
from twoscale.training.optimisers import AdamRows, scripted_steps
from twoscale.training.plan import Plan
from twoscale.training.task import CodeLoss, CodePairs, Loss

_relu_grad = torch.ops.aten.threshold_backward.grad_input

_ALIGNED = 4  # rows of whole 16-byte words, for vectorised loads
_LONG = 2048  # inputs from which the first layer's sums are taken in parts
_PART = 512  # terms of one such part


class MLPBank(Learner):
    """Networks trained side by side; each gets the weights it would get alone."""

    def __init__(
        self, networks: Sequence[DenseNetwork], losses: Sequence[Loss], plans: Sequence[Plan]
    ) -> None:
        layers = [[part for part in network if isinstance(part, nn.Linear)] for network in networks]
        like = layers[0][0].weight
        self.layers = layers
        # A layer's outputs, and its inputs with room for the constant.
        outputs = [max(member[i].out_features for member in layers) for i in range(len(layers[0]))]
        longest = max(member[0].in_features for member in layers)
        self.parts = _parts(longest, like)
        inputs = [_padded(longest, self.parts * _ALIGNED)]
        inputs += [_padded(width) for width in outputs[:-1]]
        outputs[-1] = -(-outputs[-1] // _ALIGNED) * _ALIGNED
        self.shapes = list(zip(outputs, inputs, strict=True))
        size = sum(rows * columns for rows, columns in self.shapes)
        self.rows = like.new_zeros(len(networks), size)
        self.gradients = torch.zeros_like(self.rows)
        self.matrices, self.weight_grads = self._views(self.rows), self._views(self.gradients)
        with torch.no_grad():
            self._bind()
        self.adam = AdamRows(self.rows, self.gradients, plans)
        self.loss = _BankLoss(losses, [member[-1].out_features for member in layers], outputs[-1])
        self.total = like.new_zeros(len(networks))
        self.workspaces: dict[int, _Workspace] = {}

    def _views(self, rows: Tensor) -> list[Tensor]:
        """Return the layers' matrices (members, outputs, inputs + constant) inside `rows`."""
        parts = rows.split([a * b for a, b in self.shapes], 1)
        return [part.unflatten(1, shape) for part, shape in zip(parts, self.shapes, strict=True)]

    def _bind(self) -> None:
        """Move the networks' weights into the bank; they become views of it."""
        for member, layers in enumerate(self.layers):
            for layer, matrices in zip(layers, self.matrices, strict=True):
                weight = matrices[member, : layer.out_features, : layer.in_features]
                bias = matrices[member, : layer.out_features, -1]
                weight.copy_(layer.weight)
                bias.copy_(layer.bias)
                layer.weight.data, layer.bias.data = weight, bias

    def release(self) -> None:
        for layers in self.layers:
            for layer in layers:
                layer.weight.data = layer.weight.data.clone(memory_format=torch.contiguous_format)
                layer.bias.data = layer.bias.data.clone(memory_format=torch.contiguous_format)

    @torch.no_grad()
    def step(self, inputs: Tensor, targets: Tensor) -> None:
        workspace = self._workspace(inputs.shape[1])
        self._step(workspace, inputs[0] if workspace.flat else inputs, targets)

    @torch.no_grad()
    def steps(self, inputs: Tensor, targets: Tensor, batch: int) -> None:
        workspace = self._workspace(batch)
        compiled = scripted_steps() if workspace.flat and self.loss.squares else None
        if compiled is not None:
            self._compiled_steps(compiled, workspace, inputs, targets, batch)
            return
        shape = (-1, len(self.rows), batch)
        batches = inputs.split(batch) if workspace.flat else inputs.unflatten(0, shape)
        for pair in zip(batches, targets.unflatten(0, shape), strict=True):
            self._step(workspace, *pair)

    def _compiled_steps(
        self,
        compiled: Callable[..., None],
        workspace: _Workspace,
        inputs: Tensor,
        targets: Tensor,
        batch: int,
    ) -> None:
        adam = self.adam
        compiled(
            inputs,
            targets,
            batch,
            workspace.inputs,
            workspace.outputs,
            workspace.grads,
            workspace.transposed_grads,
            workspace.transposed_weights,
            workspace.inner_weights,
            workspace.weight_grads,
            self.loss.scaled(batch)[0],
            workspace.error_row,
            workspace.grad_column,
            workspace.dot,
            self.total,
            [[self.rows], [self.gradients], [adam.first], [adam.second], [], [adam.steps]],
            float(adam.rates[0]),
            adam.options[0]["weight_decay"],
        )

    def _step(self, workspace: _Workspace, inputs: Tensor, targets: Tensor) -> None:
        """Take one step; inputs (members, batch, codes) lack members if the workspace is flat.

        On a CPU the calls of a small network take Python as long as the products. All views are
        made beforehand.
        """
        product, signal = workspace.product, inputs
        for weights, output, following in workspace.forward:
            if signal is inputs and self.parts > 1:
                workspace.first(inputs).relu_()
            else:
                product(signal, weights, out=output).relu_()
            signal = following
        product(signal, workspace.transposed_weights[-1], out=workspace.outputs[-1])
        self.loss(workspace, targets, self.total)
        for transposed, grad, signal, weight_grad, weights, below, output in workspace.backward:
            product(transposed, signal, out=weight_grad)
            product(grad, weights, out=below)
            _relu_grad(below, output, 0, grad_input=below)
        product(workspace.transposed_grads[0], inputs, out=workspace.weight_grads[0])
        self.adam.step()

    def _workspace(self, batch: int) -> _Workspace:
        if batch not in self.workspaces:
            self.workspaces[batch] = _Workspace(self, batch)
        return self.workspaces[batch]

    def set_rate(self, member: int, rate: float) -> None:
        self.adam.set_rate(member, rate)

    def weights(self) -> list[Tensor]:
        return [self.rows]

    def moments(self) -> list[Tensor]:
        return self.adam.moments()

    def state(self) -> dict[str, Tensor]:
        first, second, steps = self.adam.moments()
        moments = {"first": first, "second": second, "steps": steps}
        return {"total": self.total, "rows": self.rows, **moments}

    def restore(self, state: dict[str, Tensor]) -> None:
        for name, value in self.state().items():
            value.copy_(state[name])

    def stack(self, members: Sequence[CodePairs]) -> CodePairs:
        """Return the members' pairs as one, (members, samples, ...), padded to the bank's sizes."""
        scratch = members[0].scratch
        inputs = scratch.zeros(len(members), len(members[0]), self.shapes[0][1], like=self.rows)
        inputs[:, :, -1] = 1
        for row, pairs in zip(inputs, members, strict=True):
            row[:, : pairs.inputs.shape[1]] = pairs.inputs
        targets = self.loss.stack([pairs.targets for pairs in members], scratch)
        return CodePairs(inputs, targets, scratch=scratch)


class _Workspace:
    """Memory for the signals of one minibatch size, reused in every step, and views of it.

    A single member on a CPU has no members' axis: plain products have less overhead than batched
    ones.
    """

    def __init__(self, bank: MLPBank, batch: int) -> None:
        rows, shapes, matrices = bank.rows, bank.shapes, bank.matrices
        self.flat = len(rows) == 1 and not rows.is_cuda and bank.parts == 1
        self.product = torch.mm if self.flat else torch.bmm
        inputs: list[Tensor] = []
        outputs: list[Tensor] = []
        for (width, _), (_, columns) in pairwise(shapes):
            signal = rows.new_zeros(len(rows), batch, columns)
            signal[:, :, -1] = 1
            inputs.append(signal)
            outputs.append(signal[:, :, :width])
        self.predicted = rows.new_empty(len(rows), batch, shapes[-1][0])
        grads = [rows.new_zeros(len(rows), batch, width) for width, _ in shapes]
        self.grad = grads[-1]
        self.error_row = self.predicted.flatten(1)[:, None]  # once the targets are subtracted
        self.grad_column = self.grad.flatten(1)[:, :, None]
        self.dot = rows.new_empty(len(rows), 1, 1)
        self.dots = self.dot[:, 0, 0]
        widths = [0] + [width for width, _ in shapes[:-1]]  # without the constant's column
        inner = [matrix[:, :, :width] for matrix, width in zip(matrices, widths, strict=True)]
        self.inputs = self._views(inputs)
        self.outputs = self._views([*outputs, self.predicted])
        self.grads = self._views(grads)
        self.transposed_grads = [grad.mT for grad in self.grads]
        self.transposed_weights = [matrix.mT for matrix in self._views(matrices)]
        self.inner_weights = self._views(inner)
        self.weight_grads = self._views(bank.weight_grads)
        # By layer: weights, outputs and the next layer's inputs; then, from the last layer on, what
        # the gradients in the weights and in the outputs below are computed from and written to.
        self.forward = list(zip(self.transposed_weights, self.outputs, self.inputs, strict=False))
        self.backward = [
            (
                self.transposed_grads[layer],
                self.grads[layer],
                self.inputs[layer - 1],
                self.weight_grads[layer],
                self.inner_weights[layer],
                self.grads[layer - 1],
                self.outputs[layer - 1],
            )
            for layer in range(len(shapes) - 1, 0, -1)
        ]
        self.long = [matrix.mT.unflatten(0, (bank.parts, -1)) for matrix in matrices[0]]
        self.partial = rows.new_empty(bank.parts, batch, shapes[0][0])

    def first(self, inputs: Tensor) -> Tensor:
        """Write and return the first layer's sums for inputs (members, batch, codes)."""
        for member, matrix in enumerate(self.long):
            parts = inputs[member].unflatten(1, (len(matrix), -1)).transpose(0, 1)
            torch.sum(torch.bmm(parts, matrix, out=self.partial), 0, out=self.outputs[0][member])
        return self.outputs[0]

    def _views(self, tensors: list[Tensor]) -> list[Tensor]:
        return [tensor[0] for tensor in tensors] if self.flat else tensors


class _BankLoss:
    """The members' losses and their gradients; code losses of all members at once."""

    def __init__(self, losses: Sequence[Loss], sizes: Sequence[int], width: int) -> None:
        self.losses = losses
        self.sizes = sizes
        self.width = width
        codes = [loss for loss in losses if isinstance(loss, CodeLoss)]
        self.squares = len(codes) == len(losses)
        if self.squares:
            self.weights = codes[0].weights.new_zeros(len(losses), 1, width)
            for row, loss in zip(self.weights, codes, strict=True):
                row[:, : len(loss.weights)] = loss.weights
        self._scaled: dict[int, Tensor] = {}

    def scaled(self, batch: int) -> Tensor:
        """Return the weights (members, 1, codes) in the gradient of the mean over a batch."""
        if batch not in self._scaled:
            self._scaled[batch] = self.weights * (2 / batch)
        return self._scaled[batch]

    def stack(self, targets: Sequence[Tensor], scratch: Scratch) -> Tensor:
        if not self.squares:
            return targets[0][None] if len(targets) == 1 else torch.stack(list(targets))
        stacked = scratch.zeros(len(targets), len(targets[0]), self.width, like=targets[0])
        for row, target in zip(stacked, targets, strict=True):
            row[:, : target.shape[1]] = target
        return stacked

    def __call__(self, workspace: _Workspace, targets: Tensor, total: Tensor) -> None:
        """Write the gradients in the predicted codes; add the losses, times the batch, to `total`.

        The predicted codes may be overwritten.
        """
        predicted, grad = workspace.predicted, workspace.grad
        batch = predicted.shape[1]
        if self.squares:
            torch.mul(predicted.sub_(targets), self.scaled(batch), out=grad)
            torch.bmm(workspace.error_row, workspace.grad_column, out=workspace.dot)
            total.add_(workspace.dots, alpha=0.5 * batch)
            return
        for member, (loss, size) in enumerate(zip(self.losses, self.sizes, strict=True)):
            value, own = value_and_grad(loss, predicted[member, :, :size], targets[member])
            grad[member, :, :size] = own
            total[member].add_(value, alpha=batch)


def value_and_grad(loss: Loss, predicted: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return a loss and its gradient in `predicted`: the loss's own, or autograd's."""
    if hasattr(loss, "value_and_grad"):
        return loss.value_and_grad(predicted, targets)
    with torch.enable_grad():
        leaf = predicted.detach().requires_grad_()
        value = loss(leaf, targets)
        (grad,) = torch.autograd.grad(value, leaf)
    return value.detach(), grad


def _padded(width: int, unit: int = _ALIGNED) -> int:
    """Return the width of a layer's input with its constant, rounded up to whole units."""
    return -(-(width + 1) // unit) * unit


def _parts(width: int, like: Tensor) -> int:
    """Return in how many parts the products with inputs of a width are taken."""
    return width // _PART if like.is_cuda and width >= _LONG else 1
