"""Maps from input field to solution field: three parts put together, and one after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.domain.patches import PatchLayout
from twoscale.domain.space import Space
from twoscale.domain.symmetries import IDENTITY, Group, symmetry_group
from twoscale.errors import TwoscaleError
from twoscale.fields.source import FieldSource, ImageSource, map_fields
from twoscale.operators.context import FieldPairs, FitContext, share_fitted, train_members
from twoscale.parts import describe
from twoscale.predictors import CodePredictor, ImagePairs
from twoscale.representation import Representation, beside_parameters
from twoscale.representation.base import subset
from twoscale.representation.geometry import one_isometry
from twoscale.representation.nearest import NearestCodes
from twoscale.runtime import processes
from twoscale.runtime.precision import check_variation
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.runtime.stages import CORRECTION, TRAINING, TRANSFORM
from twoscale.training import Task
from twoscale.training.distributed import Shard, shard_of

Encode = Callable[[Tensor], Tensor]
_SINGLE = 4  # bytes of a number of a code
_FEW_VALUES = 2**17  # of all images of a batch: one call for all of them is faster


class FieldOperator(nn.Module, ABC):
    """A map from input fields to solution fields, both (batch, channels, height, width)."""

    def check(self, inputs: Space, outputs: Space, samples: int) -> None:
        """Raise if the operator cannot be fitted on this many fields of these spaces."""

    def fit(self, training: FieldPairs, validation: FieldPairs, context: FitContext) -> Self:
        """Fit on training pairs, choosing weights on validation pairs."""
        task = self.prepare(training, validation, context)
        if task is not None:
            train_members([task], [context])
        return self.complete(training, validation, context)

    @abstractmethod
    def prepare(
        self, training: FieldPairs, validation: FieldPairs, context: FitContext
    ) -> Task | None:
        """Fit representations and closed forms; return the training that is left, or None.

        It is apart from `complete` so that the networks of many surrogates are trained together.
        """

    def complete(self, training: FieldPairs, validation: FieldPairs, context: FitContext) -> Self:
        """Finish the fit once the network of `prepare` is trained."""
        return self

    @property
    def completes_on_fields(self) -> bool:
        """Say whether `complete` still needs the fields."""
        return False

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor], inputs: Space, outputs: Space) -> Self:
        """Take the fitted state from `tensors`, named as in `state_dict`, for two spaces."""

    @property
    @abstractmethod
    def latent(self) -> LatentOperator:
        """Return the part that works on codes."""

    @property
    def layout(self) -> PatchLayout | None:
        """Return the patches whose borders are this operator's native seams, if it has any."""
        return self.latent.outputs.layout


class LatentOperator(FieldOperator):
    """Encode the input, predict the output's code from the input's, decode it.

    Parameters
    ----------
    inputs, predictor, outputs
        The three parts, not fitted yet.
    symmetries
        One of `SYMMETRIES`: all images of the training fields under them are training fields. By
        default there are none.
    average
        Whether to predict from all images of an input and take the mean. False by default.
    warns
        Whether to warn of training fields that hardly vary. True by default.

    Attributes
    ----------
    group
        The symmetries that both grids have, once their spaces are known.

    Scalar parameters among the input's channels become a part of its code: the fit then wraps a
    compressing input representation as `WithParameters`.
    """

    def __init__(
        self,
        inputs: Representation,
        predictor: CodePredictor,
        outputs: Representation,
        *,
        symmetries: str = "none",
        average: bool = False,
        warns: bool = True,
    ) -> None:
        super().__init__()
        self.inputs = inputs
        self.predictor = predictor
        self.outputs = outputs
        self.symmetries = symmetries
        self.average = average
        self.warns = warns
        self.group: Group = IDENTITY

    def check(self, inputs: Space, outputs: Space, samples: int) -> None:
        self._bind_spaces(inputs, outputs)
        fields = len(self.group) * samples
        self.inputs.check(inputs, fields)
        self.outputs.check(outputs, fields)

    def _bind_spaces(self, inputs: Space, outputs: Space) -> None:
        """Choose the symmetries of both grids; wrap the inputs if the space has parameters."""
        self.predictor.check(inputs, outputs)
        self.group = IDENTITY
        if self.symmetries != "none":
            if not inputs.field_channels:
                raise TwoscaleError(
                    f"symmetries={self.symmetries} need input fields to act on, and these are "
                    "parameters alone: leave the symmetries out"
                )
            self.group = symmetry_group(self.symmetries, inputs.grid, outputs.grid)
        if inputs.parameters:
            self.inputs = beside_parameters(self.inputs, inputs)

    def prepare(
        self, training: FieldPairs, validation: FieldPairs, context: FitContext
    ) -> Task | None:
        self._bind_spaces(training.input_space, training.output_space)
        shard = self._shard(training, context.seed)
        images = _images(training, self.group)
        context.report("representations", 0, 2, "input")
        self._fit(self.inputs, images.inputs, training.input_space, context, shard, "input")
        context.report("representations", 1, 2, "output")
        self._fit(self.outputs, images.outputs, training.output_space, context, shard, "output")
        context.report("representations", 2, 2)
        self.predictor.bind(self.inputs.affine, self.outputs)
        asked = self.predictor.targets_nearest_codes or self.predictor.closed_form
        with one_isometry(self.outputs) if asked else nullcontext():
            with context.clock.stage(TRANSFORM.name):
                codes = self.encode_pairs(training, self.group, shard, context.scratch)
                held_out = self.encode_pairs(validation, scratch=context.scratch)
            with context.clock.stage(TRAINING.name):
                return self.predictor.prepare(codes, held_out, self.outputs, context.seed)

    def _shard(self, training: FieldPairs, seed: int) -> Shard | None:
        """Return this process's part of the training, if several processes share it."""
        if not self.predictor.data_parallel:
            return None
        parts = [describe(one) for one in (self.inputs, self.predictor, self.outputs)]
        spaces = (training.input_space, training.output_space)
        return shard_of(training.inputs.shape[0], repr((parts, self.symmetries, spaces, seed)))

    def _fit(
        self,
        representation: Representation,
        fields: FieldSource,
        space: Space,
        context: FitContext,
        shard: Shard | None,
        name: str,
    ) -> None:
        """Fit a representation; of several processes the first one does, and tells the others."""
        if processes.is_first() or shard is None:
            self._fit_here(representation, fields, space, context, name)
        if shard is not None:
            share_fitted(representation, fields, partial(representation.restore, space=space))

    def _fit_here(
        self,
        representation: Representation,
        fields: FieldSource,
        space: Space,
        context: FitContext,
        name: str,
    ) -> None:
        seed = context.seed + (name == "output")
        if representation.compresses:
            context.fit_representation(representation, fields, space, seed=seed, name=name)
            return
        representation.fit(fields, space=space, seed=seed, clock=context.clock, name=name)
        level = representation.mean_and_spread
        if self.warns and level is not None:
            check_variation(*level, f"training {name}")

    def complete(self, training: FieldPairs, validation: FieldPairs, context: FitContext) -> Self:
        self.predictor.complete()
        return self

    @property
    def latent(self) -> LatentOperator:
        return self

    @torch.no_grad()
    def encode_pairs(
        self,
        pairs: FieldPairs,
        group: Group = IDENTITY,
        shard: Shard | None = None,
        scratch: Scratch = IN_MEMORY,
    ) -> ImagePairs:
        """Return the input and output codes of all pairs' images under some symmetries.

        With a `shard` only its samples are encoded. Output codes are what the predictor learns: by
        `encode`, or the nearest ones.
        """
        outputs: Encode = self.outputs.encode
        if self.predictor.targets_nearest_codes and self.outputs.compresses:
            outputs = NearestCodes(self.outputs)
        # A predictor on whole fields makes their images itself.
        whole = self.predictor.reads_fields and not self.inputs.compresses
        sides = (pairs.inputs, pairs.outputs)
        read, made = sides if shard is None else (shard.source(one) for one in sides)
        seen = IDENTITY if whole else group
        ways = ((self.inputs, read, seen), (self.outputs, made, group))
        scratch.require(
            _SINGLE * len(images) * fields.shape[0] * representation.code_size
            for representation, fields, images in ways
        )
        return ImagePairs(
            _encode(self.inputs.encode, read, seen, scratch),
            _encode(outputs, made, group, scratch),
            group=group,
            shard=shard,
            scratch=scratch,
        )

    def forward(self, fields: Tensor) -> Tensor:
        if not self.average:
            return self.predict_once(fields)
        first, *others = self.group
        predicted = self._predict_images(fields)
        total = first.inverse(next(predicted))
        for symmetry, one in zip(others, predicted, strict=True):
            total = total + symmetry.inverse(one)
        return total / len(self.group)

    def _predict_images(self, fields: Tensor) -> Iterator[Tensor]:
        """Yield the predictions of all images of fields: of few or exported ones in one batch."""
        if torch.compiler.is_compiling() or len(self.group) * fields.numel() <= _FEW_VALUES:
            images = torch.cat([symmetry(fields) for symmetry in self.group])
            yield from self.predict_once(images).unflatten(0, (len(self.group), -1))
        else:
            yield from (self.predict_once(symmetry(fields)) for symmetry in self.group)

    def predict_once(self, fields: Tensor) -> Tensor:
        """Return the prediction without an average over images."""
        return self.outputs.decode(self.predictor(self.inputs.encode(fields)))

    def restore(self, tensors: Mapping[str, Tensor], inputs: Space, outputs: Space) -> Self:
        self._bind_spaces(inputs, outputs)
        self.inputs.restore(subset(tensors, "inputs"), inputs)
        self.outputs.restore(subset(tensors, "outputs"), outputs)
        self.predictor.bind(self.inputs.affine, self.outputs)
        self.predictor.restore(subset(tensors, "predictor"))
        return self


class RefinedOperator(FieldOperator):
    """A fitted base, followed by a correction that learns the true field from the base's.

    Where several processes train the correction together, the first one fits a base that only one
    can train.
    """

    def __init__(self, base: LatentOperator, correction: LatentOperator) -> None:
        super().__init__()
        self.base = base
        self.correction = correction

    @property
    def _base_of_first(self) -> bool:
        """Say whether the base is fitted by the first of several processes."""
        return processes.count() > 1 and not self.base.predictor.data_parallel

    def check(self, inputs: Space, outputs: Space, samples: int) -> None:
        self.base.check(inputs, outputs, samples)
        self.correction.check(outputs, outputs, samples)

    def prepare(
        self, training: FieldPairs, validation: FieldPairs, context: FitContext
    ) -> Task | None:
        if not self._base_of_first:
            return self.base.prepare(training, validation, context)
        if processes.is_first():
            self.base.fit(training, validation, context)
        inputs, outputs = training.input_space, training.output_space
        restore = partial(self.base.restore, inputs=inputs, outputs=outputs)
        share_fitted(self.base, training.inputs, restore)
        return None

    def complete(self, training: FieldPairs, validation: FieldPairs, context: FitContext) -> Self:
        if not self._base_of_first:
            self.base.complete(training, validation, context)
        with context.clock.stage(TRANSFORM.name):
            predicted, held_out = (self._predicted(pairs) for pairs in (training, validation))
        task = self.correction.prepare(predicted, held_out, context)
        if task is not None:
            train_members([task], [context], stage=CORRECTION.name)
        self.correction.complete(predicted, held_out, context)
        return self

    @property
    def completes_on_fields(self) -> bool:
        return True

    def _predicted(self, pairs: FieldPairs) -> FieldPairs:
        space = pairs.output_space
        fields = map_fields(pairs.inputs, torch.no_grad()(self.base), space.shape)
        return FieldPairs(fields, pairs.outputs, (space, space))

    def forward(self, fields: Tensor) -> Tensor:
        return self.correction(self.base(fields))

    @property
    def latent(self) -> LatentOperator:
        return self.base

    def restore(self, tensors: Mapping[str, Tensor], inputs: Space, outputs: Space) -> Self:
        self.base.restore(subset(tensors, "base"), inputs, outputs)
        self.correction.restore(subset(tensors, "correction"), outputs, outputs)
        return self


def _images(pairs: FieldPairs, group: Group) -> FieldPairs:
    if len(group) == 1:
        return pairs
    inputs, outputs = (ImageSource(fields, group) for fields in (pairs.inputs, pairs.outputs))
    return FieldPairs(inputs, outputs, pairs.spaces)


def _encode(encode: Encode, source: FieldSource, group: Group, scratch: Scratch) -> Tensor:
    """Return the codes of all fields' images, symmetry after symmetry, in one tensor."""
    codes = torch.empty(0)
    start = 0
    for part in source.workers.map(partial(_image_codes, encode=encode, group=group), source):
        if not start:
            codes = scratch.empty(len(group), source.shape[0], part.shape[2], like=part)
        codes[:, start : start + part.shape[1]] = part
        start += part.shape[1]
    return codes.flatten(0, 1)


def _image_codes(chunks: Iterator[Tensor], encode: Encode, group: Group) -> Tensor:
    """Return the codes (symmetries, samples, code size) of the images of some fields."""
    found = []
    for chunk in chunks:
        images = [encode(symmetry(chunk)) for symmetry in group]
        found.append(images[0][None] if len(images) == 1 else torch.stack(images))
    return found[0] if len(found) == 1 else torch.cat(found, 1)
