"""Predictors in closed form: affine, affine with a network on what it leaves, kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from twoscale.errors import TwoscaleError
from twoscale.predictors import CodePairs, KernelRegression, fit_affine, fit_kernel
from twoscale.predictors.base import (
    CodePredictor,
    ImagePairs,
    MLPPredictor,
    NetworkPredictor,
)
from twoscale.predictors.kernel import kernel_bytes
from twoscale.representation import Representation
from twoscale.representation.base import subset
from twoscale.representation.geometry import decoder_isometry
from twoscale.runtime.memory import free_memory, size_text
from twoscale.training import Pairs, Task

# The share of the error that a network must remove to be kept: less is chance, and not worth it.
_GAIN = 1e-3


@dataclass(frozen=True)
class _Judge:
    """Errors of codes as errors of decoded fields."""

    metric: Tensor  # (code, coordinates): ||e @ metric|| is the norm of what e adds to a field
    size: float  # norm of all validation fields, in the decoder's unit as well

    @classmethod
    def of(cls, decoder: Representation, validation: Pairs) -> _Judge:
        metric = decoder_isometry(decoder).forth
        with torch.no_grad():
            size = float(decoder.decode(validation.targets).double().norm()) / decoder.unit
        return cls(metric, size or 1.0)

    def error(self, predicted: Tensor, true: Tensor) -> float:
        """Return the relative L2 error of the decoded fields."""
        return float(((predicted - true).double() @ self.metric).norm()) / self.size


class AffinePredictor(NetworkPredictor):
    """The best affine map, by ridge regression with a strength that suits the validation fields."""

    closed_form = True

    def __init__(self, *, ridge: float | None, nearest: bool = False) -> None:
        super().__init__(nearest=nearest)
        self.ridge = ridge

    def prepare(
        self, training: Pairs, validation: Pairs, decoder: Representation, seed: int
    ) -> None:
        judge = _Judge.of(decoder, validation)
        fit = fit_affine(
            CodePairs.of(training.inputs, training.targets),
            CodePairs.of(validation.inputs, validation.targets),
            judge.metric,
            strength=self.ridge,
        )
        self.network = fit.network()
        with torch.no_grad():
            error = judge.error(self(validation.inputs), validation.targets)
        self.chosen = {"ridge": fit.strength, "validation_error": error}


class AffineMLPPredictor(CodePredictor):
    """The affine map, plus a network trained on what it leaves.

    The network is dropped unless the decoded validation fields are better with it, by a thousandth
    at least.
    """

    def __init__(self, affine: AffinePredictor, correction: MLPPredictor) -> None:
        super().__init__(nearest=correction.nearest)
        self.affine = affine
        self.correction = correction
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


class KernelPredictor(CodePredictor):
    """Kernel ridge regression; kernel, length scale and strength suit the validation fields.

    All values of the kernel between training samples are in memory at once, so `most` may limit
    their number: the first ones are used.
    """

    closed_form = True

    def __init__(
        self,
        *,
        kinds: Sequence[str],
        length_scales: Sequence[float],
        ridge: float | None,
        most: int | None,
        nearest: bool = False,
    ) -> None:
        super().__init__(nearest=nearest)
        self.kinds = kinds
        self.length_scales = length_scales
        self.ridge = ridge
        self.most = most
        self.regression: KernelRegression | None = None

    def prepare(
        self, training: ImagePairs, validation: Pairs, decoder: Representation, seed: int
    ) -> None:
        judge = _Judge.of(decoder, validation)
        self.regression, self.chosen = fit_kernel(
            self._limited(training),
            CodePairs.of(validation.inputs, validation.targets),
            judge.metric,
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
        parts = subset(tensors, "regression")
        names = ("kind", "weights", "centres", "offset", "coefficients")
        if missing := [name for name in names if name not in parts]:
            raise TwoscaleError(f"the weights lack {missing}: the artifact is damaged")
        self.regression = KernelRegression(*(parts[name] for name in names))
        return self

    def forward(self, codes: Tensor) -> Tensor:
        assert self.regression is not None
        return self.regression(codes)
