"""Maps from input field to solution field that can be fitted: latent, refined, Fourier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.fields.patches import PatchLayout
from twoscale.fields.source import FieldSource, map_fields
from twoscale.fields.symmetries import IDENTITY, Group, ImageSource, symmetry_group
from twoscale.operators.context import FieldPairs, FitContext, train_members
from twoscale.predictors.base import CodePredictor, ImagePairs, load_weights
from twoscale.representation import Normaliser, Representation
from twoscale.representation.base import subset
from twoscale.representation.geometry import one_isometry
from twoscale.representation.nearest import NearestCodes
from twoscale.runtime.precision import check_variation, tensor_cores
from twoscale.training import Pairs, Plan, Task

Encode = Callable[[Tensor], Tensor]


class FieldOperator(nn.Module, ABC):
    """A map from input fields to solution fields, both (batch, height, width)."""

    def check(self, shape: tuple[int, int], samples: int) -> None:
        """Raise if the operator cannot be fitted on this many fields of this shape."""

    def fit(self, training: FieldPairs, validation: FieldPairs, context: FitContext) -> Self:
        """Fit on training pairs, choosing weights on validation pairs."""
        task = self.prepare(training, validation, context)
        if task is not None:
            train_members([task], [context])
        return self.complete(training, validation, context)

    def prepare(
        self, training: FieldPairs, validation: FieldPairs, context: FitContext
    ) -> Task | None:
        """Do what comes before the training on codes, and return that training, if there is one.

        Networks on codes are small: those of many surrogates are best trained together.
        """
        return None

    def complete(self, training: FieldPairs, validation: FieldPairs, context: FitContext) -> Self:
        """Do what comes after the training on codes."""
        return self

    @property
    def completes_on_fields(self) -> bool:
        """Say whether `complete` still needs the fields."""
        return False

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        """Take the fitted state from `tensors`, named as in `state_dict`."""

    @property
    def latent(self) -> LatentOperator | None:
        """Return the part that works on codes, if there is one."""
        return None

    @property
    def layout(self) -> PatchLayout | None:
        """Return the patches whose borders are this operator's native seams, if it has any."""
        return self.latent.output_representation.layout if self.latent is not None else None


class LatentOperator(FieldOperator):
    """Encode the input, predict the output's code from the input's, decode it.

    With symmetries all images of the training fields under them are training fields; `average`
    predicts from all images of an input as well, and takes the mean.
    """

    def __init__(
        self,
        input_representation: Representation,
        predictor: CodePredictor,
        output_representation: Representation,
        *,
        symmetries: str = "none",
        average: bool = False,
    ) -> None:
        super().__init__()
        self.input_representation = input_representation
        self.predictor = predictor
        self.output_representation = output_representation
        self.symmetries = symmetries
        self.average = average
        predictor.attach(output_representation)

    def check(self, shape: tuple[int, int], samples: int) -> None:
        fields = len(symmetry_group(self.symmetries, shape)) * samples
        self.input_representation.check(shape, fields)
        self.output_representation.check(shape, fields)

    def prepare(
        self, training: FieldPairs, validation: FieldPairs, context: FitContext
    ) -> Task | None:
        seed, inputs, outputs = context.seed, self.input_representation, self.output_representation
        group = symmetry_group(self.symmetries, training.inputs.shape[1:])
        images = _images(training, group)
        context.report("representations", 0, 2, "input PCA")
        context.fit_representation(inputs, images.inputs, seed=seed, name="input")
        context.report("representations", 1, 2, "output PCA")
        context.fit_representation(outputs, images.outputs, seed=seed + 1, name="output")
        context.report("representations", 2, 2)
        with one_isometry(outputs):
            with context.clock.stage("transform"):
                codes, held_out = self.encode_pairs(training, group), self.encode_pairs(validation)
            with context.clock.stage("training"):
                return self.predictor.prepare(codes, held_out, outputs, seed)

    def complete(self, training: FieldPairs, validation: FieldPairs, context: FitContext) -> Self:
        self.predictor.complete()
        return self

    @property
    def latent(self) -> LatentOperator:
        return self

    @torch.no_grad()
    def encode_pairs(self, pairs: FieldPairs, group: Group = IDENTITY) -> ImagePairs:
        """Return the input and output codes of all pairs' images under some symmetries.

        Output codes are what the predictor learns: by `encode`, or the nearest ones.
        """
        outputs: Encode = self.output_representation.encode
        if self.predictor.nearest:
            outputs = NearestCodes(self.output_representation)
        seen = IDENTITY if self.predictor.reads_fields else group
        return ImagePairs(
            _encode(self.input_representation.encode, pairs.inputs, seen),
            _encode(outputs, pairs.outputs, group),
            group,
        )

    def forward(self, fields: Tensor) -> Tensor:
        if not self.average:
            return self._predict(fields)
        height, width = fields.shape[1:]
        group = symmetry_group(self.symmetries, (height, width))
        total = torch.zeros_like(fields)
        for symmetry in group:
            total += symmetry.inverse(self._predict(symmetry(fields)))
        return total / len(group)

    def _predict(self, fields: Tensor) -> Tensor:
        codes = self.predictor(self.input_representation.encode(fields))
        return self.output_representation.decode(codes)

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.input_representation.restore(subset(tensors, "input_representation"))
        self.predictor.restore(subset(tensors, "predictor"))
        self.output_representation.restore(subset(tensors, "output_representation"))
        return self


class FullFieldOperator(FieldOperator):
    """A network from normalised field to normalised field, trained on the mean squared error."""

    def __init__(self, make_network: Callable[[int], nn.Module], plan: Plan) -> None:
        super().__init__()
        self.make_network = make_network
        self.plan = plan
        self.input_scale = Normaliser()
        self.output_scale = Normaliser()
        self.network = make_network(0)

    def complete(
        self,
        training: FieldPairs,
        validation: FieldPairs,
        context: FitContext,
        *,
        stage: str = "training",
    ) -> Self:
        with context.clock.stage("transform"):
            self.input_scale.fit(training.inputs)
            self.output_scale.fit(training.outputs)
            pairs = self._normalised(training)
            held_out = self._normalised(validation)
        if stage == "training":  # in front of other networks the representations have told already
            check_variation(*self.input_scale.mean_and_spread, "training input")
            check_variation(*self.output_scale.mean_and_spread, "training output")
        self.network = self.make_network(context.seed).to(pairs.inputs.device)
        task = Task(self.network, pairs, held_out, _mean_square, self.plan, context.seed)
        train_members([task], [context], stage=stage)
        return self

    def _normalised(self, pairs: FieldPairs) -> Pairs:
        inputs = self.input_scale.apply_to(pairs.inputs)
        return Pairs(inputs, self.output_scale.apply_to(pairs.outputs))

    def forward(self, fields: Tensor) -> Tensor:
        with tensor_cores():
            return self.output_scale.undo(self.network(self.input_scale(fields)))

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        load_weights(self, tensors)
        return self


class RefinedOperator(FieldOperator):
    """Another operator's prediction, corrected by a field-to-field network."""

    def __init__(self, base: FieldOperator, correction: FullFieldOperator) -> None:
        super().__init__()
        self.base = base
        self.correction = correction

    def check(self, shape: tuple[int, int], samples: int) -> None:
        self.base.check(shape, samples)

    def prepare(
        self, training: FieldPairs, validation: FieldPairs, context: FitContext
    ) -> Task | None:
        return self.base.prepare(training, validation, context)

    def complete(self, training: FieldPairs, validation: FieldPairs, context: FitContext) -> Self:
        self.base.complete(training, validation, context)
        with context.clock.stage("transform"):
            predicted = self._predicted(training)
            held_out = self._predicted(validation)
        self.correction.complete(predicted, held_out, context, stage="refinement")
        return self

    @property
    def completes_on_fields(self) -> bool:
        return True

    def _predicted(self, pairs: FieldPairs) -> FieldPairs:
        return FieldPairs(map_fields(pairs.inputs, torch.no_grad()(self.base)), pairs.outputs)

    def forward(self, fields: Tensor) -> Tensor:
        return self.correction(self.base(fields))

    @property
    def latent(self) -> LatentOperator | None:
        return self.base.latent

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.base.restore(subset(tensors, "base"))
        self.correction.restore(subset(tensors, "correction"))
        return self


def _images(pairs: FieldPairs, group: Group) -> FieldPairs:
    if len(group) == 1:
        return pairs
    return FieldPairs(ImageSource(pairs.inputs, group), ImageSource(pairs.outputs, group))


def _encode(encode: Encode, source: FieldSource, group: Group) -> Tensor:
    """Return the codes of all fields' images, symmetry after symmetry, in one tensor."""
    samples = source.shape[0]
    codes = torch.empty(0)
    start = 0
    for chunk in source.chunks():
        for place, symmetry in enumerate(group):
            part = encode(symmetry(chunk))
            if not start and not place:
                codes = part.new_empty(len(group), samples, part.shape[1])
            codes[place, start : start + len(part)] = part
        start += len(chunk)
    return codes.flatten(0, 1)


def _mean_square(predicted: Tensor, true: Tensor) -> Tensor:
    return (predicted - true).square().mean()
