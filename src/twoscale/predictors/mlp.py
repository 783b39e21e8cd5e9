"""The paper's network on codes, alone and for the errors of the affine map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Self

import torch
from torch import Tensor, nn

from twoscale.networks import DenseNetwork
from twoscale.predictors.affine import Affine, FieldErrors, NetworkPredictor, Ridge, affine_work
from twoscale.predictors.base import (
    BatchSize,
    CodePredictor,
    Epochs,
    LearningRate,
    Objective,
    Pack,
    Patience,
    PredictorCost,
    Sizes,
    WeightDecay,
    plan_of,
)
from twoscale.representation import Representation
from twoscale.representation.base import subset
from twoscale.representation.geometry import decoder_isometry
from twoscale.settings import defaults_of, settings_of, whole
from twoscale.training import CodePairs, Task
from twoscale.training.task import CodeLoss, code_weights

HiddenLayers = Annotated[int, whole("hidden layers of the network", 0, 1000)]
HiddenWidth = Annotated[int, whole("width of the hidden layers")]

SEARCH_EPOCHS = {"epochs": 100}
"""Settings of networks on codes in a search."""

_STEP = 2e7  # overhead of one step of a small network, in multiplications
_GAIN = 1e-3  # share of the affine map's error that a network must remove to be kept


class MLP(NetworkPredictor):
    """The paper's network on codes: fully connected, ReLU, trained by Adam.

    The weights of the best validation loss are kept.

    Parameters
    ----------
    objective
        What is minimised, a weighting of the squared code errors. "vector": the mean over all
        coordinates. "block-balanced" (default): the mean within each stage of the output
        representation, then over stages. "score-normalised": the same, each coordinate divided by
        its variance. "field": the squared error of the decoded field.
    hidden_layers, hidden_width
        Number of hidden layers, 3 by default, and units in each, 128 by default.
    epochs
        Passes over the training samples, 500 by default.
    batch_size
        Samples per step, 32 by default.
    learning_rate
        Adam's first rate, 1e-3 by default.
    weight_decay
        L2 weight decay, 1e-4 by default.
    patience
        The rate is halved after so many epochs without a better validation loss, 30 by default.

    Attributes
    ----------
    network
        The fitted `DenseNetwork`, from input codes to output codes.

    Examples
    --------
    >>> MLP(epochs=100)
    MLP(epochs=100)
    """

    name = "mlp"
    title = "the paper's network"
    trains_together = True
    cost = PredictorCost(lambda sizes: network_work(sizes), SEARCH_EPOCHS)  # only if it is named

    def __init__(
        self,
        *,
        objective: Objective = "block-balanced",
        hidden_layers: HiddenLayers = 3,
        hidden_width: HiddenWidth = 128,
        epochs: Epochs = 500,
        batch_size: BatchSize = 32,
        learning_rate: LearningRate = 1e-3,
        weight_decay: WeightDecay = 1e-4,
        patience: Patience = 30,
    ) -> None:
        super().__init__(hidden=(hidden_width,) * hidden_layers, objective=objective)
        self.plan = plan_of(locals(), evaluation_batch=8192, small=True)
        self._from_coordinates: Tensor | None = (
            None  # (coordinates, code): undoes `_in_coordinates`
        )

    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> Task:
        blocks = decoder.block_sizes
        if self.objective == "field":
            training, validation = self._in_coordinates(training, validation, decoder)
            blocks = [training.targets.shape[1]]
        sizes = (training.inputs.shape[1], *self.hidden, training.targets.shape[1])
        self.network = DenseNetwork(sizes, seed=seed).to(training.inputs.device)
        variance = training.targets.var(0, unbiased=False)
        loss = CodeLoss(code_weights(self.objective, blocks, variance))
        return Task(self.network, training, validation, loss, self.plan, seed)

    def _in_coordinates(
        self, training: CodePairs, validation: CodePairs, decoder: Representation
    ) -> tuple[CodePairs, CodePairs]:
        """Return the targets in coordinates whose distances are those of decoded fields.

        They are divided by their root mean square. The loss is then the mean squared error of the
        decoded field, relative to the spread of the training fields. Without any spread the codes
        are returned as they are.
        """
        isometry = decoder_isometry(decoder)

        def size(part: slice) -> Tensor:
            return (training.targets[part].double() @ isometry.to_coordinates).square().mean()

        spread = training.mean(size).sqrt()
        if not bool(spread > 0):
            return training, validation
        to_coordinates = isometry.to_coordinates / spread
        self._from_coordinates = isometry.from_coordinates * spread

        def converted(pairs: CodePairs) -> CodePairs:
            count = to_coordinates.shape[1]
            targets = pairs.scratch.empty(len(pairs), count, like=pairs.targets)
            for part in pairs.parts(count):
                targets[part] = pairs.targets[part].double() @ to_coordinates
            return replace(pairs, targets=targets)

        return converted(training), converted(validation)

    def complete(self) -> None:
        """Multiply the last layer by the matrix from training coordinates to codes."""
        if self._from_coordinates is None:
            return
        self.network = self.trained.followed_by(self._from_coordinates)
        self._from_coordinates = None


class AffineMLP(CodePredictor):
    """The affine map, plus a network trained on its errors.

    The network is dropped (its last layer is set to zero) unless it lowers the error of the decoded
    validation fields by at least 0.1 %.

    Parameters
    ----------
    ridge
        Strength of the affine map's regularisation, as in `Affine`.
    objective, hidden_layers, hidden_width
        Of the network, as in `MLP`.
    epochs, batch_size, learning_rate, weight_decay, patience
        Of its training, as in `MLP`.

    Attributes
    ----------
    affine, correction
        The fitted `Affine` and `MLP`; the prediction is their sum.
    chosen
        "affine_ridge", "affine_validation_error", "correction_kept" and "validation_error".

    Examples
    --------
    >>> AffineMLP(hidden_width=64)
    AffineMLP(hidden_width=64)
    """

    name = "affine-mlp"
    title = "ridge regression, and a network for its errors"
    trains_together = True
    cost = PredictorCost(
        lambda sizes: affine_work(sizes) + network_work(sizes), SEARCH_EPOCHS, after=("affine",)
    )

    def __init__(
        self,
        *,
        ridge: Ridge = None,
        objective: Objective = "block-balanced",
        hidden_layers: HiddenLayers = 3,
        hidden_width: HiddenWidth = 128,
        epochs: Epochs = 500,
        batch_size: BatchSize = 32,
        learning_rate: LearningRate = 1e-3,
        weight_decay: WeightDecay = 1e-4,
        patience: Patience = 30,
    ) -> None:
        super().__init__(objective=objective)
        self.affine = Affine(ridge=ridge, objective=objective)
        own = locals()
        self.correction = MLP(**{name: own[name] for name in settings_of(MLP)})
        self._pending: tuple[float, CodePairs, FieldErrors] | None = None

    @torch.no_grad()
    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> Task:
        self.affine.prepare(training, validation, decoder, seed)
        self.chosen = {f"affine_{name}": value for name, value in self.affine.chosen.items()}
        rest, held_out = self._errors(training), self._errors(validation)
        # Networks train best on targets of size one.
        square = rest.mean(lambda part: rest.targets[part].double().square().mean())
        scale = float(square.sqrt()) or 1.0
        self._pending = (scale, validation, FieldErrors.of(decoder, validation))
        for pairs in (rest, held_out):
            pairs.targets.div_(scale)
        return self.correction.prepare(rest, held_out, decoder, seed)

    def _errors(self, pairs: CodePairs) -> CodePairs:
        """Return the inputs with what the affine map misses of the targets."""
        rest = pairs.scratch.empty(*pairs.targets.shape, like=pairs.targets)
        for part in pairs.parts():
            torch.sub(pairs.targets[part], self.affine(pairs.inputs[part]), out=rest[part])
        return replace(pairs, targets=rest)

    @torch.no_grad()
    def complete(self) -> None:
        assert self._pending is not None
        scale, validation, errors = self._pending
        self._pending = None
        self.correction.complete()
        last = self.correction.trained.linear[-1]
        for value in last.parameters():
            value.mul_(scale)
        error = errors.relative(self, validation)
        kept = error < (1 - _GAIN) * self.chosen["affine_validation_error"]
        if not kept:
            error = self.chosen["affine_validation_error"]
            for value in last.parameters():
                value.zero_()
        self.chosen |= {"correction_kept": kept, "validation_error": error}

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.affine.restore(subset(tensors, "affine"))
        self.correction.restore(subset(tensors, "correction"))
        return self

    @property
    def trained(self) -> nn.Module:
        return self

    def for_page(self, pack: Pack) -> dict[str, Any]:
        kept = self.chosen.get("correction_kept", True)
        terms = [self.affine, self.correction] if kept else [self.affine]
        return {"kind": "sum", "networks": [one.trained.for_page(pack) for one in terms]}

    def forward(self, codes: Tensor) -> Tensor:
        return self.affine(codes) + self.correction(codes)


def network_work(sizes: Sizes) -> float:
    """Return the multiplications of a training in a search, with the usual network."""
    usual = defaults_of(MLP)
    batch, width = usual["batch_size"], usual["hidden_width"]
    inside = (usual["hidden_layers"] - 1) * width
    steps = SEARCH_EPOCHS["epochs"] * sizes.images * sizes.samples / batch
    return steps * (_STEP + 6.0 * batch * width * (sizes.input_code + inside + sizes.output_code))
