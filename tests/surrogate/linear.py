"""A representation that is a given matrix: what predictors are tested with."""

from __future__ import annotations

from torch import Tensor

from twoscale import Representation
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space


class LinearDecoder(Representation):
    """Fields are codes times a matrix (code, nodes), with one channel on a grid of one row."""

    def __init__(self, matrix: Tensor, block_sizes: list[int] | None = None) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)
        self.sizes = block_sizes or [len(matrix)]
        self.space = Space(Grid((1, matrix.shape[1])))

    def decode(self, codes):
        return (codes.to(self.matrix.dtype) @ self.matrix)[:, None, None]

    def encode(self, fields):
        return fields[:, 0, 0] @ self.matrix.pinverse()

    def _fit(self, source, **options):
        pass

    def restore(self, tensors, space):
        return self

    @property
    def block_sizes(self):
        return self.sizes

    @property
    def ranks(self):
        return {"linear": self.sizes}

    @property
    def explained_variance(self):
        return {"linear": 1.0}
