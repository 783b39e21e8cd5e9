"""Several surrogates fitted at once: their latent networks are trained side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from twoscale.progress import Progress
from twoscale.surrogate.arguments import Fields
from twoscale.surrogate.context import FitContext, train_members
from twoscale.surrogate.operators import LatentOperator
from twoscale.surrogate.prediction import MLPPredictor
from twoscale.surrogate.surrogate import Surrogate
from twoscale.training import Task

Data = tuple[Fields, Fields, tuple[Fields, Fields] | None]
"""Inputs, outputs, and validation pairs (or None) of one surrogate."""


def fit_together(
    surrogates: Sequence[Surrogate],
    data: Iterable[Data | Callable[[], Data]],
    *,
    progress: Progress | None = None,
) -> None:
    """Fit each surrogate on its own data, as its `fit` would, seeds and variants at once.

    Networks with the same hidden layers, batches and number of samples learn as one batched
    network; anything else is fitted by itself. `data` may hold functions that return the data: then
    only one surrogate's fields are in memory at a time.
    """
    waiting: dict[Any, list[_Waiting]] = {}
    for surrogate, given in zip(surrogates, data, strict=True):
        inputs, outputs, validation = given() if callable(given) else given
        fitting = surrogate.begin(inputs, outputs, validation=validation, progress=progress)
        operator = fitting.operator
        if isinstance(operator, LatentOperator) and isinstance(operator.predictor, MLPPredictor):
            codes = operator.fit_representations(
                fitting.training, fitting.validation, fitting.context
            )
            blocks = operator.output_representation.block_sizes
            task = operator.predictor.task(*codes, blocks, surrogate.seed)
            one = _Waiting(surrogate, operator, fitting.shape, fitting.context, task)
            waiting.setdefault(_kind(operator.predictor, task), []).append(one)
        else:
            operator.fit(fitting.training, fitting.validation, fitting.context)
            surrogate.finish(operator, fitting.shape, fitting.context)
        del inputs, outputs, validation, given, fitting  # before the next one's fields are loaded
    for group in waiting.values():
        train_members([one.task for one in group], [one.context for one in group])
        for one in group:
            one.surrogate.finish(one.operator, one.shape, one.context)


@dataclass(frozen=True)
class _Waiting:
    """A surrogate whose network is still to be trained, without its fields."""

    surrogate: Surrogate
    operator: LatentOperator
    shape: tuple[int, int, int]
    context: FitContext
    task: Task


def _kind(predictor: MLPPredictor, task: Task) -> Any:
    """Return what networks must have in common to learn together."""
    plan = replace(task.plan, learning_rate=1.0, weight_decay=0.0, patience=1)
    return predictor.hidden, len(task.training), task.training.inputs.device, plan
