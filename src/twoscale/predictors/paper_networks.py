"""The field networks the paper compares with: the Fourier neural operator and RefinementNet."""

from __future__ import annotations

from typing import Annotated

from torch import nn

from twoscale.domain.space import Space
from twoscale.networks import FNO2d, RefinementNet
from twoscale.predictors.base import (
    BatchSize,
    Epochs,
    EvaluationBatch,
    LearningRate,
    Objective,
    Patience,
    PredictorCost,
    Probe,
    WeightDecay,
    plan_of,
)
from twoscale.predictors.field_predictor import GPU_SPEED, FieldPredictor, field_network_work
from twoscale.settings import whole


class FNO(FieldPredictor):
    """The Fourier neural operator (Li et al., 2021), from input field to output field.

    Parameters
    ----------
    objective
        "vector" (default): the mean squared error of the code; with `WholeField` outputs that of
        the normalised field. "field": the mean relative L2 error. Others as in `MLP`.
    layers, width
        Fourier layers, 4 by default, and their channels, 32 by default.
    modes
        Frequencies kept per direction, 12 by default; of a side of n nodes, padded, at most n / 2.
    padding
        Nodes of zeros added at the far edges of axes that are not periodic, 8 by default.
    epochs
        Passes over the training fields, 100 by default.
    batch_size, evaluation_batch
        Fields per step of the training, 16 by default, and of the validation, 64 by default.
    learning_rate, weight_decay
        Adam's first rate, 1e-3 by default, and L2 weight decay, 0 by default.
    patience
        The rate is halved after so many epochs without a better validation loss, 5 by default.
    early_stop
        Training ends after so many epochs without a better validation loss, 15 by default; None
        trains all epochs.

    Attributes
    ----------
    network
        The fitted `FieldMap` around an `FNO2d`.

    Examples
    --------
    >>> FNO(modes=16, batch_size=4)
    FNO(modes=16, batch_size=4)
    """

    name = "fno"
    title = "Fourier neural operator"
    cost = PredictorCost(
        field_network_work,
        after=("encoder",),
        gpu_speed=GPU_SPEED,
        probe=Probe(small={"width": 16}),
    )

    def __init__(
        self,
        *,
        objective: Objective = "vector",
        layers: Annotated[int, whole("Fourier layers", 1, 1000)] = 4,
        width: Annotated[
            int, whole("channels of the Fourier layers, or of an encoder's finest level")
        ] = 32,
        modes: Annotated[int, whole("Fourier modes kept per direction")] = 12,
        padding: Annotated[int, whole("nodes of padding at the far edges", 0)] = 8,
        epochs: Epochs = 100,
        batch_size: BatchSize = 16,
        evaluation_batch: EvaluationBatch = 64,
        learning_rate: LearningRate = 1e-3,
        weight_decay: WeightDecay = 0.0,
        patience: Patience = 5,
        early_stop: Annotated[
            int | None,
            whole(
                "epochs without a better validation loss before training ends, or none",
                schedule=True,
                passes=True,
            ),
        ] = 15,
    ) -> None:
        plan = plan_of(locals(), on_fields=True, tuned=True)
        super().__init__(objective=objective, plan=plan)
        self.sizes = {"layers": layers, "width": width, "modes": modes, "padding": padding}

    def make_network(
        self, shape: tuple[int, int], inputs: Space, outputs: Space, seed: int
    ) -> nn.Module:
        return FNO2d(
            inputs.channels,
            outputs.channels,
            **self.sizes,
            shape=shape,
            periodic=outputs.grid.plane.periodic,
            seed=seed,
        )


class Refinement(FieldPredictor):
    """The paper's RefinementNet: four 5x5 convolutions that correct a predicted field.

    It is the `correction` of a surrogate: `Surrogate("local", correction=Refinement())`.

    Parameters
    ----------
    objective
        "vector" (default): the mean squared error of the normalised field. "field": the mean
        relative L2 error. Others as in `MLP`.
    channels
        Channels between the convolutions, 32 by default.
    epochs
        Passes over the training fields, 25 by default.
    batch_size
        Fields per step, 32 by default.
    learning_rate, weight_decay
        Adam's first rate, 1e-3 by default, and L2 weight decay, 1e-4 by default.
    patience
        The rate is halved after so many epochs without a better validation loss, 10 by default.

    Attributes
    ----------
    network
        The fitted `FieldMap` around a `RefinementNet`.

    Examples
    --------
    >>> Refinement(channels=16)
    Refinement(channels=16)
    """

    name = "refinement-net"
    title = "RefinementNet"
    corrects = True

    def __init__(
        self,
        *,
        objective: Objective = "vector",
        channels: Annotated[int, whole("channels between the convolutions")] = 32,
        epochs: Epochs = 25,
        batch_size: BatchSize = 32,
        learning_rate: LearningRate = 1e-3,
        weight_decay: WeightDecay = 1e-4,
        patience: Patience = 10,
    ) -> None:
        plan = plan_of(locals(), evaluation_batch=64, on_fields=True, tuned=True)
        super().__init__(objective=objective, plan=plan)
        self.channels = channels

    def make_network(
        self, shape: tuple[int, int], inputs: Space, outputs: Space, seed: int
    ) -> nn.Module:
        return RefinementNet(
            outputs.channels,
            channels=self.channels,
            periodic=outputs.grid.plane.periodic,
            seed=seed,
        )
