"""A fit or fine-tuning of a surrogate: its beginning, its results, and its checkpoints."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from twoscale.errors import TwoscaleWarning
from twoscale.fields.source import ArraySource, FieldSource
from twoscale.files import Checkpoints, WorkFolder, working
from twoscale.files.checksums import tensor_digest
from twoscale.finetuning.finetune import FinetunePlan, finetune_operator
from twoscale.operators.assembly import Assembly
from twoscale.operators.context import FieldPairs, FitContext
from twoscale.operators.operators import FieldOperator, LatentOperator
from twoscale.predictors.base import check_weights
from twoscale.predictors.symmetry_evidence import SymmetryEvidence
from twoscale.problems import Problem
from twoscale.runtime import processes
from twoscale.runtime.timing import reset_peak_memory
from twoscale.surrogate.artifact import environment
from twoscale.surrogate.inputs import Pair
from twoscale.surrogate.options import declared_processes
from twoscale.trust import Trust


@dataclass(frozen=True)
class Fitting:
    """A fit in progress: an operator, its data, and what accompanies it.

    `ranks` are the numbers of axes of the user's inputs and outputs.
    """

    operator: FieldOperator
    training: FieldPairs
    validation: FieldPairs
    context: FitContext
    samples: int
    ranks: tuple[int, int]

    def without_fields(self) -> Fitting:
        """Return the same without the fields, which can be large; their spaces stay."""
        spaces = (self.training.input_space, self.training.output_space)
        inputs, outputs = (ArraySource(torch.empty(0, *one.shape)) for one in spaces)
        none = FieldPairs(inputs, outputs, spaces)
        return replace(self, training=none, validation=none)


def begin_fit(
    parts: Assembly,
    problem: Problem | None,
    training: Pair,
    validation: Pair,
    context: FitContext,
    device: torch.device,
) -> Fitting:
    """Return a fit of some parts that is ready to be done: all checked, fields on the device."""
    declared_processes()  # raises if the variable is wrong: before the work, not after it
    reset_peak_memory()
    if problem is not None:
        problem.check_spaces(training.inputs.space, training.outputs.space)
    operator = parts.operator()
    operator.check(training.inputs.space, training.outputs.space, len(training.inputs))
    # Where several processes train together, each keeps its part of the training fields only.
    shared = parts.data_parallel and processes.count() > 1
    return Fitting(
        operator,
        training.fields(device, resident=not shared),
        validation.fields(device),
        context,
        samples=len(training.inputs),
        ranks=training.ranks,
    )


def warn_of_symmetries(name: str, training: FieldPairs) -> None:
    """Warn if the training pairs speak clearly against the symmetries that multiply them."""
    if name == "none":
        return
    spaces = (training.input_space, training.output_space)
    against = SymmetryEvidence((training.inputs, training.outputs), spaces).against(name)
    if against:
        warnings.warn(
            f"the data speak against symmetries={name}: {against}; fit with symmetries=none and "
            "compare, or look for a mistake in the data",
            TwoscaleWarning,
            stacklevel=3,
        )


def warn_of_fewer_levels(before: Trust, after: Trust) -> None:
    """Warn if a calibration allows fewer levels than the one it replaces."""
    old, new = (0 if one.band is None else len(one.band.ratios) for one in (before, after))
    if new < old:
        warnings.warn(
            f"this calibration has {new} samples, the one it replaces had {old}: levels above "
            f"{new / (new + 1):.3g} are no longer possible",
            TwoscaleWarning,
            stacklevel=3,
        )


def fitted_state(fitting: Fitting, device: torch.device) -> dict[str, Any]:
    """Return what a fit has made and measured, under the names of the surrogate's attributes."""
    operator, histories = fitting.operator, fitting.context.histories
    return {
        **_measured_state(operator, fitting.context, fitting.samples),
        "operator_": operator.to(device),
        "input_space_": fitting.training.input_space,
        "output_space_": fitting.training.output_space,
        "ranks_": fitting.ranks,
        "trust_": None,
        "finetuning_": None,
        "chosen_": dict(operator.latent.predictor.chosen),
        "trained_together_": max((one.get("members", 1) for one in histories.values()), default=1),
    }


def finetuned_state(
    operator: LatentOperator,
    training: Pair,
    validation: Pair,
    *,
    plan: FinetunePlan,
    context: FitContext,
    device: torch.device,
    **options: Any,
) -> dict[str, Any]:
    """Return what a fine-tuning has changed, under the names of the surrogate's attributes.

    Options are those of `finetune_operator`.
    """
    # Fields are passed over twice and then never again: they need not stay on the device.
    fields, held_out = (pair.fields(device, resident=False) for pair in (training, validation))
    reset_peak_memory()
    tuned, record = finetune_operator(operator, fields, held_out, plan, context, **options)
    state = _measured_state(tuned, context, len(training.inputs))
    state["history_"]["finetuning"]["components"] = record.components
    weights = {**asdict(plan), "weights": record.weights}
    return {**state, "operator_": tuned, "finetuning_": weights}


def _measured_state(operator: FieldOperator, context: FitContext, samples: int) -> dict[str, Any]:
    """Return the attributes that every fit or fine-tuning measures; check the weights."""
    check_weights(operator)
    context.end_part()
    return {
        "training_samples_": samples,
        "timings_": dict(context.clock.seconds),
        "peak_device_gigabytes_": context.peak_gigabytes,
        "history_": context.histories,
        "errors_": {},
    }


def kept_checkpoints(
    work: WorkFolder,
    asked: dict[str, Any],
    *,
    device: torch.device,
    resume: bool = True,
    any_threads: bool = False,
) -> Checkpoints:
    """Return the checkpoints of a request in a work folder.

    Checkpoints of another request, device or library version are removed, and so are those of
    another number of threads, unless `any_threads` may go on. Without `resume` all are.
    """
    made_by = environment(device)
    if any_threads:
        del made_by["threads"]
    request = {**asked, "environment": made_by}
    if not (resume and work.continues(request)):
        work.restart(request)
    return Checkpoints(work.checkpoints)


@contextmanager
def fit_checkpoints(
    place: str | Path | Checkpoints | None,
    asked: dict[str, Any],
    data: tuple[FieldPairs, FieldPairs],
    *,
    device: torch.device,
) -> Iterator[Checkpoints | None]:
    """Yield the checkpoints of a fit on some fields.

    Those beside a path are removed in the end; those that are given as such are left alone.
    """
    if place is None or isinstance(place, Checkpoints):
        yield place
        return
    path = Path(place).resolve()
    fields = [source for pairs in data for source in (pairs.inputs, pairs.outputs)]
    request = {**asked, "fields": [_digest(source) for source in fields]}
    with working(path, subject=f"fitting with the checkpoints of {path}") as work:
        yield kept_checkpoints(work, request, device=device)


def _digest(source: FieldSource) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for chunk in source.chunks():
        digest.update(tensor_digest(chunk.cpu()).encode())
    return digest.hexdigest()
