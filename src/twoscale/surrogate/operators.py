"""Maps from input field to solution field that can be fitted: latent, refined, Fourier."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch import Tensor, nn

from twoscale.clock import Clock
from twoscale.errors import TwoscaleError
from twoscale.objectives import code_weights, weighted_code_loss
from twoscale.patches import PatchLayout
from twoscale.predictors import MLP
from twoscale.representation import Representation
from twoscale.representation.base import subset
from twoscale.source import FieldSource, gather, map_fields
from twoscale.training import Pairs, Plan, Progress, train


@dataclass(frozen=True)
class FieldPairs:
    """Input and solution fields of the same samples, each a chunked source."""

    inputs: FieldSource
    outputs: FieldSource


@dataclass
class FitRun:
    """What accompanies a fit: seed, stage timings, progress, and the loss histories it leaves."""

    seed: int = 0
    clock: Clock = field(default_factory=Clock)
    progress: Progress | None = None
    histories: dict[str, dict[str, Any]] = field(default_factory=dict)

    def train(
        self,
        name: str,
        network: nn.Module,
        training: Pairs,
        validation: Pairs,
        loss: Callable[[Tensor, Tensor], Tensor],
        plan: Plan,
    ) -> None:
        with self.clock.stage(name):
            history = train(
                network,
                training,
                validation,
                loss,
                plan,
                seed=self.seed,
                progress=self.progress,
                name=name,
            )
        self.histories[name] = history.as_dict()


class FieldOperator(nn.Module, ABC):
    """A map from input fields to solution fields, both (batch, height, width)."""

    def check(self, shape: tuple[int, int], samples: int) -> None:
        """Raise if the operator cannot be fitted on this many fields of this shape."""

    @abstractmethod
    def fit(self, training: FieldPairs, validation: FieldPairs, run: FitRun) -> Self:
        """Fit on training pairs, choosing weights on validation pairs."""

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
    """Encode the input, predict the output's code from the input's, decode it."""

    def __init__(
        self,
        input_representation: Representation,
        output_representation: Representation,
        *,
        hidden: tuple[int, ...],
        objective: str,
        plan: Plan,
    ) -> None:
        super().__init__()
        self.input_representation = input_representation
        self.output_representation = output_representation
        self.predictor: nn.Module | None = None
        self.hidden = hidden
        self.objective = objective
        self.plan = plan

    def check(self, shape: tuple[int, int], samples: int) -> None:
        self.input_representation.check(shape, samples)
        self.output_representation.check(shape, samples)

    def fit(self, training: FieldPairs, validation: FieldPairs, run: FitRun) -> Self:
        self._fit_representations(training, run)
        with run.clock.stage("transform"):
            pairs = self.encode_pairs(training)
            held_out = self.encode_pairs(validation)
        predictor = self._make_predictor(run.seed).to(pairs.inputs.device)
        weights = code_weights(
            self.objective,
            self.output_representation.block_sizes,
            pairs.targets.var(0, unbiased=False),
        )
        loss = weighted_code_loss(weights)
        run.train("training", predictor, pairs, held_out, loss, self.plan)
        self.predictor = predictor
        return self

    def _fit_representations(self, training: FieldPairs, run: FitRun) -> None:
        if run.progress:
            run.progress("representations", 0, 2, "input PCA")
        with run.clock.stage("pca_input"):
            self.input_representation.fit(training.inputs, seed=run.seed)
        if run.progress:
            run.progress("representations", 1, 2, "output PCA")
        clock = Clock()
        with clock.stage("pca_output"):
            self.output_representation.fit(training.outputs, seed=run.seed + 1, clock=clock)
        # A chain has timed its own stages; what is left of the whole is overhead.
        stages = {k: v for k, v in clock.seconds.items() if k != "pca_output"}
        if stages:
            left = clock.seconds["pca_output"] - sum(stages.values())
            stages["pca_overhead"] = stages.get("pca_overhead", 0.0) + left
        run.clock.seconds.update(stages or clock.seconds)
        if run.progress:
            run.progress("representations", 2, 2, "")

    def _make_predictor(self, seed: int) -> MLP:
        sizes = (self.input_representation.code_size, *self.hidden)
        return MLP((*sizes, self.output_representation.code_size), seed=seed)

    @property
    def latent(self) -> LatentOperator:
        return self

    @torch.no_grad()
    def encode_pairs(self, pairs: FieldPairs) -> Pairs:
        """Return the input and output codes of all pairs."""
        inputs = [self.input_representation.encode(chunk) for chunk in pairs.inputs.chunks()]
        outputs = [self.output_representation.encode(chunk) for chunk in pairs.outputs.chunks()]
        return Pairs(torch.cat(inputs), torch.cat(outputs))

    def forward(self, fields: Tensor) -> Tensor:
        assert self.predictor is not None
        codes = self.predictor(self.input_representation.encode(fields))
        return self.output_representation.decode(codes)

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.input_representation.restore(subset(tensors, "input_representation"))
        self.output_representation.restore(subset(tensors, "output_representation"))
        self.predictor = self._make_predictor(0)
        load_weights(self.predictor, subset(tensors, "predictor"))
        return self


class Normaliser(nn.Module):
    """One mean and one standard deviation for all nodes of all training fields."""

    mean: Tensor
    std: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("std", torch.ones(()))

    def fit(self, fields: FieldSource) -> Self:
        total = square = shift = count = 0.0
        device = None
        for chunk in fields.chunks():
            device = chunk.device
            if not count:  # the first value of all, which may be zero: one shift for all sums
                shift = float(chunk.flatten()[0])
            values = chunk.double() - shift
            total += float(values.sum())
            square += float(values.square().sum())
            count += values.numel()
        mean = total / count
        spread = max(square / count - mean**2, 0.0) ** 0.5
        self.mean = torch.tensor(shift + mean, dtype=torch.float32, device=device)
        self.std = torch.tensor(spread or 1.0, dtype=torch.float32, device=device)
        return self

    def apply_to(self, fields: FieldSource) -> Tensor:
        """Return all fields, normalised, as one tensor."""
        return gather(map_fields(fields, self))

    def forward(self, fields: Tensor) -> Tensor:
        return (fields - self.mean) / self.std

    def undo(self, fields: Tensor) -> Tensor:
        return fields * self.std + self.mean


class FullFieldOperator(FieldOperator):
    """A network from normalised field to normalised field, trained on the mean squared error."""

    def __init__(self, make_network: Callable[[int], nn.Module], plan: Plan) -> None:
        super().__init__()
        self.make_network = make_network
        self.plan = plan
        self.input_scale = Normaliser()
        self.output_scale = Normaliser()
        self.network = make_network(0)

    def fit(
        self, training: FieldPairs, validation: FieldPairs, run: FitRun, *, stage: str = "training"
    ) -> Self:
        with run.clock.stage("transform"):
            self.input_scale.fit(training.inputs)
            self.output_scale.fit(training.outputs)
            pairs = self._normalised(training)
            held_out = self._normalised(validation)
        self.network = self.make_network(run.seed).to(pairs.inputs.device)
        run.train(stage, self.network, pairs, held_out, _mean_square, self.plan)
        return self

    def _normalised(self, pairs: FieldPairs) -> Pairs:
        inputs = self.input_scale.apply_to(pairs.inputs)
        return Pairs(inputs, self.output_scale.apply_to(pairs.outputs))

    def forward(self, fields: Tensor) -> Tensor:
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

    def fit(self, training: FieldPairs, validation: FieldPairs, run: FitRun) -> Self:
        self.base.fit(training, validation, run)
        with run.clock.stage("transform"):
            predicted = self._predicted(training)
            held_out = self._predicted(validation)
        self.correction.fit(predicted, held_out, run, stage="refinement")
        return self

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


def _mean_square(predicted: Tensor, true: Tensor) -> Tensor:
    return (predicted - true).square().mean()


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor]) -> None:
    """Load a state dict, reporting a mismatch as a damaged artifact."""
    try:
        module.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise TwoscaleError(f"the weights do not fit the model: {error}".split("\n")[0]) from error
