"""Predictors that are networks from field to field; the code of their output is the prediction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from twoscale.domain.grid import is_planar
from twoscale.domain.space import Domain, Space
from twoscale.domain.symmetries import Group
from twoscale.fields.source import slices
from twoscale.networks import Committee, FieldMap, work_shape
from twoscale.predictors.base import (
    CodePredictor,
    PredictorCost,
    Probe,
    Sizes,
    load_weights,
)
from twoscale.representation import Representation
from twoscale.representation.geometry import decoder_isometry
from twoscale.runtime.precision import tensor_cores
from twoscale.training import CodePairs, Plan, Task, mean_loss
from twoscale.training.task import (
    CodeLoss,
    Loss,
    RelativeLoss,
    Shard,
    code_weights,
    mean_over,
    mean_square,
    variance_over,
)

_DECODED = 256  # codes that are decoded together
_MOST = 10.0  # deviations of a node by which a network's output of one may change it
_APART = 1_000_003  # between the seeds of members: no other surrogate's seed is likely to be there

GPU_SPEED = 80.0  # of a network on fields, times that of a closed form

_MEASURED = 4  # validations beside those of epochs: before the training, and errors after it
_NODE_WORK = 160  # times the squared width: a training step of a network of full resolution
_WIDTH = 32  # of a network whose width is not known


def seen_fields(sizes: Sizes) -> float:
    """Return the fields that a training sees; one that is not learned from counts as a third."""
    return sizes.epochs * sizes.samples + (sizes.epochs + _MEASURED) * sizes.validation / 3


def field_network_work(sizes: Sizes) -> float:
    """Return the multiplications of the training of a network of full resolution, for a search."""
    return seen_fields(sizes) * sizes.nodes * _NODE_WORK * (sizes.width or _WIDTH) ** 2


class FieldPredictor(CodePredictor):
    """A network from field to field, whose proposed field is encoded by the output representation.

    With `WholeField` outputs the proposal is the prediction. With inputs that compress, the network
    reads the field that their code decodes to. Several `members` are networks with first weights of
    their own, each trained for itself; the proposal is their mean. A subclass implements
    `make_network`.
    """

    reads_fields = True
    data_parallel = True
    cost = PredictorCost(
        lambda sizes: field_network_work(sizes), gpu_speed=GPU_SPEED, probe=Probe()
    )
    draws_images: ClassVar[bool] = False
    """Whether each epoch draws as many images under the symmetries as there are training fields."""

    mean: Tensor  # (channels, height, width): the proposal where the network gives zero
    spread: Tensor  # (channels, height, width): zero at nodes that never differ from their mean

    def __init__(self, *, objective: str, plan: Plan, members: int = 1) -> None:
        super().__init__(objective=objective)
        self.plan = plan
        self.members = members
        self.network: nn.Module | None = None
        self._ends: tuple[Representation, ...] = ()  # a tuple, so that torch does not register them

    @abstractmethod
    def make_network(
        self, shape: tuple[int, int], inputs: Space, outputs: Space, seed: int
    ) -> nn.Module:
        """Return the network on fields (batch, channels, *shape) of both spaces' channels."""

    def _network(self, inputs: Space, outputs: Space, seed: int) -> nn.Module:
        """Return the network between two spaces; it works on the finer of both grids."""
        one, other = inputs.grid.plane, outputs.grid.plane
        shape = work_shape(one.shape, other.shape)
        made = [
            self.make_network(shape, inputs, outputs, seed + _APART * number)
            for number in range(self.members)
        ]
        maps = [
            FieldMap(network, one.shape, other.shape, one.periodic, other.periodic)
            for network in made
        ]
        return Committee(maps) if len(maps) > 1 else maps[0]

    def supports(self, domain: Domain) -> bool:
        return is_planar(domain)

    def bind(self, inputs: Representation, outputs: Representation) -> None:
        self._ends = (inputs, outputs)
        device = next(outputs.buffers()).device
        self.network = self._network(_of_images(inputs.space), outputs.space, 0).to(device)
        if outputs.compresses:
            for name in ("mean", "spread"):
                self.register_buffer(name, torch.zeros(outputs.space.shape, device=device))
        if inputs.compresses:
            nothing = inputs.decode(torch.zeros(1, inputs.code_size, device=device))
            self.register_buffer("_input_mean", nothing, persistent=False)
            self.register_buffer("_input_unit", inputs.unit.to(device), persistent=False)

    @torch.no_grad()
    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> Task:
        inputs, _ = self._ends
        shard, device = training.shard, training.inputs.device
        self.network = self._network(_of_images(inputs.space), decoder.space, seed).to(device)
        if decoder.compresses:
            self._centre(training.targets, decoder, shard)
        loss = self._loss(training.targets, decoder, shard)
        targets = self._targets(training, decoder)
        held_out = replace(validation, targets=self._targets(validation, decoder))
        held_out = held_out if shard is None else shard.part(held_out)
        size, shared = self.plan.evaluation_batch, shard is not None
        validate = partial(mean_loss, self, loss, held_out, size, shared=shared)
        network: nn.Module = self
        if self.members > 1:
            network, loss = _EachMember(self), partial(_loss_of_each, loss, self.members)
        rows, per_epoch = training.inputs, None
        if not inputs.compresses and (len(training.group) > 1 or self.draws_images):
            network = _NumberedImages(network, training.inputs, training.group, inputs.space)
            rows = network.rows()
            per_epoch = len(training.inputs) if shard is None else shard.samples
        return Task(
            network,
            replace(training, inputs=rows, targets=targets),
            held_out,
            loss,
            self.plan,
            seed,
            validate=validate,
            per_epoch=per_epoch,
        )

    def _centre(self, codes: Tensor, decoder: Representation, shard: Shard | None) -> None:
        """Set `mean` and `spread`: the mean field, and the standard deviation of each channel.

        At nodes that hardly vary the spread is ten times their own deviation. A PCA divides nodes
        by their deviations, and would turn larger differences from the mean into huge codes.
        """
        self.mean = decoder.decode(mean_over(shard, codes)[None])[0]
        squares = torch.zeros_like(self.mean)
        for part in slices(len(codes), _DECODED):
            differences = (decoder.decode(codes[part]) - self.mean) / decoder.unit
            squares += differences.square().sum(0) / len(codes)
        if shard is not None:
            squares = shard.average(squares, len(codes))
        channels = squares.mean((1, 2), keepdim=True)
        self.spread = channels.minimum(_MOST**2 * squares).sqrt() * decoder.unit

    def _loss(self, codes: Tensor, decoder: Representation, shard: Shard | None) -> Loss:
        if self.objective == "field":
            return RelativeLoss(_metric(decoder).to(codes.dtype))
        if not decoder.compresses:
            return mean_square
        variance = variance_over(shard, codes)
        return CodeLoss(code_weights(self.objective, decoder.block_sizes, variance))

    def _targets(self, pairs: CodePairs, decoder: Representation) -> Tensor:
        """Return the codes; for the relative loss with the fields' norms as a last column."""
        if self.objective != "field":
            return pairs.targets
        samples, size = pairs.targets.shape
        targets = pairs.scratch.empty(samples, size + 1, like=pairs.targets)
        for part in slices(samples, _DECODED):
            targets[part, :-1] = pairs.targets[part]
            fields = decoder.decode(pairs.targets[part]) / decoder.unit
            targets[part, -1] = fields.flatten(1).norm(dim=1)
        return targets

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        load_weights(self, tensors)
        return self

    @property
    def trained(self) -> nn.Module:
        return self

    def forward(self, codes: Tensor) -> Tensor:
        assert self.network is not None
        with tensor_cores():
            return self._encoded(self.network(self._read(codes)))

    def each(self, codes: Tensor) -> Tensor:
        """Return the codes that each member proposes: all of the first one, then the second, ..."""
        assert isinstance(self.network, Committee)
        with tensor_cores():
            return self._encoded(self.network.each(self._read(codes)).flatten(0, 1))

    def _encoded(self, proposal: Tensor) -> Tensor:
        _, outputs = self._ends
        if not outputs.compresses:
            return proposal.flatten(1)
        return outputs.encode(self.mean + self.spread * proposal)

    def _read(self, codes: Tensor) -> Tensor:
        """Return the normalised inputs of codes as images; parameters are constant channels."""
        inputs, _ = self._ends
        codes, scores = split_scores(codes, inputs.space)
        if inputs.compresses:
            fields = (inputs.decode(codes) - self._input_mean) / self._input_unit
        else:
            fields = codes.unflatten(1, inputs.space.shape)
        return with_constants(fields, scores)

    _input_mean: Tensor
    _input_unit: Tensor


def split_scores(codes: Tensor, space: Space) -> tuple[Tensor, Tensor]:
    """Return the codes of input fields, and the scaled parameters (batch, P) behind them."""
    size = codes.shape[1] - space.parameters
    return codes[:, :size], codes[:, size:]


def with_constants(fields: Tensor, scalars: Tensor) -> Tensor:
    """Return fields (b, C, *shape) with scalars (b, P) as P further channels, constant each."""
    if not scalars.shape[1]:
        return fields
    constants = scalars.reshape(*scalars.shape, *[1] * (fields.ndim - 2))
    return torch.cat([fields, constants.expand(-1, -1, *fields.shape[2:])], 1)


def _of_images(space: Space) -> Space:
    """Return the space of the images that a network reads, parameters among their channels."""
    return Space(space.domain, space.channels + space.parameters)


def _metric(decoder: Representation) -> Tensor:
    """Return the matrix from code errors to field errors; a factor per entry for whole fields."""
    if decoder.compresses:
        return decoder_isometry(decoder).to_coordinates
    with torch.no_grad():
        codes = torch.zeros(1, decoder.code_size, device=next(decoder.buffers()).device)
        fields = decoder.decode(codes + 1) - decoder.decode(codes)
    return (fields / decoder.unit).flatten()


class _EachMember(nn.Module):
    """A predictor that returns the codes of all its members, for their training."""

    def __init__(self, predictor: FieldPredictor) -> None:
        super().__init__()
        self.predictor = predictor

    def forward(self, codes: Tensor) -> Tensor:
        return self.predictor.each(codes)


def _loss_of_each(loss: Loss, members: int, predicted: Tensor, true: Tensor) -> Tensor:
    """Return the mean of a loss over members, whose codes follow each other."""
    return loss(predicted, true.repeat(members, 1))


class _NumberedImages(nn.Module):
    """A predictor whose inputs are the numbers of images of stored fields.

    Images under the first symmetry come first, then those under the second, and so on. They are
    made when a step needs them.
    """

    fields: Tensor  # (samples, code): channels x nodes, then parameters
    origins: Tensor  # (symmetries, code): where an image's values lie in the field

    def __init__(self, predictor: nn.Module, fields: Tensor, group: Group, space: Space) -> None:
        super().__init__()
        self.predictor = predictor
        places = torch.arange(fields.shape[1], device=fields.device)
        nodes, scalars = split_scores(places[None], space)
        nodes = nodes.reshape(space.shape)
        images = [torch.cat([symmetry(nodes).flatten(), scalars[0]]) for symmetry in group]
        origins = torch.stack(images)
        self.register_buffer("fields", fields, persistent=False)
        self.register_buffer("origins", origins, persistent=False)

    def rows(self) -> Tensor:
        """Return the numbers of all images."""
        return torch.arange(len(self.origins) * len(self.fields), device=self.fields.device)

    def forward(self, rows: Tensor) -> Tensor:
        samples, symmetries = rows % len(self.fields), rows // len(self.fields)
        return self.predictor(self.fields[samples[:, None], self.origins[symmetries]])
