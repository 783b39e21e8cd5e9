"""An objective of the assembled field, evaluated on codes wherever that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from torch import Tensor

from twoscale.fields.pairs import Pairs
from twoscale.fields.source import Batch, slices
from twoscale.finetuning.terms import (
    AbsoluteSum,
    AbsoluteTerm,
    Prediction,
    QuadraticTerm,
    Shape,
    Term,
)
from twoscale.math.measures import Compared, Parts, total_parts
from twoscale.operators.fitting import FitOptions
from twoscale.operators.operators import CodeOperator
from twoscale.predictors.base import CodePredictor
from twoscale.representation import Representation
from twoscale.training import CodePairs

_MEASURE_BATCH = 256
_PIECE_VALUES = 2**19  # of fields prepared together on a CPU, which takes many times their memory
_FIRST = "reconstruction"


class FieldObjective:
    """A weighted sum of terms of the decoded field, computed from codes where possible.

    The reconstruction has weight one. The other weights are multiplied by the current share, which
    grows from 0 to 1 during the training.
    """

    def __init__(self, terms: Mapping[str, Term], decoder: Representation) -> None:
        absolute = {name: term for name, term in terms.items() if isinstance(term, AbsoluteTerm)}
        others = {name: term for name, term in terms.items() if name not in absolute}
        self.terms = others | absolute  # absolute ones last: their columns are adjacent
        self.absolute = list(absolute)
        self.sum = AbsoluteSum(list(absolute.values())) if absolute else None
        self.quadratic = {n: term for n, term in others.items() if isinstance(term, QuadraticTerm)}
        self.on_fields = {n: term for n, term in others.items() if n not in self.quadratic}
        self.whole_fields = any(term.whole_fields for term in terms.values())
        self.decoder = decoder
        self.weights: dict[str, float] = dict.fromkeys(self.terms, 1.0)
        self.share = torch.ones((), dtype=decoder.dtype, device=next(decoder.buffers()).device)
        self.columns: list[int] = []
        self.shapes: tuple[Shape, Shape] = ((), ())  # of the true and the input fields

    def set_share(self, share: float) -> None:
        """Use this share of the further terms' weights from now on."""
        self.share.fill_(share)
        if self.sum is not None:
            self.sum.weigh([share * self.weights[name] for name in self.absolute])

    def pairs(self, operator: CodeOperator, fields: Pairs, options: FitOptions) -> CodePairs:
        """Return the codes of all fields, the targets with every term's columns, in one pass.

        Targets stay in host memory where a term looks at whole fields.
        """
        samples = len(fields)
        both: list[Tensor] = []
        start = 0
        for batch, truth in _pieces(fields):
            with torch.no_grad():
                codes = operator.encode(*batch.tensors)
            inputs = batch.fields  # what an equation sees
            targets = self._targets(inputs, truth)
            if not start:
                self.shapes = (tuple(truth.shape[1:]), tuple(inputs.shape[1:]))
                self.columns = [part.shape[1] for part in targets]
                home = torch.device("cpu") if self.whole_fields else codes.device
                make = partial(options.scratch.empty, like=codes)
                both = [
                    make(samples, codes.shape[1]),
                    make(samples, sum(self.columns), device=home),
                ]
            stop = start + len(truth)
            both[0][start:stop] = codes
            rows = both[1][start:stop].split(self.columns, 1)
            for column, part in zip(rows, targets, strict=True):
                column.copy_(part)
            start = stop
            options.report("preparing", stop, samples, "fields")
        return CodePairs(*both, scratch=options.scratch)

    def _targets(self, inputs: Tensor, truth: Tensor) -> list[Tensor]:
        """Return the true codes, the fields that terms look at, and each term's own columns."""
        codes = self.decoder.encode(truth).detach().requires_grad_()
        batch = Compared(self.decoder.decode(codes), truth, inputs)
        prepared = [term.prepare(codes, batch) for term in self.terms.values()]
        looked_at = [truth.flatten(1), inputs.flatten(1)] if self.whole_fields else []
        known = torch.cat([codes.new_empty(len(codes), 0), *looked_at], 1).detach()
        return [codes.detach(), known, *prepared]

    def _split(self, predicted: Tensor, targets: Tensor) -> tuple[Prediction, dict[str, Tensor]]:
        """Return a minibatch's prediction beside the truth, and each term's own columns."""
        codes, known, *prepared = targets.to(predicted.device).split(self.columns, 1)
        prediction = Prediction(predicted, codes, known, self.shapes, self.decoder)
        return prediction, dict(zip(self.terms, prepared, strict=True))

    def parts(self, predicted: Tensor, targets: Tensor) -> dict[str, Parts]:
        """Return the sums of each term over a minibatch."""
        prediction, columns = self._split(predicted, targets)
        return {name: term.parts(prediction, columns[name]) for name, term in self.terms.items()}

    def components(self, predicted: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return the unweighted value of each term on a minibatch."""
        return self._finish(self.parts(predicted, targets))

    @torch.no_grad()
    def measure(self, predictor: CodePredictor, pairs: CodePairs) -> dict[str, float]:
        """Return the unweighted value of each term over all pairs together."""
        totals = total_parts(
            self.parts(predictor(pairs.inputs[part]), pairs.targets[part])
            for part in slices(len(pairs), _MEASURE_BATCH)
        )
        finished = self._finish(totals)
        return dict(zip(finished, torch.stack(list(finished.values())).tolist(), strict=True))

    def _finish(self, parts: Mapping[str, Parts]) -> dict[str, Tensor]:
        return {name: self.terms[name].finish(*sums) for name, sums in parts.items()}

    def __call__(self, predicted: Tensor, targets: Tensor) -> Tensor:
        """Return the objective of a minibatch, with gradient: the plain way, term by term."""
        return self._weighted_sum(self.components(predicted, targets))

    def _weighted_sum(self, values: Mapping[str, Tensor]) -> Tensor:
        return torch.stack([self._weighted(name, value) for name, value in values.items()]).sum()

    def _weighted(self, name: str, value: Tensor) -> Tensor:
        return value if name == _FIRST else self.weights[name] * self.share * value

    def value_and_grad(self, predicted: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objective of a minibatch and its gradient in the predicted codes.

        Terms on codes have their gradients written out; fields are differentiated automatically,
        all terms at once.
        """
        prediction, columns = self._split(predicted, targets)
        sums = []
        for name, term in self.quadratic.items():
            own, change = term.value_and_grad(prediction.error, columns[name])
            sums.append((self._weighted(name, own), self._weighted(name, change)))
        if self.on_fields:
            sums.append(self._differentiate(predicted, targets))
        value, grad = sums[0]
        for own, change in sums[1:]:
            value, grad = value + own, grad + change
        if self.sum is None:
            return value, grad
        offsets = targets[:, -sum(self.sum.sizes) :]
        return self.sum.add_to(value, grad, prediction.error, offsets)

    def _differentiate(self, predicted: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weighted sum of the terms on decoded fields and its gradient."""
        with torch.enable_grad():
            leaf = predicted.detach().requires_grad_()
            prediction, columns = self._split(leaf, targets)
            parts = {name: t.parts(prediction, columns[name]) for name, t in self.on_fields.items()}
            value = self._weighted_sum(self._finish(parts))
            (grad,) = torch.autograd.grad(value, leaf)
        return value.detach(), grad


def _pieces(fields: Pairs) -> Iterator[tuple[Batch, Tensor]]:
    """Yield a few pairs at a time: on a GPU, whole chunks."""
    for inputs, truth in fields.chunks():
        few = max(1, _PIECE_VALUES // max(truth[0].numel(), inputs.fields[0].numel()))
        for part in slices(len(truth), len(truth) if truth.is_cuda else few):
            yield inputs[part], truth[part]
