"""The surrogate: fit on pairs of fields, predict, evaluate, save, load."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Space
from twoscale.fields.patches import PatchLayout, as_pair
from twoscale.fields.samples import (
    Fields,
    as_parameters,
    check_prediction,
    four_axes,
    users_rank,
)
from twoscale.fields.source import chunk_length, slices
from twoscale.files import Checkpoints, atomic_output
from twoscale.finetuning.finetune import FinetunePlan, finetune_operator, keeps_fields, tunable
from twoscale.operators.context import FitContext
from twoscale.operators.operators import FieldOperator, LatentOperator
from twoscale.predictors import CodePredictor
from twoscale.predictors.base import check_weights
from twoscale.problems import Problem, get_problem
from twoscale.representation import Representation
from twoscale.runtime.progress import Progress
from twoscale.runtime.replay import replayed
from twoscale.runtime.timing import add_seconds, reset_peak_memory
from twoscale.surrogate.artifact import (
    environment,
    is_replaceable,
    read_artifact,
    write_artifact,
)
from twoscale.surrogate.evaluation import Predict, evaluate_operator, warn_of_failure
from twoscale.surrogate.fitting import Fitting, fit_checkpoints
from twoscale.surrogate.inputs import Door, Pair, check_alike, check_shape, input_batch
from twoscale.surrogate.manifest import Stored, restored
from twoscale.surrogate.options import (
    compose,
    declared_processes,
    resolve_device,
    resolve_periodic,
    resolve_seed,
)

Array = TypeVar("Array", np.ndarray, Tensor)

_SEAMS = (4, 4)  # patches on whose seams methods without patches are measured


class Surrogate:
    """A learned map from input fields, parameters or both to solution fields.

    Fields are (samples, height, width), with channels (samples, channels, height, width), or
    (samples, length) on a line; NumPy or torch. Predictions have the axes of the training outputs.

    Parameters
    ----------
    method
        The name of a recipe for the three parts: see `METHODS`. Any of its settings may follow by
        name, such as `epochs=100`.
    inputs, predictor, outputs, correction
        Parts as objects, in place of the recipe's: `outputs=TwoScale(patches=(2, 2))`. The
        predictor may also be named: `predictor="affine"`.
    seed, device
        The seed of everything random; "auto", "cpu" or "cuda".
    problem
        The equation, by name or as an object, if it is known. Residuals need it.
    periodic
        Whether the fields are periodic: a bool, or a pair for rows and columns. By default it is
        the problem's, or false.

    Examples
    --------
    >>> x = np.random.default_rng(0).standard_normal((60, 16, 16))
    >>> surrogate = Surrogate("two-scale", epochs=2).fit(x, x.cumsum(axis=2))
    >>> surrogate.predict(x[:3]).shape
    (3, 16, 16)
    """

    operator_: FieldOperator
    input_space_: Space
    output_space_: Space
    ranks_: tuple[int, int]  # numbers of axes of the user's inputs and outputs
    finetuning_: dict[str, Any] | None
    chosen_: dict[str, Any]  # what a predictor in closed form chose on the validation fields
    peak_device_gigabytes_: float | None  # of the latest fit or fine-tuning, on a GPU
    trained_together_: int  # networks that shared the time of training

    def __init__(
        self,
        method: str = "two-scale",
        *,
        inputs: Representation | None = None,
        predictor: CodePredictor | str | None = None,
        outputs: Representation | None = None,
        correction: CodePredictor | None = None,
        seed: int = 0,
        device: str = "auto",
        problem: str | Problem | None = None,
        periodic: bool | tuple[bool, bool] | None = None,
        **settings: Any,
    ) -> None:
        self.seed = resolve_seed(seed)
        self.device = resolve_device(device)
        self.problem = get_problem(problem) if isinstance(problem, str) else problem
        self.periodic = resolve_periodic(periodic, self.problem)
        own = {"inputs": inputs, "outputs": outputs, "correction": correction}
        if isinstance(predictor, str):
            settings["predictor"] = predictor
        else:
            own["predictor"] = predictor
        given = {name: part for name, part in own.items() if part is not None}
        self.method, self.settings, self.parts = compose(method, settings, given, self.problem)

    def __repr__(self) -> str:
        names = ["inputs", "predictor", "outputs"]
        names += ["correction"] if self.parts.correction is not None else []
        names += ["symmetries"] if self.parts.symmetries != "none" else []
        return f"Surrogate({', '.join(f'{name}={getattr(self.parts, name)!r}' for name in names)})"

    def fit(
        self,
        inputs: Fields | None,
        outputs: Fields,
        *,
        parameters: Any = None,
        validation: tuple[Any, ...] | None = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | Checkpoints | None = None,
    ) -> Self:
        """Fit on pairs of fields; without `validation`, the last tenth of a shuffle is held out.

        `parameters` (samples, P) come beside the input fields, or instead of them (`inputs=None`).
        `validation` is (inputs, outputs), or (inputs, outputs, parameters). The channels may be
        given names. With a path as `checkpoint` the state of a long fit is kept beside it, and the
        same call goes on from there after the process was killed.
        """
        door = Door(self.periodic, input_names, output_names)
        pairs = door.both(inputs, outputs, parameters, validation, self.seed)
        fitting = self.begin(*pairs, progress=progress)
        asked = {"parts": self.parts.describe(), "seed": self.seed}
        data = (fitting.training, fitting.validation)
        with fit_checkpoints(checkpoint, asked, data, device=self.device) as kept:
            fitting.context.checkpoints = kept
            fitting.operator.fit(*data, fitting.context)
        return self.finish(fitting)

    def begin(
        self, training: Pair, validation: Pair, *, progress: Progress | None = None
    ) -> Fitting:
        """Return a fit that is ready to be done: everything checked, fields on the device."""
        declared_processes()  # raises if the variable is wrong: before the work, not after it
        reset_peak_memory()
        if self.problem is not None:
            self.problem.check_spaces(training.inputs.space, training.outputs.space)
        operator = self.parts.operator()
        operator.check(training.inputs.space, training.outputs.space, len(training.inputs))
        return Fitting(
            operator,
            training.fields(self.device),
            validation.fields(self.device),
            FitContext(seed=self.seed, progress=progress),
            samples=len(training.inputs),
            ranks=training.ranks,
        )

    def finish(self, fitting: Fitting) -> Self:
        """Take over what a fit has made and measured."""
        operator, context = fitting.operator, fitting.context
        check_weights(operator)
        self.operator_ = operator.to(self.device)
        self.input_space_ = fitting.training.input_space
        self.output_space_ = fitting.training.output_space
        self.ranks_ = fitting.ranks
        self.training_samples_ = fitting.samples
        self.finetuning_ = None
        self.chosen_ = dict(operator.latent.predictor.chosen)
        self.timings_ = dict(context.clock.seconds)
        context.end_part()
        self.peak_device_gigabytes_ = context.peak_gigabytes
        self.history_ = context.histories
        shares = [history.get("members", 1) for history in context.histories.values()]
        self.trained_together_ = max(shares, default=1)
        return self

    def finetune(
        self,
        inputs: Fields | None,
        outputs: Fields,
        *,
        parameters: Any = None,
        validation: tuple[Any, ...] | None = None,
        progress: Progress | None = None,
        checkpoints: Checkpoints | None = None,
        **plan: Any,
    ) -> Self:
        """Return a copy whose predictor is fine-tuned on an objective of the assembled field.

        `plan` holds options of `FinetunePlan`, the objective first of all: A1 to A5, or flux.
        Timings of the copy are cumulative. With `checkpoints` a later call with the same data and
        plan goes on from where this one stopped.
        """
        steps = FinetunePlan.of(plan)
        operator = self._tunable(steps)
        pairs = self._door.both(inputs, outputs, parameters, validation, self.seed)
        for pair in pairs:
            self.check_spaces(pair.inputs.space, pair.outputs.space)
        # Fields are passed over twice and then never again: they need not stay on the device.
        training, held_out = (pair.fields(self.device, resident=False) for pair in pairs)
        context = FitContext(seed=self.seed, progress=progress, checkpoints=checkpoints)
        reset_peak_memory()
        tuned = copy.copy(self)
        tuned.operator_, record = finetune_operator(
            operator,
            training,
            held_out,
            steps,
            context,
            common=self._common_layout(),
            problem=self.problem,
        )
        check_weights(tuned.operator_)
        tuned.timings_ = add_seconds(self.timings_, context.clock.seconds)
        tuned.training_samples_ = len(pairs[0].inputs)
        context.end_part()
        tuned.peak_device_gigabytes_ = context.peak_gigabytes
        tuned.history_ = context.histories
        tuned.history_["finetuning"]["components"] = record.components
        tuned.finetuning_ = {**asdict(steps), "weights": record.weights}
        return tuned

    @property
    def passes_over_fields(self) -> bool:
        """Say whether a fit only passes over fields, so that they may stay on disk."""
        return not self.parts.trains_on_fields

    def check_finetuning(self, **plan: Any) -> None:
        """Raise if the surrogate cannot be fine-tuned in this way; needs no data to tell."""
        self._tunable(FinetunePlan.of(plan))

    def finetuning_keeps_fields(self, **plan: Any) -> bool:
        """Say whether a fine-tuning needs its fields in memory; otherwise they may stay on disk."""
        self.check_finetuning(**plan)
        steps = FinetunePlan.of(plan)
        return keeps_fields(steps, common=self._common_layout(), problem=self.problem)

    def _tunable(self, plan: FinetunePlan) -> LatentOperator:
        self._check_fitted()
        common = self._common_layout()
        return tunable(self.operator_, plan, common=common, problem=self.problem)

    def with_problem(self, problem: Problem | None) -> Self:
        """Return the same surrogate for pairs of another equation, or of an unknown one."""
        other = copy.copy(self)
        other.problem = problem
        return other

    def _common_layout(self) -> PatchLayout:
        """Return the non-overlapping patches whose seams all methods are measured on."""
        own = self.parts.outputs.arguments.get("patches", _SEAMS)
        patches = as_pair(self.settings.get("patches", own))
        return PatchLayout.seams_of(self.output_space_.grid, patches)

    @property
    def _door(self) -> Door:
        """Return how fields of the fitted spaces come in."""
        inputs, outputs = self.input_space_, self.output_space_
        seen = None if inputs.names is None else inputs.names[: inputs.field_channels]
        return Door(self.periodic, seen, outputs.names, fitted=True)

    @torch.no_grad()
    def predict(
        self, inputs: Array | None, *, parameters: Any = None, batch_size: int | None = None
    ) -> Array:
        """Return the solution fields of inputs, as NumPy or torch like these."""
        self._check_fitted()
        if batch_size is not None and batch_size < 1:
            raise TwoscaleError(f"the batch size must be at least 1, got {batch_size}")
        fields = input_batch(inputs, parameters, self.input_space_)
        predicted = self._replayed(fields, batch_size or self._batch_size())
        check_prediction(fields, predicted)  # only now: on CUDA it waits for the device
        result = users_rank(predicted, self.ranks_[1])
        given = parameters if inputs is None else inputs
        return result if isinstance(given, Tensor) else result.numpy()  # type: ignore[return-value]

    @torch.no_grad()
    def predict_fields(self, fields: Tensor, batch_size: int | None = None) -> Tensor:
        """Return the predictions of a field batch, parameters among its channels; unchecked."""
        return self._replayed(fields, batch_size or self._batch_size())

    def _replayed(self, fields: Tensor, length: int) -> Tensor:
        return self._apply(partial(replayed, self.operator_), fields, length)

    def predict_parts(
        self, inputs: np.ndarray | None, *, parameters: np.ndarray | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the solution fields of inputs part by part, with the samples they are of.

        `inputs` may be mapped from a file: only one part of it is in memory at a time.
        """
        if inputs is not None and (not 2 <= inputs.ndim <= 4 or not len(inputs)):
            four_axes(np.asarray(inputs), "input")  # raises
        scalars = None if parameters is None else as_parameters(parameters).numpy()
        counts = [len(one) for one in (inputs, scalars) if one is not None]
        if len(set(counts)) > 1:
            raise TwoscaleError(
                f"there are {counts[0]} input fields but parameters of {counts[1]} samples"
            )
        for part in slices(max(counts, default=1), self._batch_size()):
            fields, some = (None if one is None else one[part] for one in (inputs, scalars))
            yield part, self.predict(fields, parameters=some)

    def _apply(self, predict: Predict, fields: Tensor, length: int) -> Tensor:
        """Return the predictions of checked fields, on their own device, `length` at a time."""
        if len(fields) <= length:
            return predict(fields.to(self.device)).to(fields.device)
        parts = slices(len(fields), length)
        return torch.cat([self._apply(predict, fields[part], length) for part in parts])

    def _batch_size(self) -> int:
        cuda = self.device.type == "cuda"
        largest = max(self.input_space_.shape, self.output_space_.shape, key=prod)
        return self.settings.get("evaluation_batch") or chunk_length(*largest, cuda=cuda)

    def _check_fitted(self) -> None:
        if not hasattr(self, "operator_"):
            raise TwoscaleError("this surrogate is not fitted yet: call fit or load first")

    def check_inputs(self, shape: Sequence[int]) -> None:
        """Raise if the surrogate was not fitted on input fields of (channels, height, width)."""
        self._check_fitted()
        check_shape("input", self.input_space_, shape)

    def check_spaces(self, inputs: Space, outputs: Space) -> None:
        """Raise if the surrogate was not fitted on fields of these spaces, and for its problem."""
        self._check_fitted()
        check_alike("input", self.input_space_, inputs)
        check_alike("output", self.output_space_, outputs)
        if self.problem is not None:
            self.problem.check_spaces(inputs, outputs)

    @torch.no_grad()
    def evaluate(
        self, inputs: Fields | None, outputs: Fields, *, parameters: Any = None
    ) -> dict[str, Any]:
        """Return the metrics on held-out pairs; timings include the stages of the fit.

        For pairs of another equation than the surrogate's own, see `with_problem`.
        """
        self._check_fitted()
        pair = self._door.pair(inputs, outputs, parameters, "test")
        self.check_spaces(pair.inputs.space, pair.outputs.space)
        metrics = evaluate_operator(
            self.operator_,
            lambda fields: self._apply(self.operator_, fields, self._batch_size()),
            pair.fields(self.device),
            common=self._common_layout(),
            problem=self.problem,
            names=self.output_space_.channel_names,
        )
        warn_of_failure(metrics)
        timings = self.timings_ | metrics["timings"]
        metrics["timings"] = timings | {"total": sum(timings.values())}
        if self.peak_device_gigabytes_ is not None:
            metrics["peak_device_gigabytes"] = self.peak_device_gigabytes_
        metrics["trained_together"] = self.trained_together_
        return metrics

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the surrogate as a folder; it appears complete or not at all."""
        self._check_fitted()
        with atomic_output(path, overwrite=overwrite, may_replace=is_replaceable) as folder:
            folder.mkdir()
            self.write(folder)

    def write(self, folder: Path) -> None:
        """Write manifest and weights into an existing folder."""
        self._check_fitted()
        manifest = Stored.of(self).manifest()
        manifest |= {"retained": self.retained, "provenance": environment(self.device)}
        write_artifact(folder, manifest, self.operator_.state_dict())

    @property
    def retained(self) -> dict[str, Any]:
        """Return the retained PCA dimensions: code sizes and the rank of each block."""
        latent = self.operator_.latent
        sides = {"input": latent.inputs, "output": latent.outputs}
        if not latent.outputs.compresses:
            return {}
        return {side: {"code": part.code_size, "ranks": part.ranks} for side, part in sides.items()}

    @classmethod
    def load(
        cls, path: str | Path, *, device: str = "auto", problem: Problem | None = None
    ) -> Self:
        """Return the surrogate saved at `path`.

        A problem that is not installed here is unknown: give it again as `problem`.
        """
        manifest, tensors = read_artifact(Path(path))
        surrogate = cls.__new__(cls)
        surrogate.device = resolve_device(device)
        stored = restored(path, manifest, tensors, surrogate.device, problem)
        for name, value in vars(stored).items():
            setattr(surrogate, name, value)
        surrogate.history_ = {}
        return surrogate
