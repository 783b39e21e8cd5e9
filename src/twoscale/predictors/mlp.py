"""The paper's network on codes, and the base of predictors that are one dense network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Self

from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.networks import DenseNetwork
from twoscale.predictors.base import (
    BatchSize,
    CodePredictor,
    Epochs,
    LearningRate,
    Objective,
    Patience,
    WeightDecay,
    load_weights,
)
from twoscale.predictors.cost import PredictorCost, Sizes
from twoscale.representation import Representation
from twoscale.representation.geometry import decoder_isometry
from twoscale.settings import defaults_of, whole
from twoscale.training import CodePairs, Plan, Task
from twoscale.training.task import CodeLoss, code_weights

HiddenLayers = Annotated[int, whole("hidden layers of the network", 0, 1000)]
HiddenWidth = Annotated[int, whole("width of the hidden layers")]

SEARCH_EPOCHS = {"epochs": 100}
"""Settings of networks on codes in a search."""

_STEP = 2e7  # overhead of one step of a small network, in multiplications


class NetworkPredictor(CodePredictor):
    """A predictor that is one dense network, trained or in closed form."""

    def __init__(self, *, hidden: tuple[int, ...] = (), objective: str) -> None:
        super().__init__(objective=objective)
        self.hidden = hidden
        self.network: DenseNetwork | None = None

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.network = shaped_like(tensors, self.hidden)
        load_weights(self, tensors)
        return self

    @property
    def trained(self) -> DenseNetwork:
        assert self.network is not None
        return self.network

    def forward(self, codes: Tensor) -> Tensor:
        return self.trained(codes)


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
        self.plan = Plan(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            patience=patience,
            evaluation_batch=8192,
            small=True,
        )
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


def shaped_like(tensors: Mapping[str, Tensor], hidden: tuple[int, ...]) -> DenseNetwork:
    """Return a network with these hidden layers and the outer sizes of the weights `network.*`."""
    # By name: files hold tensors in any order.
    first = tensors.get("network.0.weight")
    last = tensors.get(f"network.{2 * len(hidden)}.weight")
    ends = (1, 1) if first is None or last is None else (first.shape[-1], len(last))
    sizes = (ends[0], *hidden, ends[1])
    for place, shape in enumerate(pairwise(sizes)):  # checked before anything is allocated
        found = tensors.get(f"network.{2 * place}.weight")
        if found is None or found.shape != shape[::-1] or not found.numel():
            raise TwoscaleError("the weights do not fit the model: the artifact is damaged")
    return DenseNetwork(sizes)


def network_work(sizes: Sizes) -> float:
    """Return the multiplications of a training in a search, with the usual network."""
    usual = defaults_of(MLP)
    batch, width = usual["batch_size"], usual["hidden_width"]
    inside = (usual["hidden_layers"] - 1) * width
    steps = SEARCH_EPOCHS["epochs"] * sizes.images * sizes.samples / batch
    return steps * (_STEP + 6.0 * batch * width * (sizes.input_code + inside + sizes.output_code))
