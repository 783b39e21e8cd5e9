"""What every predictor promises: a map from input code to output code, fitted on pairs of codes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.fields.symmetries import IDENTITY, Group
from twoscale.parts import Part
from twoscale.representation import Representation
from twoscale.training import Pairs, Task
from twoscale.training.losses import OBJECTIVES


@dataclass(frozen=True)
class ImagePairs(Pairs):
    """Codes of all samples' images under the group's first symmetry, then the second, and so on.

    For a predictor that reads fields, inputs are those of the samples only, without their images.
    """

    group: Group = IDENTITY


class CodePredictor(Part, nn.Module, ABC):
    """A map from codes (batch, input code) to codes (batch, output code).

    `objective` says how code errors are weighed. With "field" it learns the codes whose fields are
    nearest to the true ones, not those by `encode`. `chosen` tells what a fit has found out by
    itself, for people to read.
    """

    closed_form: ClassVar[bool] = False  # whether `prepare` leaves nothing to be trained
    reads_fields: ClassVar[bool] = False  # whether its input is the field itself, not a code

    def __init__(self, *, objective: str = "block-balanced") -> None:
        super().__init__()
        if objective not in OBJECTIVES:
            raise TwoscaleError(
                f"no objective is called '{objective}': known are {', '.join(OBJECTIVES)}"
            )
        self.objective = objective
        self.chosen: dict[str, Any] = {}

    @property
    def nearest(self) -> bool:
        """Say whether it learns the codes of the nearest fields."""
        return self.objective == "field"

    def bind(self, inputs: Representation, outputs: Representation) -> None:
        """Take notice of both fitted representations, before a fit or when it is restored."""

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
