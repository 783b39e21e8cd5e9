"""The convolutional network that reads the input field from fine to coarse and back."""

from __future__ import annotations

from typing import ClassVar

from torch import nn

from twoscale.domain.space import Space
from twoscale.errors import unknown_name
from twoscale.networks import FieldEncoder
from twoscale.parts import register
from twoscale.predictors.field_predictor import FieldPredictor
from twoscale.training import Plan


@register
class Encoder(FieldPredictor):
    """A convolutional network that reads the input field and proposes the output field.

    The proposal is encoded by the output representation; the loss is taken on codes. With
    symmetries each epoch draws as many images as there are training fields.

    Parameters
    ----------
    objective
        "field" (default): the mean relative L2 error of the decoded field. Others as in `MLP`.
    width
        Channels of the finest level, 64 by default; coarser levels have up to four times as many.
    blocks
        Residual blocks per level on the way down, and again on the way up; 2 by default.
    cycles
        How often the features go down and up, 1 by default. Each cycle has weights of its own; a
        second one costs as much time as the first and makes errors smaller by a tenth to a fifth.
    members
        Networks with first weights of their own whose proposals are averaged, 1 by default.
    cut
        Nodes along a side of the cells of the finest level. By default (None) the power of two
        that leaves about 32 cells per direction.
    epochs
        Passes over the training fields, 30 by default.
    batch_size, evaluation_batch
        Fields per step of the training, 32 by default, and of the validation, 64 by default.
    optimiser
        "muon" (default) or "adam".
    learning_rate
        The highest rate: it rises during the first tenth of the steps, then falls to zero. By
        default (None) 4e-3 with muon and 1e-3 with adam.
    clip
        Largest norm of one step's gradients. By default (None) no limit with muon, 0.1 with adam;
        a large number is no limit.
    weight_decay
        0 by default.

    Attributes
    ----------
    network
        The fitted `FieldMap` around a `FieldEncoder`; of several members, their `Committee`.
    mean, spread
        The proposal is mean + spread * network output; (channels, height, width) both.

    Examples
    --------
    >>> Encoder(width=32, epochs=100)
    Encoder(width=32, epochs=100)
    """

    name = "encoder"
    title = "convolutional network"
    draws_images = True

    optimisers: ClassVar[dict[str, tuple[float, float | None]]] = {
        "muon": (4e-3, None),
        "adam": (1e-3, 0.1),
    }
    """The default learning rate and clip of each optimiser."""

    def __init__(
        self,
        *,
        objective: str = "field",
        width: int = 64,
        blocks: int = 2,
        cycles: int = 1,
        members: int = 1,
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
            raise unknown_name("optimiser", optimiser, self.optimisers)
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
        super().__init__(objective=objective, plan=plan, members=members)
        self.width = width
        self.blocks = blocks
        self.cycles = cycles
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
            cycles=self.cycles,
            cut=self.cut,
            periodic=outputs.grid.plane.periodic,
            seed=seed,
        )
