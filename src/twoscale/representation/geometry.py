"""Distances between decoded fields, as distances between codes; the nearest codes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.source import slices
from twoscale.representation.base import Representation
from twoscale.runtime.threads import one_thread

_UNSEEN = 1e-10  # of the largest squared length that a unit code can have as a field
_LARGEST = 30_000  # codes: their Gram matrix has 7 GB
_BASIS_FIELDS = 64  # code directions pushed through the decoder together

FieldFunction = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Isometry:
    """Coordinates y = z @ to_coordinates of codes z, with the distances of the decoded fields.

    Codes are z = y @ from_coordinates, but for directions that no decoded field shows.
    """

    to_coordinates: Tensor  # (code, coordinates), float64
    from_coordinates: Tensor  # (coordinates, code)

    @classmethod
    def of(cls, gram: Tensor) -> Isometry:
        """Return the coordinates for a decoder with this Gram matrix (code, code)."""
        with one_thread():  # on more of them nearly equal values have other vectors
            values, vectors = torch.linalg.eigh(gram.double())
        shown = values > _UNSEEN * values[-1]
        root, vectors = values[shown].sqrt(), vectors[:, shown]
        return cls(vectors * root, (vectors / root).mT)


def code_changes(
    decoder: Representation, function: FieldFunction
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield groups of unit codes, and how `function` differs between their fields and code zero's.

    For an affine function of the field that is its linear part on codes. It is a difference of
    nearly equal numbers: in double precision.
    """
    exact = copy.deepcopy(decoder).double()
    device = next(decoder.buffers()).device
    units = torch.eye(decoder.code_size, dtype=torch.float64, device=device)
    zero = function(exact.decode(torch.zeros_like(units[:1])))
    for part in slices(decoder.code_size, _BASIS_FIELDS):
        unit = units[part].clone().requires_grad_()
        yield unit, function(exact.decode(unit)) - zero


def code_gram(decoder: Representation, function: FieldFunction) -> Tensor:
    """Return G (code, code), float64: d^T G d is the squared norm of what d adds to `function`."""
    with torch.enable_grad():
        rows = [
            torch.autograd.grad(0.5 * change.square().sum(), units)[0]
            for units, change in code_changes(decoder, function)
        ]
    gram = torch.cat(rows)
    return 0.5 * (gram + gram.mT)


_REMEMBERED: dict[Representation, Isometry | None] = {}


def decoder_isometry(decoder: Representation) -> Isometry:
    """Return the coordinates for a fitted decoder; inside `one_isometry`, always the same.

    Their distances are those of decoded fields in the decoder's `unit`: no square of them leaves
    the range of single precision, however large or small the fields are.
    """
    known = _REMEMBERED.get(decoder)
    if known is None:
        if decoder.code_size > _LARGEST:
            raise TwoscaleError(
                f"an output code of {decoder.code_size} numbers is too long to be compared as "
                f"fields, which takes at most {_LARGEST}: use a representation that keeps less"
            )
        known = Isometry.of(decoder_gram(decoder))
        if decoder in _REMEMBERED:
            _REMEMBERED[decoder] = known
    return known


def decoder_gram(decoder: Representation) -> Tensor:
    """Return G (code, code): d^T G d is the squared norm of what d adds to a field, in its unit."""
    unit = decoder.unit
    return code_gram(decoder, lambda fields: (fields / unit).flatten(1))


def channel_metrics(decoder: Representation) -> tuple[Tensor, ...]:
    """Return M (code, coordinates) for each of several channels; of a single one, nothing.

    ||d @ M|| is the norm of what a code difference d adds to the channel, in its unit.
    """
    channels = decoder.space.channels
    if channels == 1:
        return ()
    unit = decoder.unit

    def metric(channel: int) -> Tensor:
        gram = code_gram(decoder, lambda fields: (fields / unit)[:, channel].flatten(1))
        return Isometry.of(gram).to_coordinates

    return tuple(metric(channel) for channel in range(channels))


@contextmanager
def one_isometry(decoder: Representation) -> Iterator[None]:
    """Remember the coordinates of a decoder, which must not be fitted anew meanwhile.

    They take two matrices of the code's size and a decomposition, and several parts of a fit ask
    for them.
    """
    _REMEMBERED[decoder] = None
    try:
        yield
    finally:
        del _REMEMBERED[decoder]


class NearestCodes:
    """argmin_z ||D(z) - u||, where `encode` gives the codes of the PCAs.

    The two differ, because a PCA works on standardised fields and a chain on one stage at a time.
    With z the code by `encode`, J the decoder's linear part and G = J^T J the nearest one is
    z - G^-1 J^T (D(z) - u); J^T is a gradient. Fields are measured in the decoder's unit.
    """

    def __init__(self, representation: Representation) -> None:
        self.representation = representation
        coordinates = decoder_isometry(representation).from_coordinates
        self.inverse = coordinates.mT @ coordinates  # (code, code), float64
        self.unit = representation.unit

    def __call__(self, fields: Tensor) -> Tensor:
        """Return the codes (batch, code_size) of fields (batch, channels, *shape)."""
        with torch.no_grad():
            codes = self.representation.encode(fields)
        with torch.enable_grad():
            codes.requires_grad_()
            error = (self.representation.decode(codes) - fields) / self.unit
            (grad,) = torch.autograd.grad(0.5 * error.square().sum(), codes)
        return codes.detach() - (grad.double() @ self.inverse).to(codes.dtype)
