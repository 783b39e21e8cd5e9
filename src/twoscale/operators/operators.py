"""Maps from input field to solution field: three parts put together, and one after another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.domain.patches import PatchLayout
from twoscale.domain.space import Space
from twoscale.domain.symmetries import IDENTITY, Group, symmetry_group
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.samples import Source
from twoscale.fields.source import (
    ArraySource,
    Batch,
    FieldSource,
    ImageSource,
    PredictedSource,
    gather,
    in_memory,
)
from twoscale.operators.fitting import (
    FitOptions,
    FitRecord,
    fit_representation,
    share_fitted,
    train_members,
)
from twoscale.parts import describe
from twoscale.predictors import CodePredictor
from twoscale.representation import NoFields, ParameterScale, Representation, Transformed
from twoscale.representation.base import subset
from twoscale.representation.geometry import NearestCodes, one_isometry
from twoscale.runtime import processes
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.runtime.stages import CORRECTION, TRAINING, TRANSFORM
from twoscale.training import CodePairs, Task
from twoscale.training.task import Shard, shard_of

Encode = Callable[[Tensor], Tensor]
_SINGLE = 4  # bytes of a number of a code
_FEW_VALUES = 2**17  # of all images of a batch: one call for all of them is faster


class FieldOperator(nn.Module, ABC):
    """A map from input fields (batch, channels, *shape), and parameters (batch, P), to solutions.

    It is called with the tensors of a `Batch`: the fields and, if there are any, the parameters.
    """

    def check(self, inputs: Space, outputs: Space, samples: int) -> None:
        """Raise if the operator cannot be fitted on this many fields of these spaces."""

    @abstractmethod
    def prepare(self, data: SplitData, options: FitOptions, record: FitRecord) -> Task | None:
        """Fit representations and closed forms; return the training that is left, or None.

        It is apart from `complete` so that the networks of many surrogates are trained together.
        """

    @abstractmethod
    def complete(self, data: SplitData | None, options: FitOptions, record: FitRecord) -> None:
        """Finish the fit once the network of `prepare` is trained.

        Data may be missing unless the operator `completes_on_fields`.
        """

    @property
    def completes_on_fields(self) -> bool:
        """Say whether `complete` still needs the fields."""
        return False

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor], inputs: Space, outputs: Space) -> Self:
        """Take the fitted state from `tensors`, named as in `state_dict`, for two spaces."""

    @property
    @abstractmethod
    def code_operator(self) -> CodeOperator:
        """Return the part that works on codes."""

    @property
    def layout(self) -> PatchLayout | None:
        """Return the patches whose borders are this operator's native seams, if it has any."""
        return self.code_operator.outputs.layout


class CodeOperator(FieldOperator):
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
    scalars
        The `ParameterScale` of parameters beside the input fields, the last entries of its code;
        None without any.
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
        self._bound: tuple[Space, Space] | None = None
        self.scalars: ParameterScale | None = None
        # In a tuple, so that torch does not register it twice.
        self._transforms = (inputs,) if isinstance(inputs, Transformed) else ()

    def check(self, inputs: Space, outputs: Space, samples: int) -> None:
        self._bind_spaces(inputs, outputs)
        fields = len(self.group) * samples
        self.inputs.check(inputs, fields)
        self.outputs.check(outputs, fields)

    def _bind_spaces(self, inputs: Space, outputs: Space) -> None:
        """Choose the symmetries of both grids, and what reads parameters if there are any."""
        if self._bound == (inputs, outputs):
            return
        for space in (inputs, outputs):
            if not self.predictor.supports(space.domain):
                raise TwoscaleError(
                    f"{self.predictor.name} does not work on {space.domain}: use a predictor that "
                    "maps codes, such as affine"
                )
        self.predictor.check(inputs, outputs)
        self.group = IDENTITY
        if self.symmetries != "none":
            if not inputs.channels:
                raise TwoscaleError(
                    f"symmetries={self.symmetries} need input fields to act on, and these are "
                    "parameters alone: leave the symmetries out"
                )
            self.group = symmetry_group(self.symmetries, inputs.grid, outputs.grid)
        self.scalars = ParameterScale(inputs.parameter_names) if inputs.parameters else None
        for transformed in self._transforms:
            transformed.check_count(inputs)
        if not inputs.channels:
            self.inputs = NoFields()
        self._bound = (inputs, outputs)

    def _fit_scalars(self, inputs: Source) -> None:
        if self.scalars is None:
            return
        kinds = ("none",) * inputs.space.parameters
        for transformed in self._transforms:
            kinds = transformed.parameter_kinds(inputs.scalars, inputs.space)
        self.scalars.fit(inputs.scalars, kinds)

    def prepare(self, data: SplitData, options: FitOptions, record: FitRecord) -> Task | None:
        training = data.training
        self._bind_spaces(*training.spaces)
        shard = self._shard(training, options.seed)
        images = (_images(source, self.group) for source in (training.inputs, training.outputs))
        sides = zip(("input", "output"), (self.inputs, self.outputs), images, strict=True)
        for done, (name, representation, source) in enumerate(sides):
            options.report("representations", done, 2, name)
            if processes.is_first() or shard is None:
                fit_representation(
                    representation, source, options, record, name=name, warns=self.warns
                )
            if shard is not None:
                restore = partial(representation.restore, space=source.space)
                share_fitted(representation, source, restore)
        options.report("representations", 2, 2)
        self._fit_scalars(training.inputs)
        self.predictor.bind(self.inputs.affine, self.outputs)
        asked = self.predictor.targets_nearest_codes or self.predictor.closed_form
        with one_isometry(self.outputs) if asked else nullcontext():
            with record.clock.stage(TRANSFORM.name):
                codes = self.encode_pairs(training, self.group, shard, options.scratch)
                held_out = self.encode_pairs(data.validation, scratch=options.scratch)
            with record.clock.stage(TRAINING.name):
                return self.predictor.prepare(codes, held_out, self.outputs, options.seed)

    def _shard(self, training: Pairs, seed: int) -> Shard | None:
        """Return this process's part of the training, if several processes share it."""
        if not self.predictor.data_parallel:
            return None
        parts = [describe(one) for one in (self.inputs, self.predictor, self.outputs)]
        return shard_of(len(training), repr((parts, self.symmetries, training.spaces, seed)))

    def complete(self, data: SplitData | None, options: FitOptions, record: FitRecord) -> None:
        self.predictor.complete()

    @property
    def code_operator(self) -> CodeOperator:
        return self

    @torch.no_grad()
    def encode_pairs(
        self,
        pairs: Pairs,
        group: Group = IDENTITY,
        shard: Shard | None = None,
        scratch: Scratch = IN_MEMORY,
    ) -> CodePairs:
        """Return the input and output codes of all pairs' images under some symmetries.

        With a `shard` only its samples are encoded. Output codes are what the predictor learns: by
        `encode`, or the nearest ones.
        """
        outputs: Encode = self.outputs.encode
        if self.predictor.targets_nearest_codes and self.outputs.compresses:
            outputs = NearestCodes(self.outputs)
        # A predictor on whole fields makes their images itself.
        whole = self.predictor.reads_fields and not self.inputs.compresses
        sides = (pairs.inputs.fields, pairs.outputs.fields)
        read, made = sides if shard is None else (shard.source(one) for one in sides)
        seen = IDENTITY if whole else group
        ways = (
            (self.input_code_size, read, seen),
            (self.outputs.code_size, made, group),
        )
        scratch.require(
            _SINGLE * len(images) * fields.shape[0] * size for size, fields, images in ways
        )
        scores = None
        if self.scalars is not None:
            own = slice(None) if shard is None else slice(shard.start, shard.stop)
            scores = self.scalars(pairs.inputs.scalars[own].to(self.scalars.mean.device))
        return CodePairs(
            _encode(self.inputs.encode, read, seen, scratch, scores),
            _encode(outputs, made, group, scratch),
            group=group,
            shard=shard,
            scratch=scratch,
        )

    def encode(self, fields: Tensor, parameters: Tensor | None = None) -> Tensor:
        """Return the codes of inputs: those of the fields, then the scaled parameters."""
        codes = self.inputs.encode(fields)
        if self.scalars is None:
            return codes
        assert parameters is not None
        return torch.cat([codes, self.scalars(parameters).to(codes.dtype)], 1)

    @property
    def input_code_size(self) -> int:
        """Return the length of the inputs' code, parameters included."""
        return self.inputs.code_size + self.inputs.space.parameters

    def check_values(self, inputs: Batch) -> None:
        """Raise if inputs have values that cannot be encoded."""
        self.inputs.check_values(inputs.fields)
        if self.scalars is not None:
            self.scalars.check_values(inputs.parameters.detach())

    def forward(self, fields: Tensor, parameters: Tensor | None = None) -> Tensor:
        if not self.average:
            return self.predict_once(fields, parameters)
        first, *others = self.group
        predicted = self._predict_images(fields, parameters)
        total = first.inverse(next(predicted))
        for symmetry, one in zip(others, predicted, strict=True):
            total = total + symmetry.inverse(one)
        return total / len(self.group)

    def _predict_images(self, fields: Tensor, parameters: Tensor | None) -> Iterator[Tensor]:
        """Yield the predictions of all images of fields: of few or exported ones in one batch."""
        if torch.compiler.is_compiling() or len(self.group) * fields.numel() <= _FEW_VALUES:
            images = torch.cat([symmetry(fields) for symmetry in self.group])
            repeated = None if parameters is None else parameters.repeat(len(self.group), 1)
            yield from self.predict_once(images, repeated).unflatten(0, (len(self.group), -1))
        else:
            for symmetry in self.group:
                yield self.predict_once(symmetry(fields), parameters)

    def predict_once(self, fields: Tensor, parameters: Tensor | None = None) -> Tensor:
        """Return the prediction without an average over images."""
        return self.outputs.decode(self.predictor(self.encode(fields, parameters)))

    def restore(self, tensors: Mapping[str, Tensor], inputs: Space, outputs: Space) -> Self:
        self._bind_spaces(inputs, outputs)
        self.inputs.restore(subset(tensors, "inputs"), inputs)
        if self.scalars is not None:
            self.scalars.restore(subset(tensors, "scalars"))
        self.outputs.restore(subset(tensors, "outputs"), outputs)
        self.predictor.bind(self.inputs.affine, self.outputs)
        self.predictor.restore(subset(tensors, "predictor"))
        return self


class RefinedOperator(FieldOperator):
    """A fitted base, followed by a correction that learns the true field from the base's.

    Where several processes train the correction together, the first one fits a base that only one
    can train.
    """

    def __init__(self, base: CodeOperator, correction: CodeOperator) -> None:
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

    def prepare(self, data: SplitData, options: FitOptions, record: FitRecord) -> Task | None:
        if not self._base_of_first:
            return self.base.prepare(data, options, record)
        if processes.is_first():
            fit_operator(self.base, data, options, record)
        inputs, outputs = data.training.spaces
        restore = partial(self.base.restore, inputs=inputs, outputs=outputs)
        share_fitted(self.base, data.training.inputs, restore)
        return None

    def complete(self, data: SplitData | None, options: FitOptions, record: FitRecord) -> None:
        assert data is not None
        if not self._base_of_first:
            self.base.complete(data, options, record)
        with record.clock.stage(TRANSFORM.name):
            predicted = SplitData(self._predicted(data.training), self._predicted(data.validation))
        fit_operator(self.correction, predicted, options, record, stage=CORRECTION.name)

    @property
    def completes_on_fields(self) -> bool:
        return True

    def _predicted(self, pairs: Pairs) -> Pairs:
        base = torch.no_grad()(self.base)

        def predict(batch: Batch) -> Tensor:
            predicted: Tensor = base(*batch.tensors)
            return predicted

        shape = pairs.outputs.space.shape
        fields: FieldSource = PredictedSource(pairs.inputs.batches, predict, shape)
        if in_memory(pairs.inputs.fields):
            fields = ArraySource(gather(fields))
        return Pairs(replace(pairs.outputs, fields=fields), pairs.outputs)

    def forward(self, fields: Tensor, parameters: Tensor | None = None) -> Tensor:
        return self.correction(self.base(fields, parameters))

    @property
    def code_operator(self) -> CodeOperator:
        return self.base

    def restore(self, tensors: Mapping[str, Tensor], inputs: Space, outputs: Space) -> Self:
        self.base.restore(subset(tensors, "base"), inputs, outputs)
        self.correction.restore(subset(tensors, "correction"), outputs, outputs)
        return self


def fit_operator(
    operator: FieldOperator,
    data: SplitData,
    options: FitOptions,
    record: FitRecord,
    *,
    stage: str = TRAINING.name,
) -> None:
    """Fit an operator; the training of its network is recorded as `stage`."""
    task = operator.prepare(data, options, record)
    if task is not None:
        train_members([task], [(options, record)], stage=stage)
    operator.complete(data, options, record)


def _images(source: Source, group: Group) -> Source:
    return source if len(group) == 1 else replace(source, fields=ImageSource(source.fields, group))


def _encode(
    encode: Encode,
    source: FieldSource,
    group: Group,
    scratch: Scratch,
    scores: Tensor | None = None,
) -> Tensor:
    """Return the codes of all fields' images, symmetry after symmetry, in one tensor.

    With `scores` (samples, P) these are the last entries of each sample's code.
    """
    codes = torch.empty(0)
    start, beside = 0, 0 if scores is None else scores.shape[1]
    for part in source.workers.map(partial(_image_codes, encode=encode, group=group), source):
        if not start:
            size = part.shape[2] + beside
            codes = scratch.empty(len(group), source.shape[0], size, like=part)
        codes[:, start : start + part.shape[1], : part.shape[2]] = part
        start += part.shape[1]
    if scores is not None:
        codes[..., codes.shape[2] - beside :] = scores
    return codes.flatten(0, 1)


def _image_codes(chunks: Iterator[Tensor], encode: Encode, group: Group) -> Tensor:
    """Return the codes (symmetries, samples, code size) of the images of some fields."""
    found = []
    for chunk in chunks:
        images = [encode(symmetry(chunk)) for symmetry in group]
        found.append(images[0][None] if len(images) == 1 else torch.stack(images))
    return found[0] if len(found) == 1 else torch.cat(found, 1)
