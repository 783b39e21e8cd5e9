"""Coordinates of codes in which a decoder keeps distances, computed once for each fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from twoscale.objectives import Isometry
from twoscale.representation import Representation
from twoscale.surrogate.terms import decoder_gram

_REMEMBERED: dict[Representation, Isometry | None] = {}


def decoder_isometry(decoder: Representation) -> Isometry:
    """Return the coordinates for a fitted decoder; inside `one_isometry`, always the same.

    Their distances are those of decoded fields in the decoder's `unit`: no square of them leaves
    the range of single precision, however large or small the fields are.
    """
    known = _REMEMBERED.get(decoder)
    if known is None:
        known = Isometry.of(decoder_gram(decoder) / decoder.unit**2)
        if decoder in _REMEMBERED:
            _REMEMBERED[decoder] = known
    return known


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
