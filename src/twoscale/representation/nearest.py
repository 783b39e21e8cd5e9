"""The codes whose decoded fields are nearest to given fields."""

from __future__ import annotations

import torch
from torch import Tensor

from twoscale.representation import Representation
from twoscale.representation.geometry import decoder_isometry


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
