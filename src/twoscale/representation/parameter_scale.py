"""Parameters as a part of the code of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.representation.transformed import NAMES, TRANSFORMS, by_channel


class ParameterScale(nn.Module):
    """Scalar parameters (samples, P), transformed where that is wanted, each with unit variance."""

    mean: Tensor  # (parameters,)
    scale: Tensor  # (parameters,)
    applied: Tensor  # (parameters,): places in `NAMES`

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names
        self.kinds = ("none",) * len(names)  # the transform of each
        for name in ("mean", "scale", "applied"):
            self.register_buffer(name, torch.zeros(len(names)))

    def fit(self, values: Tensor, kinds: tuple[str, ...]) -> Self:
        """Learn mean and deviation of training parameters, after a transform of each."""
        self.kinds = kinds
        places = [NAMES.index(kind) for kind in kinds]
        self.applied = torch.tensor(places, dtype=torch.uint8, device=values.device)
        self.check_values(values)
        exact = self._transformed(values).double()
        spread = exact.std(0, unbiased=False)
        self.mean = exact.mean(0).float()
        self.scale = torch.where(spread > 0, spread, 1.0).float()
        return self

    def check_values(self, values: Tensor) -> None:
        """Raise if a parameter cannot be transformed."""
        if set(self.kinds) == {"none"} or not len(values):
            return
        for name, kind, least in zip(self.names, self.kinds, values.amin(0).tolist(), strict=True):
            TRANSFORMS[kind].check(name, least)

    def forward(self, values: Tensor) -> Tensor:
        """Return the scores (samples, P) of parameters."""
        return (self._transformed(values.to(self.mean.dtype)) - self.mean) / self.scale

    def undo(self, scores: Tensor) -> Tensor:
        """Return the parameters of scores."""
        values = self.mean + self.scale * scores
        return by_channel(values, [TRANSFORMS[kind].undo for kind in self.kinds])

    def _transformed(self, values: Tensor) -> Tensor:
        return by_channel(values, [TRANSFORMS[kind].apply for kind in self.kinds])

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from `tensors`, named as in `state_dict`."""
        wanted = (len(self.names),)
        for name in ("mean", "scale", "applied"):
            if name not in tensors or tensors[name].shape != wanted:
                raise TwoscaleError(
                    "the scale of the parameters is missing: the artifact is damaged"
                )
            setattr(self, name, tensors[name])
        if int(self.applied.max()) >= len(NAMES):
            raise TwoscaleError("the transforms of the parameters are unknown: damaged artifact")
        self.kinds = tuple(NAMES[int(place)] for place in self.applied)
        return self
