"""The convolutional network that reads the input field from fine to coarse and back."""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Space
from twoscale.networks import FieldEncoder
from twoscale.parts import register
from twoscale.predictors.field_predictor import FieldPredictor
from twoscale.training import Plan


@register
class Encoder(FieldPredictor):
    """A convolutional network that sees the whole input field, trained on codes.

    `width` is the number of channels on its finest level, `blocks` the number of residual blocks on
    each level, `cut` the side of the squares of nodes it starts from (chosen by the grid, if none
    is given). The rate rises during the first tenth of the training and then falls to zero; without
    a `learning_rate` and `clip` (the largest norm of a step's gradients) those that suit the
    `optimiser`, muon or adam, are taken. With symmetries it learns from the images of the training
    fields, in each epoch as many as there are fields.
    """

    name = "encoder"
    title = "convolutional network"
    numbered = True

    optimisers: ClassVar[dict[str, tuple[float, float | None]]] = {
        "muon": (4e-3, None),
        "adam": (1e-3, 0.1),
    }

    def __init__(
        self,
        *,
        objective: str = "field",
        width: int = 64,
        blocks: int = 2,
        cut: int | None = None,
        epochs: int = 30,
        batch_size: int = 32,
        evaluation_batch: int = 64,
        optimiser: str = "muon",
        learning_rate: float | None = None,
        clip: float | None = None,
        weight_decay: float = 0.0,
    ) -> None:
        if optimiser not in self.optimisers:
            known = ", ".join(self.optimisers)
            raise TwoscaleError(f"no optimiser is called '{optimiser}': known are {known}")
        rate, norm = self.optimisers[optimiser]
        plan = Plan(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate or rate,
            weight_decay=weight_decay,
            patience=1,
            evaluation_batch=evaluation_batch,
            on_fields=True,
            one_cycle=True,
            clip=clip or norm,
            optimiser=optimiser,
        )
        super().__init__(objective=objective, plan=plan)
        self.width = width
        self.blocks = blocks
        self.cut = cut

    def make_network(
        self, shape: tuple[int, int], inputs: Space, outputs: Space, seed: int
    ) -> nn.Module:
        return FieldEncoder(
            shape,
            channels_in=inputs.channels,
            channels_out=outputs.channels,
            width=self.width,
            blocks=self.blocks,
            cut=self.cut,
            periodic=outputs.grid.periodic,
            seed=seed,
        )
