"""The metrics of a fitted operator on held-out fields."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any, cast

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.patches import PatchLayout
from twoscale.errors import TwoscaleError, TwoscaleWarning
from twoscale.fields.pairs import Pairs
from twoscale.fields.source import Batch, range_length, slices
from twoscale.fields.workers import HERE, Job
from twoscale.math.measures import (
    ACCURACY,
    Compared,
    mean_relative_l2,
    measure_all,
    measure_channels,
    over_channels,
    sample_errors,
    seam_measures,
    unexplained_share,
)
from twoscale.networks import count_parameters
from twoscale.operators.operators import CodeOperator, FieldOperator
from twoscale.problems import Problem
from twoscale.problems.measures import flux_measures, has_flux, residual_measures
from twoscale.representation.base import subset
from twoscale.runtime.progress import Clock, Progress
from twoscale.runtime.stages import INFERENCE
from twoscale.runtime.texts import percent
from twoscale.surrogate.display import Metrics
from twoscale.surrogate.driver import FittedState
from twoscale.surrogate.prediction import Predict, Resampling
from twoscale.trust import Coverage


def evaluate_operator(
    operator: FieldOperator,
    predict: Predict,
    test: Pairs,
    *,
    common: PatchLayout,
    problem: Problem | None,
    names: Sequence[str],
    per_sample: bool = False,
    coverage: Coverage | None = None,
    resampling: Resampling | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Return all metrics on `test` as fractions; one that does not apply is None.

    `common` is the non-overlapping layout whose seams are shared by all methods; methods with
    patches of their own also report on those (native) seams. Of several channels, called `names`,
    each has its own errors under `channels`. With `per_sample` the errors of each sample are under
    that name. With `coverage` it is said under `trust` how often bands hold.

    If `resampling` interpolates fields, metrics name the grids (`resampled_from`, `resampled_to`),
    and `interpolation_mre` is the error of true outputs that only go in and out again. Such fields
    also go through the output representation for `oracle_mre`; there are no native seams.
    """
    interpolates = resampling is not None and resampling.changes
    native = common if interpolates else operator.layout or common
    if resampling is not None and interpolates:
        predict = resampling.check().predict(predict)
    measures = dict(ACCURACY)
    for prefix, layout in (("native", native), ("common", common)):
        on_seams = seam_measures(layout.seams)
        if problem is not None and has_flux(problem):
            on_seams |= flux_measures(problem, layout.seams)
        measures |= {f"{prefix}.{name}": measure for name, measure in on_seams.items()}
    if problem is not None and problem.has_residual(Grid.of_layout(common)):
        measures |= residual_measures(problem)
    clock, errors, oracle_errors = Clock(), _SampleErrors(), _SampleErrors()
    batches = errors.collected(_batches(test, predict, clock, coverage), progress, len(test))
    values, apart = measure_channels(measures, batches)
    code_operator = operator.code_operator
    outputs = code_operator.outputs
    decodes = isinstance(operator, CodeOperator) and outputs.compresses
    oracle: dict[str, float] = {}
    oracle_apart: dict[str, list[float]] = {}
    if decodes and not interpolates:
        on_seams = seam_measures(common.seams)
        own = {"mre": ACCURACY["mre"]} | {f"common.{name}": m for name, m in on_seams.items()}
        batches = oracle_errors.collected(_through(outputs.reconstruct, test))
        oracle, oracle_apart = measure_channels(own, batches)
    metrics: dict[str, Any] = {"oracle_mre": oracle.get("mre")}
    metrics |= {"residual_rms": None, "residual_mean_abs": None}
    metrics |= {k: v for k, v in values.items() if "." not in k}
    metrics |= {"pooled_error": values["mre"], "mean_relative_l2": errors.mean}
    metrics["oracle_mean_relative_l2"] = oracle_errors.mean if oracle else None
    metrics["median_relative_l1"] = errors.median_l1
    metrics |= subset(values, "native") | {"common_seams": subset(values, "common")}
    if len(names) > 1:
        apart["mean_relative_l2"] = errors.channel_means
        metrics["channels"] = _of_channels(apart, oracle_apart, names)
    if oracle:
        metrics["oracle_seams"] = subset(oracle, "common")
    code_operator = operator.code_operator
    metrics["input_code"] = code_operator.input_code_size if outputs.compresses else None
    metrics["output_code"] = outputs.code_size if outputs.compresses else None
    if outputs.compresses:
        metrics["explained_variance"] = _explained(code_operator)
    metrics["parameters"] = count_parameters(operator)
    metrics |= {"samples": len(test), "timings": dict(clock.seconds)}
    if coverage is not None:
        metrics["trust"] = coverage.metrics
    if per_sample:
        metrics["per_sample"] = errors.arrays(names)
    if resampling is not None and interpolates:
        metrics["interpolation_mre"] = _mre(_through(resampling.interpolated(), test))
        if decodes:
            metrics["oracle_mre"] = _mre(
                _through(resampling.interpolated(outputs.reconstruct), test)
            )
        metrics |= resampling.record
    return {name: _finite(value) for name, value in metrics.items()}


def _through(function: Callable[[Tensor], Tensor], test: Pairs) -> Iterator[Compared]:
    """Yield true outputs beside what a function makes of them."""
    with torch.no_grad():
        for truth in test.outputs.fields.chunks():
            yield Compared(function(truth).double(), truth.double())


def _mre(batches: Iterable[Compared]) -> float:
    return measure_channels({"mre": ACCURACY["mre"]}, batches)[0]["mre"]


class _SampleErrors:
    """The relative L2 and L1 errors of all samples, collected while batches pass."""

    def __init__(self) -> None:
        self.parts: list[Tensor] = []  # each (batch, channels)
        self.l1_parts: list[Tensor] = []

    def collected(
        self, batches: Iterable[Compared], progress: Progress | None = None, samples: int = 0
    ) -> Iterator[Compared]:
        done = 0
        for batch in batches:
            self.parts.append(sample_errors(batch.prediction, batch.truth).cpu())
            self.l1_parts.append(sample_errors(batch.prediction, batch.truth, power=1).cpu())
            yield batch
            done += len(batch.truth)
            if progress:
                progress("fields", done, samples, "")

    @property
    def mean(self) -> float:
        """Return the mean of the samples' errors; samples without one do not count."""
        return mean_relative_l2(torch.cat(self.parts))

    @property
    def channel_means(self) -> list[float]:
        """Return the same for each channel."""
        return [mean_relative_l2(one) for one in torch.cat(self.parts).split(1, dim=1)]

    @property
    def median_l1(self) -> float:
        """Return the median of the samples' relative L1 errors."""
        return float(over_channels(torch.cat(self.l1_parts)).nanquantile(0.5))

    def arrays(self, names: Sequence[str]) -> dict[str, Any]:
        """Return the error of each sample, and of several channels that of each channel."""
        errors = torch.cat(self.parts)
        found: dict[str, Any] = {"error": over_channels(errors).numpy()}
        if len(names) > 1:
            found["channels"] = {name: errors[:, i].numpy() for i, name in enumerate(names)}
        return found


@torch.no_grad()
def coefficient_of_determination(predict: Predict, test: Pairs) -> float:
    """Return R² = 1 - sum ||prediction - truth||² / sum ||truth - mean truth||².

    Sums are over all nodes and samples. Of several channels it is the mean of their R².
    """
    total = reduce(torch.add, (chunk.double().sum(0) for chunk in test.outputs.fields.chunks()))
    measure = {"share": unexplained_share(total / len(test))}
    share = measure_all(measure, _batches(test, predict, Clock()))["share"]
    if not math.isfinite(share):
        raise TwoscaleError(
            "a score compares errors with the variation of the outputs, and these do not vary: "
            f"give at least 2 outputs that differ, got {len(test)}"
        )
    return 1.0 - share


def with_facts_of_fit(metrics: dict[str, Any], state: FittedState) -> Metrics:
    """Return metrics with the fit's own: seconds of its stages, memory, networks side by side."""
    timings = state.timings | metrics["timings"]
    facts: dict[str, Any] = {"timings": timings | {"total": sum(timings.values())}}
    if state.peak_device_gigabytes is not None:
        facts["peak_device_gigabytes"] = state.peak_device_gigabytes
    return Metrics(metrics | facts | {"trained_together": state.trained_together})


def _of_channels(
    errors: Mapping[str, list[float]], oracle: Mapping[str, list[float]], names: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Return the errors of each channel, by its name."""
    accuracy = (*ACCURACY, "mean_relative_l2")
    shown = {name: values for name, values in errors.items() if name in accuracy}
    shown |= subset(errors, "native")
    if oracle:
        shown["oracle_mre"] = oracle["mre"]
    return {
        channel: {name: values[place] for name, values in shown.items()}
        for place, channel in enumerate(names)
    }


def _finite(value: Any) -> Any:
    """Return a metric, or None if it is not finite: relative to zero, or of infinite values."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def warn_of_failure(metrics: Mapping[str, Any]) -> None:
    """Warn if predictions are no better than fields of zeros."""
    error = metrics["mre"]
    if error is None or error >= 1:
        warnings.warn(
            f"the relative error of the predictions is {percent(error)}: fields of zeros would be "
            "no worse",
            TwoscaleWarning,
            stacklevel=2,
        )


def _explained(code_operator: CodeOperator) -> dict[str, float]:
    """Return the share of variance that is kept of the inputs, and by each stage of the outputs."""
    outputs = code_operator.outputs.explained_variance
    stages = {"output" if name == "pca" else name: share for name, share in outputs.items()}
    seen = code_operator.inputs.explained_variance.values()
    return {"input": sum(seen) / len(seen), **stages}


def _batches(
    test: Pairs, predict: Predict, clock: Clock, coverage: Coverage | None = None
) -> Iterator[Compared]:
    """Yield batches in float64, for sums of small differences of float32 fields."""
    for inputs, truth, prediction in _predicted(test, predict, clock):
        if coverage is not None:
            coverage.observe(inputs, prediction, truth)
        fields = inputs.fields  # equations have no parameters of ours
        yield Compared(prediction.double(), truth.double(), fields.double())


def _predicted(
    test: Pairs, predict: Predict, clock: Clock
) -> Iterator[tuple[Batch, Tensor, Tensor]]:
    """Yield inputs, true outputs and predictions, whose time is kept.

    On a GPU the first prediction of a shape loads kernels and allocates memory, and the second one
    is recorded as a graph. So each shape is predicted twice before it is timed.
    """
    if test.inputs.fields.workers not in HERE:
        yield from _predicted_elsewhere(test, predict, clock)
        return
    warm: set[torch.Size] = set()
    for inputs, truth in test.chunks():
        if inputs.fields.is_cuda and inputs.fields.shape not in warm:
            warm.add(inputs.fields.shape)
            for _ in range(2):
                predict(inputs)
        with clock.stage(INFERENCE.name):
            prediction = predict(inputs)
        yield inputs, truth, prediction


def _predicted_elsewhere(
    test: Pairs, predict: Predict, clock: Clock
) -> Iterator[tuple[Batch, Tensor, Tensor]]:
    """Yield the same, range by range, with predictions made by other processes.

    The time is that of waiting for them.
    """
    sides = (test.inputs.fields, test.outputs.fields)
    inputs_of, workers = test.inputs.batches, cast(Any, sides[0].workers)
    length = min(range_length(*side.shape[1:]) for side in sides)
    ranges = list(slices(len(test), length))
    work = Job(partial(_predictions, predict=predict), cast(Any, inputs_of))
    predicted = workers.each(work, ranges)
    for samples in ranges:
        with clock.stage(INFERENCE.name):
            prediction = next(predicted)
        fields, truth = (torch.cat(list(side.read(samples))) for side in sides)
        yield Batch(fields, test.inputs.scalars[samples]), truth, prediction


def _predictions(chunks: Iterator[Batch], predict: Predict) -> Tensor:
    return torch.cat([predict(chunk) for chunk in chunks])
