"""Ridge regression, ridge regression with a network for its errors, and kernel regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import hypot, prod
from typing import Annotated, Self

import torch
from torch import Tensor, nn

from twoscale.domain.symmetries import IDENTITY, is_closed
from twoscale.errors import TwoscaleError
from twoscale.predictors.affine import affine_work, fit_affine
from twoscale.predictors.base import (
    BatchSize,
    CodePredictor,
    Epochs,
    LearningRate,
    Objective,
    Patience,
    WeightDecay,
)
from twoscale.predictors.cost import PredictorCost
from twoscale.predictors.kernel import (
    KERNELS,
    LENGTH_SCALES,
    TUNING_SAMPLES,
    KernelRegression,
    fit_kernel,
    kernel_bytes,
    kernel_work,
)
from twoscale.predictors.mlp import (
    MLP,
    SEARCH_EPOCHS,
    HiddenLayers,
    HiddenWidth,
    NetworkPredictor,
    network_work,
)
from twoscale.representation import Representation
from twoscale.representation.base import subset
from twoscale.representation.geometry import channel_metrics, decoder_isometry
from twoscale.runtime.memory import free_memory, size_text
from twoscale.settings import POSITIVE, choice, real, whole
from twoscale.training import CodePairs, Task

_GAIN = 1e-3  # share of the affine map's error that a network must remove to be kept

Ridge = Annotated[
    float | None,
    real(
        "ridge strength, relative to the largest eigenvalue; none: chosen on validation fields",
        0.0,
        1.0,
        "a fraction from 0 to 1",
    ),
]


@dataclass(frozen=True)
class _FieldErrors:
    """Errors of the decoded fields, computed from codes without decoding them."""

    metric: Tensor  # (code, coordinates): ||e @ metric|| is the norm of the field error of e
    channels: tuple[Tensor, ...]  # the same for each channel, where there are several
    size: float  # norm of all validation fields; both in the decoder's unit

    @classmethod
    def of(cls, decoder: Representation, validation: CodePairs) -> _FieldErrors:
        metric = decoder_isometry(decoder).to_coordinates
        norms = []
        for part in validation.parts(prod(decoder.space.shape)):
            with torch.no_grad():
                fields = decoder.decode(validation.targets[part]).double() / decoder.unit
            norms.append(float(fields.norm()))
        return cls(metric, channel_metrics(decoder), hypot(*norms) or 1.0)

    @torch.no_grad()
    def relative(self, predict: Callable[[Tensor], Tensor], pairs: CodePairs) -> float:
        """Return the relative L2 error of the decoded fields of predicted codes."""
        norms = []
        for part in pairs.parts():
            error = (predict(pairs.inputs[part]) - pairs.targets[part]).double()
            norms.append(float((error @ self.metric).norm()))
        return hypot(*norms) / self.size


class Affine(NetworkPredictor):
    """The affine map between codes, by ridge regression in double precision.

    Parameters
    ----------
    ridge
        Strength of the regularisation, from 0 to 1: a share of the largest eigenvalue of the
        inputs' Gram matrix. By default (None) the best of 40 values on the validation fields.
    objective
        With "field" it learns the codes of the nearest fields; the other objectives give the same
        map.

    Attributes
    ----------
    network
        The fitted map: a `DenseNetwork` without hidden layers, float32.
    chosen
        "ridge" and "validation_error", the relative L2 error of the decoded validation fields.

    Examples
    --------
    >>> Affine(ridge=1e-6)
    Affine(ridge=1e-06)
    """

    name = "affine"
    title = "ridge regression"
    closed_form = True
    cost = PredictorCost(affine_work, linear=True)

    def __init__(self, *, ridge: Ridge = None, objective: Objective = "block-balanced") -> None:
        super().__init__(objective=objective)
        self.ridge = ridge

    @property
    def uses_validation(self) -> bool:
        return self.ridge is None

    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> None:
        errors = _FieldErrors.of(decoder, validation)
        fit = fit_affine(
            training,
            validation,
            errors.metric,
            channels=errors.channels,
            strength=self.ridge,
        )
        self.network = fit.network()
        error = errors.relative(self, validation)
        self.chosen = {"ridge": fit.strength, "validation_error": error}


class AffineMLP(CodePredictor):
    """The affine map, plus a network trained on its errors.

    The network is dropped (its last layer is set to zero) unless it lowers the error of the decoded
    validation fields by at least 0.1 %.

    Parameters
    ----------
    ridge
        Strength of the affine map's regularisation, as in `Affine`.
    objective, hidden_layers, hidden_width
        Of the network, as in `MLP`.
    epochs, batch_size, learning_rate, weight_decay, patience
        Of its training, as in `MLP`.

    Attributes
    ----------
    affine, correction
        The fitted `Affine` and `MLP`; the prediction is their sum.
    chosen
        "affine_ridge", "affine_validation_error", "correction_kept" and "validation_error".

    Examples
    --------
    >>> AffineMLP(hidden_width=64)
    AffineMLP(hidden_width=64)
    """

    name = "affine-mlp"
    title = "ridge regression, and a network for its errors"
    trains_together = True
    cost = PredictorCost(
        lambda sizes: affine_work(sizes) + network_work(sizes), SEARCH_EPOCHS, after=("affine",)
    )

    def __init__(
        self,
        *,
        ridge: Ridge = None,
        objective: Objective = "block-balanced",
        hidden_layers: HiddenLayers = 3,
        hidden_width: HiddenWidth = 128,
        epochs: Epochs = 500,
        batch_size: BatchSize = 32,
        learning_rate: LearningRate = 1e-3,
        weight_decay: WeightDecay = 1e-4,
        patience: Patience = 30,
    ) -> None:
        super().__init__(objective=objective)
        self.affine = Affine(ridge=ridge, objective=objective)
        self.correction = MLP(
            objective=objective,
            hidden_layers=hidden_layers,
            hidden_width=hidden_width,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            patience=patience,
        )
        self._pending: tuple[float, CodePairs, _FieldErrors] | None = None

    @torch.no_grad()
    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> Task:
        self.affine.prepare(training, validation, decoder, seed)
        self.chosen = {f"affine_{name}": value for name, value in self.affine.chosen.items()}
        rest, held_out = self._errors(training), self._errors(validation)
        # Networks train best on targets of size one.
        square = rest.mean(lambda part: rest.targets[part].double().square().mean())
        scale = float(square.sqrt()) or 1.0
        self._pending = (scale, validation, _FieldErrors.of(decoder, validation))
        for pairs in (rest, held_out):
            pairs.targets.div_(scale)
        return self.correction.prepare(rest, held_out, decoder, seed)

    def _errors(self, pairs: CodePairs) -> CodePairs:
        """Return the inputs with what the affine map misses of the targets."""
        rest = pairs.scratch.empty(*pairs.targets.shape, like=pairs.targets)
        for part in pairs.parts():
            torch.sub(pairs.targets[part], self.affine(pairs.inputs[part]), out=rest[part])
        return replace(pairs, targets=rest)

    @torch.no_grad()
    def complete(self) -> None:
        assert self._pending is not None
        scale, validation, errors = self._pending
        self._pending = None
        self.correction.complete()
        last = self.correction.trained.linear[-1]
        for value in last.parameters():
            value.mul_(scale)
        error = errors.relative(self, validation)
        kept = error < (1 - _GAIN) * self.chosen["affine_validation_error"]
        if not kept:
            error = self.chosen["affine_validation_error"]
            for value in last.parameters():
                value.zero_()
        self.chosen |= {"correction_kept": kept, "validation_error": error}

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.affine.restore(subset(tensors, "affine"))
        self.correction.restore(subset(tensors, "correction"))
        return self

    @property
    def trained(self) -> nn.Module:
        return self

    def forward(self, codes: Tensor) -> Tensor:
        return self.affine(codes) + self.correction(codes)


class Kernel(CodePredictor):
    """Kernel ridge regression between codes, in double precision.

    All kernel values between training samples are in memory at once. A fit that would not find
    room says how many samples it has room for. Where their kernel values with all validation
    samples would not fit either, settings are chosen on the first ones.

    Parameters
    ----------
    ridge
        Strength of the regularisation, from 0 to 1: a share of the kernel matrix's largest
        eigenvalue. By default (None) the best of 20 values on the validation fields.
    kernel
        "matern-5/2" or "matern-3/2". By default (None) the better one on the validation fields.
    length_scale
        In units of the median distance between codes. By default (None) the best of 1, 2, 4 and 8
        on the validation fields.
    kernel_samples
        Use the first so many training samples. By default (None) all of them.
    objective
        With "field" it learns the codes of the nearest fields; the other objectives give the same
        map.

    Attributes
    ----------
    regression
        The fitted `KernelRegression`.
    chosen
        "kernel", "length_scale", "ridge" and "validation_error", the relative L2 error of the
        decoded validation fields.

    Examples
    --------
    >>> Kernel(kernel="matern-3/2", kernel_samples=4000)
    Kernel(kernel='matern-3/2', kernel_samples=4000)
    """

    name = "kernel"
    title = "kernel ridge regression"
    closed_form = True
    cost = PredictorCost(
        kernel_work,
        after=("affine", "affine-mlp"),
        first_samples=TUNING_SAMPLES,
        samples_setting="kernel_samples",
        tuned=("kernel", "length_scale", "ridge"),
    )

    def __init__(
        self,
        *,
        ridge: Ridge = None,
        kernel: Annotated[
            str | None, choice("kernel; none: chosen on validation fields", KERNELS)
        ] = None,
        length_scale: Annotated[
            float | None,
            real(
                "length scale of the kernel, in median distances; none: chosen on validation "
                "fields",
                *POSITIVE,
            ),
        ] = None,
        kernel_samples: Annotated[
            int | None, whole("most training fields the kernel uses; none: all")
        ] = None,
        objective: Objective = "block-balanced",
    ) -> None:
        super().__init__(objective=objective)
        self.kinds = tuple(KERNELS) if kernel is None else (kernel,)
        self.length_scales = LENGTH_SCALES if length_scale is None else (length_scale,)
        self.ridge = ridge
        self.kernel_samples = kernel_samples
        self.regression: KernelRegression | None = None

    @property
    def uses_validation(self) -> bool:
        return self.ridge is None or len(self.kinds) > 1 or len(self.length_scales) > 1

    def prepare(
        self, training: CodePairs, validation: CodePairs, decoder: Representation, seed: int
    ) -> None:
        errors = _FieldErrors.of(decoder, validation)
        if not is_closed(training.group):  # then images are treated as samples of their own
            training = replace(training, group=IDENTITY)
        codes = self._limited(training)
        few = validation.scratch.rows(len(validation), len(codes.inputs))
        self.regression, self.chosen = fit_kernel(
            codes,
            CodePairs(validation.inputs[:few], validation.targets[:few]).double(),
            errors.metric,
            channels=errors.channels,
            group=training.group,
            kinds=self.kinds,
            length_scales=self.length_scales,
            strength=self.ridge,
        )
        self.chosen["validation_error"] = errors.relative(self, validation)

    def _limited(self, training: CodePairs) -> CodePairs:
        """Return the first `kernel_samples` samples with all their images, if memory allows."""
        images = len(training.group)
        samples = min(len(training) // images, self.kernel_samples or len(training))
        needed = kernel_bytes(samples, training.group)
        free = free_memory(training.inputs.device)
        if not training.inputs.is_cuda:
            free = min(free, training.scratch.memory or free)
        if needed > free:
            fitting = int(samples * (free / needed) ** 0.5)
            raise TwoscaleError(
                f"a kernel on {samples} training fields needs {size_text(needed)} of memory, "
                f"{size_text(free)} are free: set kernel_samples to at most {fitting}, "
                "or use another predictor"
            )
        kept = (
            codes.unflatten(0, (images, -1))[:, :samples].flatten(0, 1)
            for codes in (training.inputs, training.targets)
        )
        return CodePairs(*kept).double()

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.regression = KernelRegression.restored(subset(tensors, "regression"))
        return self

    def forward(self, codes: Tensor) -> Tensor:
        assert self.regression is not None
        return self.regression(codes)
