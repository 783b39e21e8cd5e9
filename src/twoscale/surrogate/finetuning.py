"""Interface-aware fine-tuning: the predictor learns on objectives of the assembled field.

Warm start, representations frozen. The ladder of the paper: A1 reconstruction, A2 + value trace,
A3 + normal-derivative trace, A4 + spectrum, A5 + PDE residual; and `flux`, the coefficient-weighted
flux trace in place of the normal derivative.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields import (
    TRACES,
    AffineMeasure,
    Batch,
    Parts,
    flux_trace_error,
    relative_l2,
    residual_rms,
    total_parts,
    trace_error,
)
from twoscale.patches import PatchLayout
from twoscale.problems import Problem
from twoscale.representation import Representation
from twoscale.source import slices
from twoscale.surrogate.context import FieldPairs, FitContext
from twoscale.surrogate.operators import FieldOperator, LatentOperator
from twoscale.surrogate.prediction import CodePredictor
from twoscale.surrogate.terms import FieldTerm, SpectralTerm, Term, code_term
from twoscale.training import Pairs, Plan

# Each further term's share: its weighted size at the start, relative to the reconstruction's.
_TRACES = {"value": 0.2, "normal_derivative": 0.2}
OBJECTIVES: dict[str, dict[str, float]] = {
    "A1": {},
    "A2": {"value": 0.2},
    "A3": _TRACES,
    "A4": _TRACES | {"spectral": 0.2},
    "A5": _TRACES | {"spectral": 0.2, "residual": 0.01},
    "flux": {"value": 0.2, "flux": 0.2},
}
_CALIBRATION_FIELDS = 128
_CALIBRATION_BATCH = 16
_MEASURE_BATCH = 256
_WEIGHT_RANGE = (1e-12, 1e6)


@dataclass(frozen=True)
class FinetunePlan:
    """How to fine-tune: the paper's protocol."""

    objective: str = "A3"
    epochs: int = 50
    batch_size: int = 32
    learning_rate: float = 1e-4
    warm_up: int = 5  # epochs of the reconstruction alone
    ramp: int = 10  # epochs over which the other weights grow to their full size
    space: str = "code"  # "field" decodes every prediction: the reference, and slow

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            known = ", ".join(OBJECTIVES)
            raise TwoscaleError(f"no objective is called '{self.objective}': known are {known}")
        if self.space not in ("code", "field"):
            raise TwoscaleError(
                f"objectives are evaluated in code or field space, not {self.space}"
            )

    @property
    def training(self) -> Plan:
        return Plan(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=0.0,
            patience=self.epochs + 1,
            evaluation_batch=1,  # not used: epochs are judged by the objective's measure
            small=self.space == "code" and set(OBJECTIVES[self.objective]) <= set(TRACES),
        )

    def share(self, epoch: int) -> float:
        """Return how much of the further terms' weights an epoch uses."""
        return min(max((epoch - self.warm_up + 1) / max(self.ramp, 1), 0.0), 1.0)


@dataclass
class FinetuneRecord:
    """What a fine-tuning resolved and went through."""

    weights: dict[str, float]  # per further term
    components: dict[str, list[float]] = field(default_factory=dict)  # validation, per epoch

    def remark(self) -> str:
        """Return the latest components in one line."""
        return ", ".join(f"{name} {values[-1]:.2e}" for name, values in self.components.items())


class FieldObjective:
    """A weighted sum of terms of the decoded field, on codes with their prepared columns."""

    def __init__(self, terms: Mapping[str, Term], decoder: Representation) -> None:
        self.terms = dict(terms)
        self.decoder = decoder
        self.weights: dict[str, float] = dict.fromkeys(self.terms, 1.0)
        self.share: Tensor | None = None
        self.columns: list[int] = []

    @torch.no_grad()
    def targets(self, codes: Tensor, pairs: FieldPairs) -> Tensor:
        """Return the true codes with every term's columns beside them, in one pass.

        They stay in host memory where a term's columns are whole fields.
        """
        whole = any(term.whole_fields for term in self.terms.values())
        home = torch.device("cpu") if whole else codes.device
        rows = torch.empty(0)
        start = 0
        for inputs, truth in zip(pairs.inputs.chunks(), pairs.outputs.chunks(), strict=True):
            stop = start + len(truth)
            own = codes[start:stop]
            batch = Batch(self.decoder.decode(own), truth, inputs)
            parts = [own, *(term.prepare(own, batch) for term in self.terms.values())]
            if not start:
                self.columns = [part.shape[1] for part in parts]
                rows = own.new_empty(len(codes), sum(self.columns), device=home)
            for column, part in zip(rows[start:stop].split(self.columns, 1), parts, strict=True):
                column.copy_(part)
            start = stop
        return rows

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
        batches = slices(len(pairs), _MEASURE_BATCH)
        totals = total_parts(
            self.parts(predictor(pairs.inputs[part]), pairs.targets[part]) for part in batches
        )
        return {name: float(value) for name, value in self._finish(totals).items()}

    def _finish(self, parts: Mapping[str, Parts]) -> dict[str, Tensor]:
        return {name: term.finish(*parts[name]) for name, term in self.terms.items()}

    def ramped(self, predicted: Tensor, targets: Tensor) -> Tensor:
        """Return the objective with the further terms at the current share of their weights."""
        assert self.share is not None
        values = self.components(predicted, targets)
        further = [self.weights[name] * value for name, value in values.items()][1:]
        total = values["reconstruction"]
        return total + self.share * torch.stack(further).sum() if further else total


def finetune_operator(
    operator: FieldOperator,
    training: FieldPairs,
    validation: FieldPairs,
    plan: FinetunePlan,
    context: FitContext,
    *,
    common: PatchLayout,
    problem: Problem | None,
) -> tuple[LatentOperator, FinetuneRecord]:
    """Return a fine-tuned copy of a PCA operator and the record of how it came about."""
    if not isinstance(operator, LatentOperator):
        raise TwoscaleError(
            "fine-tuning needs a PCA surrogate: global, local, overlap or two-scale"
        )
    tuned = copy.deepcopy(operator)
    decoder = tuned.output_representation
    with context.clock.stage("finetune_prepare"):
        codes, held_codes = tuned.encode_pairs(training), tuned.encode_pairs(validation)
        sample = _one_sample(validation)
        terms = _terms(plan, decoder, sample, (operator.layout or common), problem)
        objective = FieldObjective(terms, decoder)
        held_out = Pairs(held_codes.inputs, objective.targets(held_codes.targets, validation))
        pairs = Pairs(codes.inputs, objective.targets(codes.targets, training))
        _calibrate(objective, tuned, held_out, OBJECTIVES[plan.objective])
    record = FinetuneRecord(
        {name: weight for name, weight in objective.weights.items() if name != "reconstruction"}
    )
    _train(objective, tuned, pairs, held_out, plan, context, record)
    return tuned, record


def _train(
    objective: FieldObjective,
    tuned: LatentOperator,
    pairs: Pairs,
    held_out: Pairs,
    plan: FinetunePlan,
    context: FitContext,
    record: FinetuneRecord,
) -> None:
    objective.share = torch.zeros((), device=pairs.inputs.device)

    def begin_epoch(epoch: int) -> None:
        assert objective.share is not None
        objective.share.fill_(plan.share(epoch))

    def judge() -> float:
        """Return the objective with the full weights."""
        values = objective.measure(tuned.predictor, held_out)
        for name, value in values.items():
            record.components.setdefault(name, []).append(value)
        return sum(objective.weights[name] * value for name, value in values.items())

    context.train(
        "finetuning",
        tuned.predictor,
        pairs,
        held_out,
        objective.ramped,
        plan.training,
        judge=judge,
        begin_epoch=begin_epoch,
        remark=record.remark,
    )


def _terms(
    plan: FinetunePlan,
    decoder: Representation,
    sample: Batch,
    layout: PatchLayout,
    problem: Problem | None,
) -> dict[str, Term]:
    terms: dict[str, Term] = {}
    for name in ("reconstruction", *OBJECTIVES[plan.objective]):
        if name == "spectral":
            terms[name] = SpectralTerm(decoder)
            continue
        measure = _measure(name, layout, problem)
        if measure.fixed and plan.space == "code":
            terms[name] = code_term(measure, decoder, sample)
        else:
            terms[name] = FieldTerm(measure, decoder)
    return terms


def _measure(name: str, layout: PatchLayout, problem: Problem | None) -> AffineMeasure:
    """Return the metric that a term minimises: the very function that evaluation reports."""
    if name == "reconstruction":
        return relative_l2
    if name in TRACES:
        return trace_error(TRACES[name], layout.seams)
    if problem is None:
        raise TwoscaleError(f"the {name} objective needs a known problem; this dataset has none")
    if name == "residual":
        return residual_rms(problem)
    return flux_trace_error(problem, layout.seams)


def _one_sample(pairs: FieldPairs) -> Batch:
    inputs, truth = next(pairs.inputs.chunks())[:1], next(pairs.outputs.chunks())[:1]
    return Batch(truth, truth, inputs)


@torch.no_grad()
def _calibrate(
    objective: FieldObjective, tuned: LatentOperator, held_out: Pairs, shares: Mapping[str, float]
) -> None:
    """Set each weight so that its term starts at `share` times the reconstruction's size."""
    first = min(_CALIBRATION_FIELDS, len(held_out))
    totals: dict[str, float] = {}
    for part in slices(first, _CALIBRATION_BATCH):
        predicted = tuned.predictor(held_out.inputs[part])
        for name, value in objective.components(predicted, held_out.targets[part]).items():
            totals[name] = totals.get(name, 0.0) + float(value)
    low, high = _WEIGHT_RANGE
    for name, share in shares.items():
        size = totals[name] or 1e-300
        objective.weights[name] = min(max(share * totals["reconstruction"] / size, low), high)
