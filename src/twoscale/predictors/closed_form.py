"""Predictors in closed form: affine, affine with a network on what it leaves, kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.fields.symmetries import is_closed
from twoscale.parts import register
from twoscale.predictors.affine import CodePairs, fit_affine
from twoscale.predictors.base import CodePredictor, ImagePairs
from twoscale.predictors.kernel import (
    KERNELS,
    LENGTH_SCALES,
    KernelRegression,
    fit_kernel,
    kernel_bytes,
)
from twoscale.predictors.mlp import MLP, NetworkPredictor
from twoscale.representation import Representation
from twoscale.representation.base import subset
from twoscale.representation.geometry import channel_metrics, decoder_isometry
from twoscale.runtime.memory import free_memory, size_text
from twoscale.training import Pairs, Task

# The share of the error that a network must remove to be kept: less is chance, and not worth it.
_GAIN = 1e-3


@dataclass(frozen=True)
class _Judge:
    """Errors of codes as errors of decoded fields."""

    metric: Tensor  # (code, coordinates): ||e @ metric|| is the norm of what e adds to a field
    channels: tuple[Tensor, ...]  # the same for each channel, where there are several
    size: float  # norm of all validation fields, in the decoder's unit as well

    @classmethod
    def of(cls, decoder: Representation, validation: Pairs) -> _Judge:
        metric = decoder_isometry(decoder).to_coordinates
        with torch.no_grad():
            fields = decoder.decode(validation.targets).double() / decoder.unit
            size = float(fields.norm())
        return cls(metric, channel_metrics(decoder), size or 1.0)

    def error(self, predicted: Tensor, true: Tensor) -> float:
        """Return the relative L2 error of the decoded fields."""
        return float(((predicted - true).double() @ self.metric).norm()) / self.size


@register
class Affine(NetworkPredictor):
    """The best affine map, by ridge regression.

    `ridge` is the strength of the regularisation relative to the largest eigenvalue; without one
    it is chosen on the validation fields.

    >>> Affine()
    Affine()
    """

    name = "affine"
    title = "ridge regression"
    closed_form = True

    def __init__(self, *, ridge: float | None = None, objective: str = "block-balanced") -> None:
        super().__init__(objective=objective)
        self.ridge = ridge

    def prepare(
        self, training: Pairs, validation: Pairs, decoder: Representation, seed: int
    ) -> None:
        judge = _Judge.of(decoder, validation)
        fit = fit_affine(
            CodePairs.of(training.inputs, training.targets),
            CodePairs.of(validation.inputs, validation.targets),
            judge.metric,
            channels=judge.channels,
            strength=self.ridge,
        )
        self.network = fit.network()
        with torch.no_grad():
            error = judge.error(self(validation.inputs), validation.targets)
        self.chosen = {"ridge": fit.strength, "validation_error": error}


@register
class AffineMLP(CodePredictor):
    """The affine map, plus a network trained on what it leaves.

    The network is dropped unless the decoded validation fields are better with it, by a thousandth
    at least. `ridge` is that of `Affine`, the other arguments are those of `MLP`.
    """

    name = "affine-mlp"
    title = "ridge regression, and a network on what it leaves"

    def __init__(
        self,
        *,
        ridge: float | None = None,
        objective: str = "block-balanced",
        hidden_layers: int = 3,
        hidden_width: int = 128,
        epochs: int = 500,
        batch_size: int = 32,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        patience: int = 30,
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
        self._left: tuple[float, Pairs, _Judge] | None = None

    @torch.no_grad()
    def prepare(
        self, training: ImagePairs, validation: Pairs, decoder: Representation, seed: int
    ) -> Task:
        self.affine.prepare(training, validation, decoder, seed)
        self.chosen = {f"affine_{name}": value for name, value in self.affine.chosen.items()}
        rest, held_out = self._rest(training), self._rest(validation)
        # A network learns numbers around one most easily.
        scale = float(rest.targets.double().square().mean().sqrt()) or 1.0
        self._left = (scale, validation, _Judge.of(decoder, validation))
        for pairs in (rest, held_out):
            pairs.targets.div_(scale)
        return self.correction.prepare(rest, held_out, decoder, seed)

    def _rest(self, pairs: Pairs) -> Pairs:
        return Pairs(pairs.inputs, pairs.targets - self.affine(pairs.inputs))

    @torch.no_grad()
    def complete(self) -> None:
        assert self._left is not None
        scale, validation, judge = self._left
        self._left = None
        self.correction.complete()
        last = self.correction.trained.linear[-1]
        for value in last.parameters():
            value.mul_(scale)
        error = judge.error(self(validation.inputs), validation.targets)
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


@register
class Kernel(CodePredictor):
    """Kernel ridge regression; what is not given is chosen on the validation fields.

    `kernel` is one of `KERNELS`, `length_scale` is in units of the median distance between codes,
    `ridge` is relative to the largest eigenvalue. All values of the kernel between training samples
    are in memory at once, so `kernel_samples` may limit their number: the first ones are used.
    """

    name = "kernel"
    title = "kernel ridge regression"
    closed_form = True

    def __init__(
        self,
        *,
        ridge: float | None = None,
        kernel: str | None = None,
        length_scale: float | None = None,
        kernel_samples: int | None = None,
        objective: str = "block-balanced",
    ) -> None:
        super().__init__(objective=objective)
        if kernel is not None and kernel not in KERNELS:
            raise TwoscaleError(f"no kernel is called '{kernel}': known are {', '.join(KERNELS)}")
        self.kinds = tuple(KERNELS) if kernel is None else (kernel,)
        self.length_scales = LENGTH_SCALES if length_scale is None else (length_scale,)
        self.ridge = ridge
        self.most = kernel_samples
        self.regression: KernelRegression | None = None

    def prepare(
        self, training: ImagePairs, validation: Pairs, decoder: Representation, seed: int
    ) -> None:
        judge = _Judge.of(decoder, validation)
        if not is_closed(training.group):  # then images are samples as any others
            training = ImagePairs(training.inputs, training.targets)
        self.regression, self.chosen = fit_kernel(
            self._limited(training),
            CodePairs.of(validation.inputs, validation.targets),
            judge.metric,
            channels=judge.channels,
            group=training.group,
            kinds=self.kinds,
            length_scales=self.length_scales,
            strength=self.ridge,
        )
        error = judge.error(self(validation.inputs), validation.targets)
        self.chosen["validation_error"] = error

    def _limited(self, training: ImagePairs) -> CodePairs:
        """Return the samples that are used, with all their images."""
        images = len(training.group)
        samples = min(len(training) // images, self.most or len(training))
        needed = kernel_bytes(samples, training.group)
        free = free_memory(training.inputs.device)
        if needed > free:
            fitting = int(samples * (free / needed) ** 0.5)
            raise TwoscaleError(
                f"a kernel on {samples} training fields needs {size_text(needed)} of memory, "
                f"{size_text(free)} are free: set kernel_samples to at most {fitting}, "
                "or use another predictor"
            )
        return CodePairs.of(
            *(
                codes.unflatten(0, (images, -1))[:, :samples].flatten(0, 1)
                for codes in (training.inputs, training.targets)
            )
        )

    def restore(self, tensors: Mapping[str, Tensor]) -> Self:
        self.regression = KernelRegression.restored(subset(tensors, "regression"))
        return self

    def forward(self, codes: Tensor) -> Tensor:
        assert self.regression is not None
        return self.regression(codes)
