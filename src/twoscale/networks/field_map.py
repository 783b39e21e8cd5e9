"""A network between fields on different grids."""

from __future__ import annotations

from torch import Tensor, nn

from twoscale.networks.resample import resample


def work_shape(shape_in: tuple[int, int], shape_out: tuple[int, int]) -> tuple[int, int]:
    """Return the grid on which a network between two grids works: the larger side of each axis.

    >>> work_shape((1, 1), (16, 24))
    (16, 24)
    """
    return max(shape_in[0], shape_out[0]), max(shape_in[1], shape_out[1])


class FieldMap(nn.Module):
    """Maps fields (batch, channels in, *shape_in) to (batch, channels out, *shape_out).

    The input is interpolated to the work grid, which has the larger side of each axis; the network
    works there; its result is interpolated to the output grid. Between equal grids the network
    works alone. An input of a single node (parameters only) becomes a constant field.

    network: a map of fields on the grid `work_shape(shape_in, shape_out)`.
    shape_in, shape_out: nodes of the grids (height, width).
    periodic_in, periodic_out: whether their rows and columns wrap.
    """

    def __init__(
        self,
        network: nn.Module,
        shape_in: tuple[int, int],
        shape_out: tuple[int, int],
        periodic_in: tuple[bool, bool] = (False, False),
        periodic_out: tuple[bool, bool] = (False, False),
    ) -> None:
        super().__init__()
        self.network = network
        self.shape_out = shape_out
        self.work_shape = work_shape(shape_in, shape_out)
        self.periodic_in = periodic_in
        self.periodic_out = periodic_out

    def forward(self, fields: Tensor) -> Tensor:
        worked = self.network(resample(fields, self.work_shape, self.periodic_in))
        return resample(worked, self.shape_out, self.periodic_out)
