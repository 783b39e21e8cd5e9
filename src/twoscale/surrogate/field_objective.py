"""An objective of the assembled field, evaluated on codes wherever that is possible."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from twoscale.fields import Batch, Parts, total_parts
from twoscale.representation import Representation
from twoscale.source import slices
from twoscale.surrogate.context import FieldPairs, FitContext
from twoscale.surrogate.operators import LatentOperator
from twoscale.surrogate.prediction import CodePredictor
from twoscale.surrogate.terms import AbsoluteSum, AbsoluteTerm, QuadraticTerm, Term
from twoscale.training import Pairs

_MEASURE_BATCH = 256
_FIRST = "reconstruction"


class FieldObjective:
    """A weighted sum of terms of the decoded field, on codes with their prepared columns.

    The first term is the reconstruction, with weight one; the others have the current share of
    their weights.
    """

    def __init__(self, terms: Mapping[str, Term], decoder: Representation) -> None:
        absolute = {name: term for name, term in terms.items() if isinstance(term, AbsoluteTerm)}
        others = {name: term for name, term in terms.items() if name not in absolute}
        self.terms = others | absolute  # absolute ones last: their columns are adjacent
        self.absolute = list(absolute)
        self.sum = AbsoluteSum(list(absolute.values())) if absolute else None
        self.decoder = decoder
        self.weights: dict[str, float] = dict.fromkeys(self.terms, 1.0)
        self.share = torch.ones((), device=next(decoder.buffers()).device)
        self.columns: list[int] = []

    def set_share(self, share: float) -> None:
        """Use this share of the further terms' weights from now on."""
        self.share.fill_(share)
        if self.sum is not None:
            self.sum.weigh([share * self.weights[name] for name in self.absolute])

    def pairs(self, operator: LatentOperator, fields: FieldPairs, context: FitContext) -> Pairs:
        """Return the codes of all fields, the targets with every term's columns, in one pass.

        Targets stay in host memory where a term's columns are whole fields.
        """
        samples = fields.inputs.shape[0]
        both: list[Tensor] = []
        start = 0
        for inputs, truth in zip(fields.inputs.chunks(), fields.outputs.chunks(), strict=True):
            with torch.no_grad():
                codes = operator.input_representation.encode(inputs)
            targets = self._targets(inputs, truth)
            if not start:
                self.columns = [part.shape[1] for part in targets]
                whole = any(term.whole_fields for term in self.terms.values())
                home = torch.device("cpu") if whole else codes.device
                both = [
                    codes.new_empty(samples, codes.shape[1]),
                    codes.new_empty(samples, sum(self.columns), device=home),
                ]
            stop = start + len(truth)
            both[0][start:stop] = codes
            rows = both[1][start:stop].split(self.columns, 1)
            for column, part in zip(rows, targets, strict=True):
                column.copy_(part)
            start = stop
            context.report("preparing", stop, samples, "fields")
        return Pairs(*both)

    def _targets(self, inputs: Tensor, truth: Tensor) -> list[Tensor]:
        """Return the true codes and every term's columns."""
        codes = self.decoder.encode(truth).detach().requires_grad_()
        batch = Batch(self.decoder.decode(codes), truth, inputs)
        prepared = [term.prepare(codes, batch) for term in self.terms.values()]
        return [codes.detach(), *prepared]

    def parts(self, predicted: Tensor, targets: Tensor) -> dict[str, Parts]:
        """Return the sums of each term over a minibatch."""
        codes, *prepared = targets.to(predicted.device).split(self.columns, 1)
        return {
            name: term.parts(predicted, codes, columns)
            for (name, term), columns in zip(self.terms.items(), prepared, strict=True)
        }

    def components(self, predicted: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Return the unweighted value of each term on a minibatch."""
        return self._finish(self.parts(predicted, targets))

    @torch.no_grad()
    def measure(self, predictor: CodePredictor, pairs: Pairs) -> dict[str, float]:
        """Return the unweighted value of each term over all pairs together."""
        totals = total_parts(
            self.parts(predictor(pairs.inputs[part]), pairs.targets[part])
            for part in slices(len(pairs), _MEASURE_BATCH)
        )
        finished = self._finish(totals)
        return dict(zip(finished, torch.stack(list(finished.values())).tolist(), strict=True))

    def _finish(self, parts: Mapping[str, Parts]) -> dict[str, Tensor]:
        return {name: term.finish(*parts[name]) for name, term in self.terms.items()}

    def __call__(self, predicted: Tensor, targets: Tensor) -> Tensor:
        """Return the objective of a minibatch, with gradient: the plain way, term by term."""
        values = self.components(predicted, targets)
        return torch.stack([self._weighted(name, value) for name, value in values.items()]).sum()

    def _weighted(self, name: str, value: Tensor) -> Tensor:
        return value if name == _FIRST else self.weights[name] * self.share * value

    def value_and_slope(self, predicted: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the objective of a minibatch and its gradient in the predicted codes.

        Terms on codes have their gradients written out; fields are differentiated automatically.
        """
        codes, *prepared = targets.split(self.columns, 1)
        error = predicted - codes
        value, slope = predicted.new_zeros(()), None
        for (name, term), columns in zip(self.terms.items(), prepared, strict=True):
            if name in self.absolute:
                continue
            if isinstance(term, QuadraticTerm):
                own, change = term.value_and_slope(error, columns)
            else:
                own, change = _differentiate(term, predicted, codes, columns)
            if name != _FIRST:
                own, change = self._weighted(name, own), self._weighted(name, change)
            value, slope = (own, change) if slope is None else (value + own, slope + change)
        assert slope is not None
        if self.sum is None:
            return value, slope
        offsets = targets[:, -sum(self.sum.sizes) :]
        return self.sum.add_to(value, slope, error, offsets)


def _differentiate(
    term: Term, predicted: Tensor, codes: Tensor, columns: Tensor
) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        leaf = predicted.detach().requires_grad_()
        value = term.finish(*term.parts(leaf, codes, columns))
        (slope,) = torch.autograd.grad(value, leaf)
    return value.detach(), slope
