"""The field networks the paper compares with: the Fourier neural operator and RefinementNet."""

from __future__ import annotations

from torch import nn

from twoscale.fields.grid import Space
from twoscale.networks import FNO2d, RefinementNet
from twoscale.parts import register
from twoscale.predictors.field_predictor import FieldPredictor
from twoscale.training import Plan


@register
class FNO(FieldPredictor):
    """The Fourier neural operator (Li et al., 2021), trained on the mean squared error.

    `layers` Fourier layers of `width` channels keep `modes` frequencies per direction; ordinary
    axes are padded by `padding` nodes. The rate is halved after `patience` epochs without a better
    validation loss, and training ends after `early_stop` such epochs.
    """

    name = "fno"
    title = "Fourier neural operator"

    def __init__(
        self,
        *,
        objective: str = "vector",
        layers: int = 4,
        width: int = 32,
        modes: int = 12,
        padding: int = 8,
        epochs: int = 100,
        batch_size: int = 16,
        evaluation_batch: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        patience: int = 5,
        early_stop: int | None = 15,
    ) -> None:
        plan = Plan(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            patience=patience,
            evaluation_batch=evaluation_batch,
            early_stop=early_stop,
            on_fields=True,
            tuned=True,
        )
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
            periodic=outputs.grid.periodic,
            seed=seed,
        )


@register
class Refinement(FieldPredictor):
    """The paper's RefinementNet: four 5x5 convolutions from a predicted field to a better one.

    It follows a surrogate as its `correction`; `channels` are those of its hidden layers.
    """

    name = "refinement-net"
    title = "RefinementNet"

    def __init__(
        self,
        *,
        objective: str = "vector",
        channels: int = 32,
        epochs: int = 25,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        patience: int = 10,
    ) -> None:
        plan = Plan(
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            patience=patience,
            evaluation_batch=64,
            on_fields=True,
            tuned=True,
        )
        super().__init__(objective=objective, plan=plan)
        self.channels = channels

    def make_network(
        self, shape: tuple[int, int], inputs: Space, outputs: Space, seed: int
    ) -> nn.Module:
        return RefinementNet(
            outputs.channels, channels=self.channels, periodic=outputs.grid.periodic, seed=seed
        )
