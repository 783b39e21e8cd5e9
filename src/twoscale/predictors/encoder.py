"""The convolutional network that reads the input field from fine to coarse and back."""

from __future__ import annotations

from typing import Annotated

from torch import nn

from twoscale.domain.space import Space
from twoscale.networks import FieldEncoder
from twoscale.predictors.base import (
    BatchSize,
    Epochs,
    EvaluationBatch,
    Objective,
    PredictorCost,
    Probe,
    Sizes,
    WeightDecay,
    plan_of,
)
from twoscale.predictors.field_predictor import GPU_SPEED, FieldPredictor, seen_fields
from twoscale.settings import POSITIVE, RATE, choice, real, whole

OPTIMISERS: dict[str, tuple[float, float | None]] = {"muon": (4e-3, None), "adam": (1e-3, 0.1)}
"""The default learning rate and clip of each optimiser."""

_CELL_WORK = 2000  # times the squared width: a training step on one of its cells


def _work(sizes: Sizes) -> float:
    return seen_fields(sizes) * sizes.cells * _CELL_WORK * sizes.width**2


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

    cost = PredictorCost(
        _work,
        after=("affine", "affine-mlp", "kernel"),
        gpu_speed=GPU_SPEED,
        probe=Probe(small={"width": 24, "batch_size": 16}, large={"cycles": 2}, larger_cells=True),
    )

    def __init__(
        self,
        *,
        objective: Objective = "field",
        width: Annotated[
            int, whole("channels of the Fourier layers, or of an encoder's finest level")
        ] = 64,
        blocks: Annotated[
            int, whole("residual blocks of an encoder on each level, down and up", 1, 1000)
        ] = 2,
        cycles: Annotated[
            int, whole("how often an encoder goes from fine to coarse and back", 1, 100)
        ] = 1,
        members: Annotated[
            int, whole("networks whose predictions an encoder averages", 1, 100)
        ] = 1,
        cut: Annotated[
            int | None,
            whole(
                "nodes per side of an encoder's finest cells; none: about 32 cells per direction"
            ),
        ] = None,
        epochs: Epochs = 30,
        batch_size: BatchSize = 32,
        evaluation_batch: EvaluationBatch = 64,
        optimiser: Annotated[
            str,
            choice("optimiser of an encoder; rate and clip follow from it", OPTIMISERS),
        ] = "muon",
        learning_rate: Annotated[
            float | None, real("the optimiser's highest rate; none: its default", *RATE)
        ] = None,
        clip: Annotated[
            float | None,
            real(
                "limit of the gradients' norm in one step; none: the optimiser's default",
                *POSITIVE,
            ),
        ] = None,
        weight_decay: WeightDecay = 0.0,
    ) -> None:
        rate, norm = OPTIMISERS[optimiser]
        learning_rate, clip = learning_rate or rate, clip or norm
        plan = plan_of(locals(), patience=1, on_fields=True, one_cycle=True)
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
