"""What a fitted surrogate does: it predicts fields, and measures its errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar, overload

import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.patches import PatchLayout, as_pair
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs
from twoscale.fields.samples import Array, Fields, check_prediction
from twoscale.fields.source import Batch, slices
from twoscale.operators.operators import FieldOperator
from twoscale.operators.spec import SurrogateSpec
from twoscale.problems import Problem
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.progress import ShowProgress, reporting
from twoscale.surrogate.assessment import Assessment, Flags, assessed
from twoscale.surrogate.display import Metrics
from twoscale.surrogate.driver import FittedState
from twoscale.surrogate.evaluation import (
    coefficient_of_determination,
    evaluate_operator,
    warn_of_failure,
    with_facts_of_fit,
)
from twoscale.surrogate.inputs import InputReader
from twoscale.surrogate.manifest import retained_dimensions
from twoscale.surrogate.prediction import (
    PredictionInputs,
    Resampling,
    batch_length,
    called,
    check_alike,
    in_batches,
    matching_parts,
    on_grid,
    prediction_inputs,
    prediction_of,
)
from twoscale.trust import LEVEL, Coverage, InputRange, Trust, certify, is_elliptic

_SEAMS = (4, 4)  # patches on whose seams methods without patches are measured


Value = TypeVar("Value")


class FittedAttribute(Generic[Value]):
    """A public attribute that reads the fitted state: `timings_` is `state_.timings`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, surrogate: FittedSurrogate, owner: type | None = None) -> Value:
        value: Value = getattr(surrogate._attribute(self.name), self.name[:-1])
        return value

    def __set__(self, surrogate: FittedSurrogate, value: Value) -> None:
        raise AttributeError(f"{self.name} is what a fit has found: replace `state_` instead")


class FittedSurrogate:
    """Predictions and metrics of a fitted operator. `Surrogate` is the class that users hold."""

    settings: dict[str, Any]
    parts: SurrogateSpec
    device: torch.device
    problem: Problem | None
    periodic: tuple[bool, bool]
    state_: FittedState | None

    operator_ = FittedAttribute[FieldOperator]()
    ranks_ = FittedAttribute[tuple[int, int]]()
    training_samples_ = FittedAttribute[int]()
    timings_ = FittedAttribute[dict[str, float]]()
    peak_device_gigabytes_ = FittedAttribute["float | None"]()
    trained_together_ = FittedAttribute[int]()
    chosen_ = FittedAttribute[dict[str, Any]]()
    history_ = FittedAttribute[dict[str, dict[str, Any]]]()
    errors_ = FittedAttribute[dict[str, "float | None"]]()
    finetuning_ = FittedAttribute["dict[str, Any] | None"]()
    trust_ = FittedAttribute["Trust | None"]()

    @property
    def input_space_(self) -> Space:
        """Return the channels and the grid of the training inputs."""
        return self._attribute("input_space_").spaces[0]

    @property
    def output_space_(self) -> Space:
        """Return the channels and the grid of the training outputs."""
        return self._attribute("output_space_").spaces[1]

    def _attribute(self, name: str) -> FittedState:
        """Return what the fit has made, or raise as for an attribute that is missing."""
        if self.state_ is None:
            raise AttributeError(f"a surrogate has {name} once it is fitted")
        return self.state_

    @overload
    def predict(
        self,
        inputs: Array,
        *,
        parameters: Any = None,
        batch_size: int | None = None,
        resample: bool = False,
        progress: ShowProgress = None,
    ) -> Array: ...

    @overload
    def predict(
        self,
        inputs: Fields | None,
        *,
        parameters: Any = None,
        batch_size: int | None = None,
        resample: bool = False,
        progress: ShowProgress = None,
    ) -> Any: ...

    def predict(
        self,
        inputs: Fields | None,
        *,
        parameters: Any = None,
        batch_size: int | None = None,
        resample: bool = False,
        progress: ShowProgress = None,
    ) -> Any:
        """Return the solution fields of inputs: a tensor for tensors, NumPy otherwise.

        Parameters
        ----------
        inputs
            Input fields; None if there are parameters only. The axis of a single channel, or of a
            single sample, may be missing. If a tensor has `requires_grad`, the prediction can be
            differentiated.
        parameters
            Scalars of each sample, (samples, P), if the surrogate was fitted with some. Gradients
            go through them as well.
        batch_size
            Fields that are predicted at a time; by default as many as fit a chunk of memory.
        resample
            Whether inputs may be on another grid than the training fields. They are then
            interpolated onto that grid, and predictions back. False by default.
        progress
            As for `fit`.

        Returns
        -------
        array
            The predicted fields, with the axes of the training outputs. An input without an axis of
            samples gives a prediction without one. An xarray input gives an xarray prediction.
        """
        if batch_size is not None and batch_size < 1:
            raise TwoscaleError(f"the batch size must be at least 1, got {batch_size}")
        state = self._fitted_state()
        spaces, rank = state.spaces, state.ranks[0]
        given = prediction_inputs(inputs, parameters, spaces, rank, resample=resample)
        return self._predict_given(state, given, batch_size, progress)

    def predict_flagged(
        self, inputs: Fields | None, *, parameters: Any = None, resample: bool = False
    ) -> tuple[Any, Flags]:
        """Return what `predict` and `flag` return; inputs are read once.

        Parameters
        ----------
        inputs, parameters, resample
            As for `predict`.
        """
        state, known = self._fitted_state(), self._known_trust().known
        given = self._inputs(state, inputs, parameters, resample)
        predicted = self._predict_given(state, given)
        return predicted, self._flags(known, given.batch)

    @staticmethod
    def _inputs(
        state: FittedState, inputs: Fields | None, parameters: Any, resample: bool
    ) -> PredictionInputs:
        return prediction_inputs(
            inputs, parameters, state.spaces, state.ranks[0], resample=resample
        )

    def _predict_given(
        self,
        state: FittedState,
        given: PredictionInputs,
        batch_size: int | None = None,
        progress: ShowProgress = None,
    ) -> Any:
        """Return the checked predictions of inputs, as an array of the user's kind."""
        batch, length = given.batch, batch_size or self.settings.get("evaluation_batch")
        length = length or batch_length(state.spaces, self.device)
        tracked = batch.fields.requires_grad or batch.parameters.requires_grad
        differentiable = tracked and torch.is_grad_enabled()
        predict = prediction_of(state.operator, differentiable=differentiable)
        with torch.set_grad_enabled(differentiable), reporting(progress) as report:
            predicted = in_batches(predict, batch, length, self.device, report)
            # Only now: on CUDA it waits for the device.
            check_prediction(batch, predicted.detach(), state.operator.code_operator.check_values)
            return given.result(predicted, state.spaces, state.ranks[1])

    @torch.no_grad()
    def predict_batch(self, inputs: Batch, batch_size: int | None = None) -> Tensor:
        """Return the predictions of a batch; unchecked."""
        state = self._fitted_state()
        length = batch_size or self._batch_size(state)
        return in_batches(prediction_of(state.operator), inputs, length, self.device)

    def _apply(self, inputs: Batch) -> Tensor:
        """Return the same without recordings, whose first predictions take longer."""
        state = self._fitted_state()
        predict = partial(called, state.operator)
        return in_batches(predict, inputs, self._batch_size(state), self.device)

    def input_parts(
        self, inputs: Any, *, parameters: Any = None, resample: bool = False
    ) -> Iterator[tuple[slice, dict[str, Any]]]:
        """Yield parts of inputs as arguments of `predict`, with the samples they are of."""
        state = self._fitted_state()
        parts = matching_parts(
            inputs, parameters, self._batch_size(state), state.spaces[0], any_grid=resample
        )
        for part, fields, scalars in parts:
            yield part, {"inputs": fields, "parameters": scalars, "resample": resample}

    def _batch_size(self, state: FittedState) -> int:
        own: int | None = self.settings.get("evaluation_batch")
        return own or batch_length(state.spaces, self.device)

    def _fitted_state(self) -> FittedState:
        """Return what the fit has made, or raise if there was none."""
        if self.state_ is None:
            raise TwoscaleError("this surrogate is not fitted yet: call fit or load first")
        return self.state_

    def check_spaces(self, inputs: Space, outputs: Space, *, resample: bool = False) -> None:
        """Raise if the surrogate was not fitted on fields of these spaces, and for its problem.

        With `resample` their grids may be others.
        """
        spaces = self._fitted_state().spaces
        for name, fitted, given in zip(("input", "output"), spaces, (inputs, outputs), strict=True):
            check_alike(name, on_grid(fitted, given.grid) if resample else fitted, given)
        if self.problem is not None:
            self.problem.check_spaces(inputs, outputs)

    def assess(
        self,
        inputs: Fields | None,
        *,
        parameters: Any = None,
        level: float = LEVEL,
        certificate: bool = True,
        resample: bool = False,
        progress: ShowProgress = None,
    ) -> Assessment:
        """Return predictions with how wrong they can be, and which inputs are out of range.

        Parameters
        ----------
        inputs, parameters, resample, progress
            As for `predict`.
        level
            The share of fresh inputs of the training's kind whose errors keep within the radius,
            between 0 and 1; 0.95 by default. The more calibration pairs there were, the closer.
        certificate
            Whether to prove bounds of the errors where the equation allows it. True by default.

        Returns
        -------
        Assessment
            Fields, radii, pointwise bands, flags and, where the equation allows it, certificates.
        """
        state = self._fitted_state()
        self.check_level(level)
        given = self._inputs(state, inputs, parameters, resample)
        # Not a decorator: the warning below points at the line that called.
        with torch.no_grad(), reporting(progress) as report:
            found = assessed(
                self,
                self._known_trust(),
                given.batch,
                level=level,
                length=self._batch_size(state),
                progress=report,
            )
        check_prediction(given.batch, found.fields, state.operator.code_operator.check_values)
        proves = certificate and given.resampling is None
        if proves and is_elliptic(self.problem, state.spaces[1]):
            # Of the user's inputs: the surrogate reads them in single precision.
            found = replace(found, certificate=certify(found.fields, inputs, self.problem))
        found.flags.warn()
        return found.handed_back(lambda fields: given.result(fields, state.spaces, state.ranks[1]))

    @torch.no_grad()
    def flag(
        self, inputs: Fields | None, *, parameters: Any = None, resample: bool = False
    ) -> Flags:
        """Return which inputs are unlike the training inputs; nothing is predicted.

        Parameters
        ----------
        inputs, parameters, resample
            As for `predict`.

        Returns
        -------
        Flags
            `outside` says it of each sample; distances say why.
        """
        state, known = self._fitted_state(), self._known_trust().known
        batch = self._inputs(state, inputs, parameters, resample).batch
        check_prediction(batch, batch.fields[:0], state.operator.code_operator.check_values)
        return self._flags(known, batch)

    def _flags(self, known: InputRange, inputs: Batch) -> Flags:
        """Return the flags of checked inputs."""
        parts = slices(len(inputs), self._batch_size(self._fitted_state()))
        seen = [known(inputs[part].to(self.device)) for part in parts]
        return Flags.of(seen, self.input_space_.labels)

    def check_level(self, level: float) -> None:
        """Raise if radii of this level cannot be given."""
        self._known_trust().calibrated().check_level(level)

    def _known_trust(self) -> Trust:
        trust = self._fitted_state().trust
        if trust is None:
            raise TwoscaleError(
                "this surrogate knows neither its errors nor the range of its inputs, because it "
                "was fitted with calibration=False: call calibrate with pairs of fields that took "
                "no part in its fit"
            )
        return trust

    @torch.no_grad()
    def evaluate(
        self,
        inputs: Fields | None,
        outputs: Fields,
        *,
        parameters: Any = None,
        resample: bool = False,
        per_sample: bool = False,
        progress: ShowProgress = None,
    ) -> Metrics:
        """Return the metrics on held-out pairs, as fractions.

        Parameters
        ----------
        inputs, outputs, parameters
            Pairs that were not in the training, as for `fit`. For pairs of another equation than
            the surrogate's own, see `with_problem`.
        resample
            Whether the pairs may be on another grid than the training fields. Errors are then
            measured on that grid, and `interpolation_mre` is the part of the interpolation alone.
            False by default.
        per_sample
            Whether to add `per_sample`: a dictionary with the array `error`, the relative L2 error
            of each sample, and of several channels `channels` with an array for each. NaN stands
            for a true field of zeros. False by default.
        progress
            As for `fit`.

        Returns
        -------
        Metrics
            A dictionary. `pooled_error`, also called `mre`, is one ratio of norms over all samples.
            `mean_relative_l2` is the mean of the samples' own ratios. The other names are those of
            `metrics.json`. Timings include the stages of the fit.
        """
        pairs = self._test_pairs(inputs, outputs, parameters, resample=resample)
        state = self._fitted_state()
        grids = (pairs.inputs.space.grid, pairs.outputs.space.grid)
        fitted = tuple(space.grid for space in state.spaces)
        coverage = None  # counts how often bands hold, on the fitted grids
        if state.trust is not None and grids == fitted:
            coverage = Coverage(state.trust, state.operator, self.problem)
        with reporting(progress) as report:
            metrics = evaluate_operator(
                state.operator,
                self._apply,
                pairs.on(self.device),
                common=self._common_layout(grids[1]),
                problem=self.problem,
                names=state.spaces[1].channel_names,
                per_sample=per_sample,
                coverage=coverage,
                resampling=Resampling(state.spaces, grids),
                progress=report,
            )
        warn_of_failure(metrics)
        errors = state.errors | {"test": metrics["mean_relative_l2"]}
        self.state_ = replace(state, errors=errors)
        LOGGER.info(
            "evaluated on %d pairs: mean_relative_l2 %.4g, mre %.4g",
            len(pairs),
            metrics["mean_relative_l2"],
            metrics["mre"],
        )
        return with_facts_of_fit(metrics, state)

    def score(self, inputs: Fields | None, outputs: Fields, *, parameters: Any = None) -> float:
        """Return R² of the predictions of held-out pairs: 1 is perfect, larger is better.

        R² = 1 - sum ||prediction - truth||² / sum ||truth - mean truth||², with sums over all nodes
        and samples; of several channels the mean of their R². Predicting the mean field scores 0.
        """
        pairs = self._test_pairs(inputs, outputs, parameters)
        return coefficient_of_determination(self._apply, pairs.on(self.device))

    def _test_pairs(
        self,
        inputs: Fields | None,
        outputs: Fields,
        parameters: Any,
        *,
        resample: bool = False,
        role: str = "test",
    ) -> Pairs:
        reader = replace(self._reader, any_grid=resample)
        pairs = reader.pairs(inputs, outputs, parameters, role)
        self.check_spaces(*pairs.spaces, resample=resample)
        return pairs

    @property
    def retained(self) -> dict[str, Any]:
        """Return the retained PCA dimensions: code sizes and the rank of each block."""
        return retained_dimensions(self.operator_)

    def _common_layout(self, grid: Grid | None = None) -> PatchLayout:
        """Return the non-overlapping patches whose seams all methods are measured on."""
        own = self.parts.outputs.arguments.get("patches", _SEAMS)
        patches = as_pair(self.settings.get("patches", own))
        return (grid or self.output_space_.grid).common_partition(patches)

    @property
    def _reader(self) -> InputReader:
        """Return what reads fields of the fitted spaces."""
        return InputReader(self.periodic, like=self._fitted_state().spaces)
