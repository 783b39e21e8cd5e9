"""The surrogate: fit on pairs of fields, predict, evaluate, save, load."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Grid
from twoscale.fields.patches import PatchLayout
from twoscale.fields.source import chunk_length, slices
from twoscale.files import Checkpoints, atomic_output
from twoscale.finetuning.finetune import FinetunePlan, finetune_operator, keeps_fields, tunable
from twoscale.methods.recipes import get_method, resolve, trains_on_fields
from twoscale.operators.context import FitContext
from twoscale.operators.operators import FieldOperator, LatentOperator
from twoscale.predictors.base import check_stored_weights, check_weights
from twoscale.problems import PROBLEMS, Problem, get_problem
from twoscale.runtime.memory import available_memory
from twoscale.runtime.progress import Progress
from twoscale.runtime.replay import replayed
from twoscale.runtime.timing import add_seconds, forget_device_peak
from twoscale.surrogate.arguments import (
    Fields,
    as_fields,
    check_prediction,
    problem_symmetries,
    real_fields,
    resolve_device,
)
from twoscale.surrogate.artifact import (
    declared_processes,
    environment,
    is_replaceable,
    read_artifact,
    write_artifact,
)
from twoscale.surrogate.evaluation import Predict, evaluate_operator, warn_of_failure
from twoscale.surrogate.preparation import Fitting, both_pairs, field_pairs
from twoscale.surrogate.resuming import fit_checkpoints

Array = TypeVar("Array", np.ndarray, Tensor)

_NODE_BYTES = 64  # of memory for each node of a field, at least: some copies of it


class Surrogate:
    """A learned map from input field to solution field.

    >>> x = np.random.default_rng(0).standard_normal((60, 16, 16))
    >>> surrogate = Surrogate(method="two-scale", epochs=2).fit(x, x.cumsum(axis=2))
    >>> surrogate.predict(x[:3]).shape
    (3, 16, 16)

    Arguments: the method's name, the seed, the device ("auto", "cpu", "cuda"), the problem if it
    is known (by name or object; needed for residuals only), and any of the method's settings.
    Fields are (samples, height, width), NumPy or torch.
    """

    operator_: FieldOperator
    grid_: Grid
    finetuning_: dict[str, Any] | None
    chosen_: dict[str, Any]  # what a predictor in closed form chose on the validation fields
    peak_device_gigabytes_: float | None  # of the latest fit or fine-tuning, on a GPU
    trained_together_: int  # networks that shared the time of training

    def __init__(
        self,
        method: str = "two-scale",
        *,
        seed: int = 0,
        device: str = "auto",
        problem: str | Problem | None = None,
        **settings: Any,
    ) -> None:
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        if not whole or not 0 <= seed < 2**63:
            raise TwoscaleError(f"the seed must be a whole number from 0, got {seed!r}")
        self.method = method
        self.seed = int(seed)
        self.device = resolve_device(device)
        self.problem = get_problem(problem) if isinstance(problem, str) else problem
        self.settings = resolve(method, settings)
        if self.settings.get("symmetries") == "problem":
            self.settings["symmetries"] = problem_symmetries(self.problem)
        if self.settings.get("average_symmetries") and self.settings["symmetries"] == "none":
            raise TwoscaleError(
                "average_symmetries=true needs symmetries to average over, got symmetries=none: "
                "set symmetries=square or symmetries=mirrors, or leave the average out"
            )

    def fit(
        self,
        inputs: Fields,
        outputs: Fields,
        *,
        validation: tuple[Fields, Fields] | None = None,
        progress: Progress | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Fit on pairs of fields; without `validation`, the last tenth of a shuffle is held out.

        With a path as `checkpoint` the state of a long fit is kept beside it, and the same call
        goes on from there after the process was killed.
        """
        fitting = self.begin(inputs, outputs, validation=validation, progress=progress)
        asked = {"method": self.method, "settings": self.settings, "seed": self.seed}
        data = (fitting.training, fitting.validation)
        with fit_checkpoints(checkpoint, asked, data, device=self.device) as kept:
            fitting.context.checkpoints = kept
            fitting.operator.fit(*data, fitting.context)
        return self.finish(fitting.operator, fitting.shape, fitting.context)

    def begin(
        self,
        inputs: Fields,
        outputs: Fields,
        *,
        validation: tuple[Fields, Fields] | None = None,
        progress: Progress | None = None,
    ) -> Fitting:
        """Return a fit that is ready to be done: everything checked, fields on the device."""
        declared_processes()  # raises if it is none: before the work, not after it
        forget_device_peak()
        training, held_out = both_pairs(
            inputs, outputs, validation, device=self.device, seed=self.seed
        )
        samples, height, width = training.inputs.shape
        grid = Grid(height, width)
        if held_out.inputs.shape[1:] != grid.shape:
            raise TwoscaleError(f"training fields are {grid}, validation fields are not")
        PatchLayout.tiling(grid.shape, self.settings["patches"])  # raises if it has no such seams
        operator = get_method(self.method).build(grid, self.settings)
        operator.check(grid.shape, samples)
        context = FitContext(seed=self.seed, progress=progress)
        return Fitting(operator, training, held_out, context, training.inputs.shape)

    def finish(
        self, operator: FieldOperator, shape: tuple[int, int, int], context: FitContext
    ) -> Self:
        """Take over what a fit on fields of this shape has made and measured."""
        check_weights(operator)
        samples, height, width = shape
        self.grid_, self.operator_ = Grid(height, width), operator.to(self.device)
        self.training_samples_ = samples
        self.finetuning_ = None
        self.chosen_ = dict(operator.latent.predictor.chosen) if operator.latent else {}
        self.timings_ = dict(context.clock.seconds)
        context.end_part()
        self.peak_device_gigabytes_ = context.peak_gigabytes
        self.history_ = context.histories
        shares = [history.get("members", 1) for history in context.histories.values()]
        self.trained_together_ = max(shares, default=1)
        return self

    def finetune(
        self,
        inputs: Fields,
        outputs: Fields,
        *,
        validation: tuple[Fields, Fields] | None = None,
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
        # Fields are passed over twice and then never again: they need not stay on the device.
        training, held_out = both_pairs(
            inputs, outputs, validation, device=self.device, seed=self.seed, resident=False
        )
        for pairs in (training, held_out):
            self.check_grid(pairs.inputs.shape[1:])
        context = FitContext(seed=self.seed, progress=progress, checkpoints=checkpoints)
        forget_device_peak()
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
        tuned.training_samples_ = training.inputs.shape[0]
        context.end_part()
        tuned.peak_device_gigabytes_ = context.peak_gigabytes
        tuned.history_ = context.histories
        tuned.history_["finetuning"]["components"] = record.components
        tuned.finetuning_ = {**asdict(steps), "weights": record.weights}
        return tuned

    @property
    def passes_over_fields(self) -> bool:
        """Say whether a fit only passes over fields, so that they may stay on disk."""
        return not trains_on_fields(self.method, self.settings)

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
        return PatchLayout.tiling(self.grid_.shape, self.settings["patches"])

    @torch.no_grad()
    def predict(self, inputs: Array, *, batch_size: int | None = None) -> Array:
        """Return the solution fields of input fields, as NumPy or torch like the input."""
        fields = real_fields(inputs, "input")
        self.check_grid(fields.shape[1:])
        if batch_size is not None and batch_size < 1:
            raise TwoscaleError(f"the batch size must be at least 1, got {batch_size}")
        predict = partial(replayed, self.operator_)
        predicted = self._apply(predict, fields, batch_size or self._batch_size())
        check_prediction(fields, predicted)  # only now: on CUDA it waits for the device
        return predicted.numpy() if isinstance(inputs, np.ndarray) else predicted

    def predict_parts(self, inputs: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the solution fields of input fields part by part, with the samples they are of.

        `inputs` may be mapped from a file: only one part of it is in memory at a time.
        """
        if inputs.ndim != 3 or not len(inputs):
            as_fields(np.asarray(inputs), "input")  # raises
        for part in slices(len(inputs), self._batch_size()):
            yield part, self.predict(inputs[part])

    def _apply(self, predict: Predict, fields: Tensor, length: int) -> Tensor:
        """Return the predictions of checked fields, on their own device, `length` at a time."""
        if len(fields) <= length:
            return predict(fields.to(self.device)).to(fields.device)
        parts = slices(len(fields), length)
        return torch.cat([self._apply(predict, fields[part], length) for part in parts])

    def _batch_size(self) -> int:
        cuda = self.device.type == "cuda"
        return self.settings.get("evaluation_batch") or chunk_length(*self.grid_.shape, cuda=cuda)

    def _check_fitted(self) -> None:
        if not hasattr(self, "operator_"):
            raise TwoscaleError("this surrogate is not fitted yet: call fit or load first")

    def check_grid(self, shape: tuple[int, ...]) -> None:
        """Raise if the surrogate was not fitted on fields of this shape."""
        self._check_fitted()
        if tuple(shape) != self.grid_.shape:
            came = "x".join(str(side) for side in shape)
            raise TwoscaleError(
                f"this surrogate was fitted on {self.grid_} fields, these are {came}"
            )

    @torch.no_grad()
    def evaluate(self, inputs: Fields, outputs: Fields) -> dict[str, Any]:
        """Return the metrics on held-out pairs; timings include the stages of the fit.

        For pairs of another equation than the surrogate's own, see `with_problem`.
        """
        test = field_pairs(inputs, outputs, "test", device=self.device)
        self.check_grid(test.inputs.shape[1:])
        metrics = evaluate_operator(
            self.operator_,
            lambda fields: self._apply(self.operator_, fields, self._batch_size()),
            test,
            common=self._common_layout(),
            problem=self.problem,
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
        manifest = {
            "method": self.method,
            "settings": self.settings,
            "seed": self.seed,
            "grid": {"height": self.grid_.height, "width": self.grid_.width},
            "problem": self.problem.name if self.problem else None,
            "retained": self.retained,
            "chosen": self.chosen_,
            "training_samples": self.training_samples_,
            "timings": self.timings_,
            "peak_device_gigabytes": self.peak_device_gigabytes_,
            "trained_together": self.trained_together_,
            "finetuning": self.finetuning_,
            "provenance": environment(self.device),
        }
        write_artifact(folder, manifest, self.operator_.state_dict())

    @property
    def retained(self) -> dict[str, Any]:
        """Return the retained PCA dimensions: code sizes and the rank of each block."""
        latent = self.operator_.latent
        if latent is None:
            return {}
        sides = {"input": latent.input_representation, "output": latent.output_representation}
        return {side: {"code": part.code_size, "ranks": part.ranks} for side, part in sides.items()}

    @classmethod
    def load(
        cls, path: str | Path, *, device: str = "auto", problem: Problem | None = None
    ) -> Self:
        """Return the surrogate saved at `path`.

        A problem of one's own is known to the artifact by name only: give it again as `problem`.
        """
        manifest, tensors = read_artifact(Path(path))
        try:
            surrogate = cls._rebuilt(manifest, device=device, problem=problem)
            surrogate._restore(tensors)
        except TwoscaleError as error:
            raise TwoscaleError(f"{path} cannot be loaded: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise TwoscaleError(f"{path} has a damaged manifest: {error!r}") from error
        except RuntimeError as error:
            raise TwoscaleError(f"{path}: manifest and weights do not fit together") from error
        return surrogate

    @classmethod
    def _rebuilt(cls, manifest: dict[str, Any], *, device: str, problem: Problem | None) -> Self:
        """Return the surrogate that a manifest describes, still without its weights."""
        surrogate = cls(
            manifest["method"],
            seed=manifest["seed"],
            device=device,
            problem=problem or PROBLEMS.get(manifest["problem"]),
            **manifest["settings"],
        )
        surrogate.grid_ = Grid(manifest["grid"]["height"], manifest["grid"]["width"])
        surrogate.timings_ = {name: float(one) for name, one in manifest["timings"].items()}
        surrogate.peak_device_gigabytes_ = manifest["peak_device_gigabytes"]
        surrogate.trained_together_ = int(manifest["trained_together"])
        surrogate.finetuning_ = manifest["finetuning"]
        surrogate.chosen_ = dict(manifest["chosen"])
        surrogate.training_samples_ = int(manifest["training_samples"])
        surrogate.history_ = {}
        return surrogate

    def _restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over saved weights; a prediction shows whether they fit the rest."""
        nodes = self.grid_.height * self.grid_.width
        if _NODE_BYTES * nodes > available_memory():
            raise TwoscaleError(f"there is not enough memory for fields of {self.grid_} nodes")
        stored = sum(tensor.nbytes for tensor in tensors.values())
        for name in ("width", "channels"):  # some layer maps so many channels to as many
            if 4 * self.settings.get(name, 0) ** 2 > stored:
                raise TwoscaleError(f"the weights do not fit {name}={self.settings[name]}")
        operator = get_method(self.method).build(self.grid_, self.settings)
        self.operator_ = operator.restore(tensors).to(self.device)
        check_stored_weights(operator)
        self._apply(operator, torch.zeros(1, *self.grid_.shape), 1)
