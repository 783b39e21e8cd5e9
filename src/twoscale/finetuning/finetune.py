"""Interface-aware fine-tuning: the predictor learns on objectives of the assembled field.

Warm start, representations frozen. The ladder of the paper: A1 reconstruction, A2 + value trace,
A3 + normal-derivative trace, A4 + spectrum, A5 + PDE residual; and `flux`, the coefficient-weighted
flux trace in place of the normal derivative.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.patches import PatchLayout
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.source import slices
from twoscale.finetuning.objective import FieldObjective
from twoscale.finetuning.terms import FieldTerm, SpectralTerm, Term, code_term
from twoscale.math.measures import AffineMeasure, Compared, in_unit, relative_l2, trace_error
from twoscale.math.traces import TRACES
from twoscale.operators.fitting import FitOptions, FitRecord, train_members
from twoscale.operators.operators import CodeOperator, FieldOperator
from twoscale.predictors.base import BatchSize, Epochs, LearningRate
from twoscale.problems import Problem
from twoscale.problems.measures import flux_trace_error, has_coefficient, has_flux, residual_rms
from twoscale.representation import Representation
from twoscale.runtime.stages import FINETUNE_PREPARE, FINETUNING
from twoscale.settings import choice, resolve_settings, settings_of, whole
from twoscale.training import CodePairs, Plan, Task

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
_WEIGHT_RANGE = (1e-12, 1e6)
_NEEDS_CODE = (
    "fine-tuning needs a surrogate with a compressed output code, and this one predicts the field "
    "itself: fit one whose outputs are a PCA"
)


@dataclass(frozen=True)
class FinetunePlan:
    """How to fine-tune; the defaults are the paper's protocol.

    >>> FinetunePlan(objective="A1", epochs=3).warm_up
    5
    """

    objective: Annotated[str, choice("what is minimised", OBJECTIVES)] = "A3"
    epochs: Epochs = 50
    batch_size: BatchSize = 32
    learning_rate: LearningRate = 1e-4  # Adam's, constant
    warm_up: Annotated[int, whole("epochs of the reconstruction alone", 0)] = 5
    ramp: Annotated[
        int, whole("epochs over which the other weights grow to their full size", 0)
    ] = 10
    space: Annotated[str, choice("where objectives are evaluated", ("code", "field"))] = (
        "code"  # "field" decodes every prediction: the slow reference
    )

    def __post_init__(self) -> None:
        for name, value in _resolve(vars(self)).items():
            object.__setattr__(self, name, value)
        if OBJECTIVES[self.objective] and self.epochs <= self.warm_up:
            raise TwoscaleError(
                f"{self.objective} differs from A1 only after a warm-up of {self.warm_up} epochs: "
                f"pass at least {self.warm_up + 1} epochs, not {self.epochs}, "
                "or a shorter warm-up"
            )

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> FinetunePlan:
        """Return the plan with some options; unknown names and bad values raise."""
        return cls(**_resolve(options))

    @property
    def training(self) -> Plan:
        return Plan(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=0.0,
            patience=self.epochs + 1,
            evaluation_batch=1,  # not used: the validation loss is the objective's measure
            small=self.space == "code" and set(OBJECTIVES[self.objective]) <= set(TRACES),
        )

    def share(self, epoch: int) -> float:
        """Return how much of the further terms' weights an epoch uses."""
        return min(max((epoch - self.warm_up + 1) / max(self.ramp, 1), 0.0), 1.0)


def _resolve(options: Mapping[str, Any]) -> dict[str, Any]:
    return resolve_settings("fine-tuning", settings_of(FinetunePlan), options)


def tunable(
    operator: FieldOperator, plan: FinetunePlan, *, common: PatchLayout, problem: Problem | None
) -> CodeOperator:
    """Return the operator if the plan can fine-tune it, else raise; no data are needed."""
    if not isinstance(operator, CodeOperator) or not operator.outputs.compresses:
        raise TwoscaleError(_NEEDS_CODE)
    if operator.predictor.trained is None:
        raise TwoscaleError(
            "fine-tuning needs a predictor whose weights can be trained, and this one has none: "
            "fit with another predictor"
        )
    terms = OBJECTIVES[plan.objective]
    for name in ("residual", "flux"):
        if name in terms and problem is None:
            raise TwoscaleError(
                f"the {name} objective needs a known problem; this dataset has none"
            )
    if (
        "residual" in terms
        and problem is not None
        and not problem.has_residual(Grid.of_layout(common))
    ):
        raise TwoscaleError(
            f"{problem.name} has no residual on {Grid.of_layout(common)}: use the objective A3"
        )
    if "flux" in terms and problem is not None and not has_flux(problem):
        reason = (
            f"the flux of {problem.name} is its normal derivative"
            if has_coefficient(problem)
            else f"{problem.name} has no diffusion coefficient, so no flux"
        )
        raise TwoscaleError(f"{reason}: use the objective A3")
    on_seams = {*TRACES, "flux"} & set(terms)
    if on_seams and not (operator.layout or common).seams:
        raise TwoscaleError(
            f"{plan.objective} compares traces on seams, and a single patch has no seams: "
            "use the objective A1 or fit with more patches"
        )
    return operator


def keeps_fields(plan: FinetunePlan, *, common: PatchLayout, problem: Problem | None) -> bool:
    """Say whether the plan needs whole fields in each step, which are then kept in memory.

    Other plans read the fields once and keep a few numbers beside each code.
    """
    names = ("reconstruction", *OBJECTIVES[plan.objective])
    measures = [_measure(name, common, problem) for name in names if name != "spectral"]
    return not all(_on_codes(measure, plan) for measure in measures)


@dataclass
class FinetuneRecord:
    """The weights of a fine-tuning and its terms per epoch.

    Terms are recorded in the units of the metrics. The exception are traces of several channels,
    whose channels the objective adds up in units of their own: they are recorded in those.
    """

    weights: dict[str, float]  # per further term, for values in the size of `components`
    sizes: dict[str, float]  # per term, what its value is multiplied by for the record
    components: dict[str, list[float]] = field(default_factory=dict)  # validation, per epoch

    def note(self, values: Mapping[str, float]) -> None:
        """Add an epoch's terms."""
        for name, value in values.items():
            self.components.setdefault(name, []).append(value * self.sizes[name])

    def remark(self) -> str:
        """Return the latest components in one line."""
        return ", ".join(f"{name} {values[-1]:.2e}" for name, values in self.components.items())


def finetune_operator(
    operator: CodeOperator,
    data: SplitData,
    plan: FinetunePlan,
    options: FitOptions,
    measured: FitRecord,
    *,
    common: PatchLayout,
    problem: Problem | None,
) -> tuple[CodeOperator, FinetuneRecord]:
    """Return a fine-tuned copy of a `tunable` operator, and its record.

    `measured` takes times and losses.
    """
    tuned = copy.deepcopy(operator)
    decoder = tuned.outputs
    with measured.clock.stage(FINETUNE_PREPARE.name):
        sample = _one_sample(data.validation)
        terms = _terms(plan, decoder, sample, (operator.layout or common), problem)
        objective = FieldObjective(terms, decoder)
        held_out = objective.pairs(tuned, data.validation, options)
        pairs = objective.pairs(tuned, data.training, options)
        _calibrate(objective, tuned, held_out, OBJECTIVES[plan.objective])
    sizes = {name: _recorded_size(name, decoder.unit) for name in objective.terms}
    further = {name: w for name, w in objective.weights.items() if name != "reconstruction"}
    record = FinetuneRecord({name: w / sizes[name] for name, w in further.items()}, sizes)

    def validate() -> float:
        """Return the objective with the full weights."""
        values = objective.measure(tuned.predictor, held_out)
        record.note(values)
        return sum(objective.weights[name] * value for name, value in values.items())

    network = tuned.predictor.trained
    assert network is not None
    steps = plan.training
    if tuned.predictor.reads_fields:  # a large network, whatever the objective
        steps = replace(steps, small=False)
    task = Task(
        network,
        pairs,
        held_out,
        objective,
        steps,
        options.seed,
        validate,
        extra_history=record.components,
    )
    train_members(
        [task],
        [(options, measured)],
        stage=FINETUNING.name,
        begin_epoch=lambda epoch: objective.set_share(plan.share(epoch)),
        remark=record.remark,
    )
    return tuned, record


def _terms(
    plan: FinetunePlan,
    decoder: Representation,
    sample: Compared,
    layout: PatchLayout,
    problem: Problem | None,
) -> dict[str, Term]:
    terms: dict[str, Term] = {}
    unit = decoder.unit.to(sample.truth.device)
    for name in ("reconstruction", *OBJECTIVES[plan.objective]):
        if name == "spectral":
            terms[name] = SpectralTerm(unit)
            continue
        measure = in_unit(_measure(name, layout, problem), unit)
        if _on_codes(measure, plan):
            terms[name] = code_term(measure, decoder, sample)
        else:
            terms[name] = FieldTerm(measure)
    return terms


def _on_codes(measure: AffineMeasure, plan: FinetunePlan) -> bool:
    return measure.on_codes and plan.space == "code"


def _measure(name: str, layout: PatchLayout, problem: Problem | None) -> AffineMeasure:
    """Return the metric that a term minimises: the very function that evaluation reports."""
    if name == "reconstruction":
        return relative_l2
    if name in TRACES:
        return trace_error(TRACES[name], layout.seams)
    assert problem is not None
    if name == "residual":
        return residual_rms(problem)
    assert has_coefficient(problem)
    return flux_trace_error(problem, layout.seams)


def _recorded_size(term: str, unit: Tensor) -> float:
    """Return the unit of a term's value: one for relative terms, and for traces of channels."""
    if term in ("reconstruction", "spectral"):
        return 1.0
    return float(unit.amax()) if term == "residual" or len(unit) == 1 else 1.0


def _one_sample(pairs: Pairs) -> Compared:
    inputs, truth = next(pairs.chunks())
    return Compared(truth[:1], truth[:1], inputs.fields[:1])


@torch.no_grad()
def _calibrate(
    objective: FieldObjective,
    tuned: CodeOperator,
    held_out: CodePairs,
    shares: Mapping[str, float],
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
