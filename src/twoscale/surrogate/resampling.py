"""Fields on another grid than the one a surrogate was fitted on: interpolated in and out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.networks.resample import interpolate_cubic, resample

Predict = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Resampling:
    """The way from given grids to those of a fitted surrogate, and back.

    Fields come in by linear interpolation, which stays between the values of neighbouring nodes:
    a positive coefficient stays positive. Predictions go out by cubic interpolation, because
    solutions are smooth. Where nodes of both grids coincide the values are taken as they are.

    >>> spaces = (Space(Grid((9, 9))), Space(Grid((9, 9))))
    >>> Resampling(spaces, (Grid((17, 17)), Grid((17, 17)))).changes
    True
    """

    fitted: tuple[Space, Space]
    given: tuple[Grid, Grid]

    @classmethod
    def of_inputs(cls, fitted: tuple[Space, Space], given: Grid) -> Resampling:
        """Return the way of inputs whose outputs are not known.

        Predictions are wanted on the inputs' grid if both were fitted on one grid, otherwise on the
        grid that outputs were fitted on.
        """
        inputs, outputs = (space.grid for space in fitted)
        return cls(fitted, (given, given if inputs == outputs else outputs))

    def check(self) -> Resampling:
        """Return this, or raise if a line would become an image or the other way round."""
        for name, space, grid in zip(("input", "output"), self.fitted, self.given, strict=True):
            pairs = zip(space.grid.shape, grid.shape, strict=True)
            if any((one == 1) != (other == 1) for one, other in pairs):
                raise TwoscaleError(
                    f"this surrogate was fitted on {name}s of {space.grid} nodes, these have "
                    f"{grid}: fields on a line and images are not interpolated into each other"
                )
        return self

    @property
    def changes(self) -> bool:
        """Say whether any field is interpolated."""
        return any(
            space.grid.shape != grid.shape
            for space, grid in zip(self.fitted, self.given, strict=True)
        )

    def enter(self, inputs: Tensor) -> Tensor:
        """Return inputs (batch, channels, h, w) of the given grid on the fitted one."""
        grid = self.fitted[0].grid
        return resample(inputs, *grid.plane)

    def leave(self, outputs: Tensor) -> Tensor:
        """Return outputs (batch, channels, h, w) of the fitted grid on the given one."""
        return interpolate_cubic(
            outputs, self.given[1].plane.shape, self.fitted[1].grid.plane.periodic
        )

    def back(self, outputs: Tensor) -> Tensor:
        """Return outputs of the given grid on the fitted one."""
        grid = self.fitted[1].grid
        return interpolate_cubic(outputs, *grid.plane)

    def predict(self, predict: Predict) -> Predict:
        """Return a prediction from given grid to given grid."""
        return lambda fields: self.leave(predict(self.enter(fields)))

    @property
    def record(self) -> dict[str, Any]:
        """Return the grids, for the metrics: [height, width] of inputs and outputs."""
        given = [list(grid.shape) for grid in self.given]
        fitted = [list(space.grid.shape) for space in self.fitted]
        return {
            "resampled_from": {"input": given[0], "output": given[1]},
            "resampled_to": {"input": fitted[0], "output": fitted[1]},
        }


def on_grid(space: Space, grid: Grid) -> Space:
    """Return a space on another grid that wraps along the same axes."""
    return replace(space, domain=Grid(grid.shape, periodic=space.grid.periodic))
