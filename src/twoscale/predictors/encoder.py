"""The predictor that reads the input field itself: a convolutional network, trained on codes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.fields.source import slices
from twoscale.fields.symmetries import Group
from twoscale.networks import FieldEncoder
from twoscale.predictors.base import CodePredictor, ImagePairs, load_weights
from twoscale.representation import Representation
from twoscale.representation.geometry import decoder_isometry
from twoscale.training import Pairs, Plan, Task, mean_loss
from twoscale.training.losses import CodeLoss, Loss, RelativeLoss, code_weights

_DECODED = 256  # codes that are decoded together


class EncoderPredictor(CodePredictor):
    """Sees the whole input field and proposes a field, whose code is the predicted one.

    The proposal is encoded as any field is: the coarse scores see all of it, each patch's residual
    scores their own patch. What no decoded field could show of it does not count. The network
    learns from the images of the training fields under the symmetries, in each epoch as many as
    there are fields; they are made when they are needed.
    """

    reads_fields = True

    mean: Tensor  # (height, width): the proposal is this where the network gives zero
    spread: Tensor

    def __init__(
        self,
        shape: tuple[int, int],
        *,
        width: int,
        blocks: int,
        cut: int | None,
        objective: str,
        plan: Plan,
    ) -> None:
        super().__init__(nearest=objective == "field")
        self.shape = shape
        self.objective = objective
        self.plan = plan
        self.make_network = partial(FieldEncoder, shape, width=width, blocks=blocks, cut=cut)
        self.network = self.make_network()
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("spread", torch.ones(()))
        self._decoder: tuple[Representation, ...] = ()  # in a tuple: it is no part of this module

    def attach(self, decoder: Representation) -> None:
        self._decoder = (decoder,)

    @torch.no_grad()
    def prepare(
        self, training: ImagePairs, validation: Pairs, decoder: Representation, seed: int
    ) -> Task:
        self.network = self.make_network(seed=seed).to(training.inputs.device)
        self.mean = decoder.decode(training.targets.mean(0, keepdim=True))[0]
        few = decoder.decode(training.targets[:_DECODED])
        spread = decoder.unit * ((few - self.mean) / decoder.unit).square().mean().sqrt()
        self.spread = torch.where(spread > 0, spread, torch.ones_like(spread))
        loss = self._loss(training.targets, decoder)
        held_out = Pairs(validation.inputs, self._targets(validation, decoder))
        images = _NumberedImages(self, training.inputs, training.group, self.shape)
        return Task(
            images,
            Pairs(images.rows(), self._targets(training, decoder)),
            held_out,
            loss,
            self.plan,
            seed,
            judge=partial(mean_loss, self, loss, held_out, self.plan.evaluation_batch),
            per_epoch=len(training.inputs),
        )

    def _loss(self, codes: Tensor, decoder: Representation) -> Loss:
        if self.objective == "field":
            return RelativeLoss(decoder_isometry(decoder).forth.to(codes.dtype))
        variance = codes.var(0, unbiased=False)
        return CodeLoss(code_weights(self.objective, decoder.block_sizes, variance))

    def _targets(self, pairs: Pairs, decoder: Representation) -> Tensor:
        """Return the codes, and beside them the fields' norms in the decoder's unit.

        Only the relative loss needs the latter.
        """
        if self.objective != "field":
            return pairs.targets
        unit = decoder.unit
        sizes = [
            (decoder.decode(pairs.targets[part]) / unit).flatten(1).norm(dim=1, keepdim=True)
            for part in slices(len(pairs.targets), _DECODED)
        ]
        return torch.cat([pairs.targets, torch.cat(sizes)], 1)

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        load_weights(self, tensors)
        return self

    @property
    def trained(self) -> nn.Module:
        return self

    def forward(self, codes: Tensor) -> Tensor:
        (decoder,) = self._decoder
        proposal = self.network(codes.unflatten(1, self.shape))
        return decoder.encode(self.mean + self.spread * proposal)


class _NumberedImages(nn.Module):
    """A predictor on the images of stored fields, which go by their numbers.

    Those under the first symmetry come first, then those under the second, and so on.
    """

    fields: Tensor  # (samples, nodes)
    origins: Tensor  # (symmetries, nodes): where an image's nodes lie in the field

    def __init__(
        self, predictor: CodePredictor, fields: Tensor, group: Group, shape: tuple[int, int]
    ) -> None:
        super().__init__()
        self.predictor = predictor
        nodes = torch.arange(fields.shape[1], device=fields.device).reshape(shape)
        origins = torch.stack([symmetry(nodes).flatten() for symmetry in group])
        self.register_buffer("fields", fields, persistent=False)
        self.register_buffer("origins", origins, persistent=False)

    def rows(self) -> Tensor:
        """Return the numbers of all images."""
        return torch.arange(len(self.origins) * len(self.fields), device=self.fields.device)

    def forward(self, rows: Tensor) -> Tensor:
        samples, symmetries = rows % len(self.fields), rows // len(self.fields)
        return self.predictor(self.fields[samples[:, None], self.origins[symmetries]])
