"""Networks that differ in their first weights only, and their mean."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import torch
from torch import Tensor, nn

from twoscale.runtime.cuda_graphs import side_by_side


class Committee(nn.Module):
    """The mean of several networks. On a GPU they are computed side by side.

    What each of them gets wrong by chance is smaller in the mean.
    """

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def each(self, fields: Tensor) -> Tensor:
        """Return the results of all members, (members, batch, ...)."""
        works = [partial(member, fields) for member in self.members]
        return torch.stack(side_by_side(works, fields.device))

    def forward(self, fields: Tensor) -> Tensor:
        return self.each(fields).mean(0)
