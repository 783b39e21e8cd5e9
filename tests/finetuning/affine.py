"""A small affine decoder of one or more channels, and fields beside it that it cannot express."""

import copy

import torch
from torch import nn

from twoscale.domain.grid import Grid
from twoscale.math.measures import Compared

GRID = Grid((12, 16), periodic=(True, False))
SCALES = (1.0, 1e6, 1e-3)


class AffineDecoder(nn.Module):
    """Random smooth fields plus a mean; channels of very different sizes."""

    compresses = True

    def __init__(self, channels, *, code_size=7, grid=GRID):
        super().__init__()
        generator = torch.Generator().manual_seed(channels)
        shape = (code_size + 1, channels, *grid.shape)
        basis = torch.randn(shape, dtype=torch.float64, generator=generator).cumsum(3)
        scales = torch.tensor(SCALES[:channels], dtype=torch.float64)[:, None, None]
        self.register_buffer("unit", 4.0 ** scales.log2().div(2).round())
        self.register_buffer("basis", basis[:-1] * scales)
        self.register_buffer("mean", 3 * basis[-1] * scales)
        inverse = (self.basis / self.unit).flatten(1).pinverse()
        self.register_buffer("inverse", inverse)
        self.code_size = code_size
        self.layout = grid.partition((2, 2))

    @property
    def dtype(self):
        return self.basis.dtype

    def encode(self, fields):
        return ((fields.to(self.dtype) - self.mean) / self.unit).flatten(1) @ self.inverse

    def decode(self, codes):
        return self.mean + torch.einsum("bk,kchw->bchw", codes.to(self.dtype), self.basis)


def make_batch(decoder, samples=9, input_shape=(1, 12, 16)):
    """True fields near the decoder's range, inputs, and what the truth's codes decode to."""
    generator = torch.Generator().manual_seed(5)
    options = {"dtype": torch.float64, "generator": generator}
    codes = torch.randn(samples, decoder.code_size, **options)
    noise = torch.randn(samples, *decoder.mean.shape, **options)
    exact = copy.deepcopy(decoder).double()
    truth = (exact.decode(codes) + 0.3 * exact.unit * noise).to(decoder.dtype)
    inputs = torch.rand(samples, *input_shape, **options).to(decoder.dtype)
    return Compared(decoder.decode(decoder.encode(truth)), truth, inputs)


class Coupled:
    """A problem of two linear equations in all channels, with a constant coefficient or not.

    The residual is (batch, 2, height, width), or (batch, height, width) with one equation.
    """

    name = "coupled"

    def __init__(self, *, fixed=True, equations=2):
        self.fixed_operator = fixed
        self.equations = equations

    def residual(self, inputs, outputs):
        total = outputs.sum(1)
        rows = total.diff(dim=1)[:, :, 1:] * 20 - inputs[:, 0, 1:, 1:]
        columns = total.diff(dim=2)[:, 1:] * 30
        return rows if self.equations == 1 else torch.stack([rows, columns], 1)

    def coefficient(self, inputs):
        return torch.ones_like(inputs) if self.fixed_operator else inputs + 0.5
