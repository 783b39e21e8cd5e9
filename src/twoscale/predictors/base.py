"""Maps from input code to output code, fitted on pairs of codes: the contract, and the network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.fields.symmetries import IDENTITY, Group
from twoscale.networks import MLP
from twoscale.representation import Representation
from twoscale.representation.geometry import decoder_isometry
from twoscale.training import Pairs, Plan, Task
from twoscale.training.losses import CodeLoss, code_weights


@dataclass(frozen=True)
class ImagePairs(Pairs):
    """Codes of all samples' images under the group's first symmetry, then the second, and so on.

    For a predictor that reads fields, inputs are those of the samples only, without their images.
    """

    group: Group = IDENTITY


class CodePredictor(nn.Module, ABC):
    """A map from codes (batch, input code) to codes (batch, output code).

    With `nearest` it learns the codes whose fields are nearest to the true ones, not those by
    `encode`. `chosen` tells what a fit has found out by itself, to be read by people.
    """

    closed_form = False  # whether `prepare` leaves nothing to be trained
    reads_fields = False  # whether its input is the field itself: its images are made as needed

    def __init__(self, *, nearest: bool = False) -> None:
        super().__init__()
        self.nearest = nearest
        self.chosen: dict[str, Any] = {}

    def attach(self, decoder: Representation) -> None:
        """Take notice of the representation whose codes are to be predicted."""

    @abstractmethod
    def prepare(
        self, training: ImagePairs, validation: Pairs, decoder: Representation, seed: int
    ) -> Task | None:
        """Fit what has a closed form; return what is left to be trained, if anything is.

        The task's network is this predictor's from now on. `decoder` turns codes into fields.
        """

    def complete(self) -> None:
        """Do what comes after the training."""

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from `tensors`, named as in `state_dict`."""

    @property
    def trained(self) -> nn.Module | None:
        """Return the network whose weights training changes, if it has such weights."""
        return None

    @abstractmethod
    def forward(self, codes: Tensor) -> Tensor: ...


class NetworkPredictor(CodePredictor):
    """A predictor that is one MLP, however it came by its weights."""

    def __init__(self, *, hidden: tuple[int, ...] = (), nearest: bool = False) -> None:
        super().__init__(nearest=nearest)
        self.hidden = hidden
        self.network: MLP | None = None

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.network = shaped_like(tensors, self.hidden)
        load_weights(self, tensors)
        return self

    @property
    def trained(self) -> MLP:
        assert self.network is not None
        return self.network

    def forward(self, codes: Tensor) -> Tensor:
        return self.trained(codes)


class MLPPredictor(NetworkPredictor):
    """The paper's latent network: an MLP trained on a weighting of the squared code errors."""

    def __init__(self, *, hidden: tuple[int, ...], objective: str, plan: Plan) -> None:
        super().__init__(hidden=hidden, nearest=objective == "field")
        self.objective = objective
        self.plan = plan
        self._back: Tensor | None = None  # from the coordinates of the training to codes

    def prepare(
        self, training: Pairs, validation: Pairs, decoder: Representation, seed: int
    ) -> Task:
        blocks = decoder.block_sizes
        if self.objective == "field":
            training, validation = self._in_coordinates(training, validation, decoder)
            blocks = [training.targets.shape[1]]
        sizes = (training.inputs.shape[1], *self.hidden, training.targets.shape[1])
        self.network = MLP(sizes, seed=seed).to(training.inputs.device)
        variance = training.targets.var(0, unbiased=False)
        loss = CodeLoss(code_weights(self.objective, blocks, variance))
        return Task(self.network, training, validation, loss, self.plan, seed)

    def _in_coordinates(
        self, training: Pairs, validation: Pairs, decoder: Representation
    ) -> tuple[Pairs, Pairs]:
        """Return the targets as coordinates whose distances are those of fields.

        One factor for all makes their mean square one: the loss is then the mean squared error of
        the decoded field, relative to the spread of the training fields. Where they have none,
        codes are as good.
        """
        isometry = decoder_isometry(decoder)
        coordinates = training.targets.double() @ isometry.forth
        if not bool(coordinates.any()):
            return training, validation
        spread = coordinates.square().mean().sqrt()
        forth = isometry.forth / spread
        self._back = isometry.back * spread

        def turned(pairs: Pairs) -> Pairs:
            return Pairs(pairs.inputs, (pairs.targets.double() @ forth).to(pairs.targets.dtype))

        return turned(training), turned(validation)

    def complete(self) -> None:
        """Let the last layer give codes, whatever the coordinates of the training were."""
        if self._back is None:
            return
        self.network = self.trained.followed_by(self._back)
        self._back = None


def shaped_like(tensors: Mapping[str, Tensor], hidden: tuple[int, ...]) -> MLP:
    """Return a network with these hidden layers that takes the weights `network.*`."""
    # By name: files hold tensors in any order, and the hidden layers are the settings'.
    first = tensors.get("network.0.weight")
    last = tensors.get(f"network.{2 * len(hidden)}.weight")
    ends = (1, 1) if first is None or last is None else (first.shape[-1], len(last))
    sizes = (ends[0], *hidden, ends[1])
    for place, shape in enumerate(pairwise(sizes)):  # before anything is allocated
        found = tensors.get(f"network.{2 * place}.weight")
        if found is None or found.shape != shape[::-1] or not found.numel():
            raise TwoscaleError("the weights do not fit the model: the artifact is damaged")
    return MLP(sizes)


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load a state dict, reporting a mismatch as a damaged artifact."""
    try:
        module.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise TwoscaleError(f"the weights do not fit the model: {error}".split("\n")[0]) from error


def check_weights(module: nn.Module) -> None:
    """Raise if a fit has left any number that is NaN or infinite."""
    if name := _not_finite(module):
        raise TwoscaleError(
            f"the fit gave {name} values that are NaN or infinite: take a larger ridge (none "
            "chooses one) if it is a closed form, a smaller learning_rate if it was trained"
        )


def check_stored_weights(module: nn.Module) -> None:
    """Raise if any number that was read from an artifact is NaN or infinite."""
    if name := _not_finite(module):
        raise TwoscaleError(f"the weights {name} are NaN or infinite: the artifact is damaged")


def _not_finite(module: nn.Module) -> str | None:
    """Return the name of the first tensor with a value that is NaN or infinite."""
    values = module.state_dict().items()
    return next((name for name, value in values if not bool(value.isfinite().all())), None)
