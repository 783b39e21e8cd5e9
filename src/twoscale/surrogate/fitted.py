"""What a fitted surrogate does: it predicts fields, and measures its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from twoscale.domain.grid import Grid
from twoscale.domain.patches import PatchLayout, as_pair
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.fields.samples import Fields, check_prediction
from twoscale.fields.source import chunk_length, slices
from twoscale.operators.assembly import Assembly
from twoscale.operators.operators import FieldOperator
from twoscale.problems import Problem
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.progress import Progress, ShowProgress, reporting
from twoscale.surrogate.assessment import Assessment, Flags, assessed
from twoscale.surrogate.display import Metrics
from twoscale.surrogate.evaluation import (
    coefficient_of_determination,
    warn_of_failure,
    with_facts_of_fit,
)
from twoscale.surrogate.inputs import Door, Given, Pair, check_alike, given_inputs
from twoscale.surrogate.manifest import retained_dimensions
from twoscale.surrogate.prediction import (
    Predict,
    asks_for_gradient,
    in_batches,
    matching_parts,
    prediction_of,
)
from twoscale.surrogate.resampling import Resampling, on_grid
from twoscale.trust import LEVEL, Coverage, InputRange, Trust, certify, is_elliptic

_SEAMS = (4, 4)  # patches on whose seams methods without patches are measured


class FittedSurrogate:
    """Predictions and metrics of a fitted operator. `Surrogate` is the class that users hold."""

    settings: dict[str, Any]
    parts: Assembly
    device: torch.device
    problem: Problem | None
    periodic: tuple[bool, bool]
    operator_: FieldOperator
    input_space_: Space
    output_space_: Space
    ranks_: tuple[int, int]
    errors_: dict[str, float | None]
    trust_: Trust | None

    @overload
    def predict(
        self,
        inputs: Tensor,
        *,
        parameters: Any = None,
        batch_size: int | None = None,
        resample: bool = False,
        progress: ShowProgress = None,
    ) -> Tensor: ...

    @overload
    def predict(
        self,
        inputs: np.ndarray,
        *,
        parameters: np.ndarray | None = None,
        batch_size: int | None = None,
        resample: bool = False,
        progress: ShowProgress = None,
    ) -> np.ndarray: ...

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
        self._check_fitted()
        if batch_size is not None and batch_size < 1:
            raise TwoscaleError(f"the batch size must be at least 1, got {batch_size}")
        return self._predict_given(
            self._given_inputs(inputs, parameters, resample), batch_size, progress
        )

    def predict_flagged(
        self, inputs: Fields | None, *, parameters: Any = None, resample: bool = False
    ) -> tuple[Any, Flags]:
        """Return what `predict` and `flag` return; inputs are read once.

        Parameters
        ----------
        inputs, parameters, resample
            As for `predict`.
        """
        self._check_fitted()
        known = self._known_trust().known
        given = self._given_inputs(inputs, parameters, resample)
        predicted = self._predict_given(given)
        return predicted, self._flags(known, given.fields.detach())

    def _given_inputs(self, inputs: Fields | None, parameters: Any, resample: bool) -> Given:
        return given_inputs(inputs, parameters, self._spaces, self.ranks_[0], resample=resample)

    def _predict_given(
        self, given: Given, batch_size: int | None = None, progress: ShowProgress = None
    ) -> Any:
        """Return the checked predictions of inputs, as an array of the user's kind."""
        fields = given.fields
        predict = prediction_of(self.operator_, fields)
        with torch.set_grad_enabled(asks_for_gradient(fields)), reporting(progress) as report:
            predicted = self._apply(predict, fields, batch_size, report)
            # Only now: on CUDA it waits for the device.
            check_prediction(fields.detach(), predicted.detach(), self._check_values)
            return given.result(predicted, self._spaces, self.ranks_[1])

    @property
    def _check_values(self) -> Callable[[Tensor], None]:
        """Return what raises if values of inputs are not allowed."""
        return self.operator_.latent.inputs.check_values

    @torch.no_grad()
    def predict_fields(self, fields: Tensor, batch_size: int | None = None) -> Tensor:
        """Return the predictions of a field batch, parameters among its channels; unchecked."""
        return self._apply(prediction_of(self.operator_, fields), fields, batch_size)

    def _apply(
        self,
        predict: Predict,
        fields: Tensor,
        length: int | None = None,
        progress: Progress | None = None,
    ) -> Tensor:
        """Return the predictions of checked fields, on their own device, `length` at a time."""
        return in_batches(predict, fields, length or self._batch_size(), self.device, progress)

    def predict_parts(
        self, inputs: Any, *, parameters: Any = None, resample: bool = False
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield the solution fields of inputs part by part, with the samples they are of.

        `inputs` may be mapped from a file: only one part of it is in memory at a time.
        """
        for part, given in self.input_parts(inputs, parameters=parameters, resample=resample):
            yield part, self.predict(**given)

    def input_parts(
        self, inputs: Any, *, parameters: Any = None, resample: bool = False
    ) -> Iterator[tuple[slice, dict[str, Any]]]:
        """Yield parts of inputs as arguments of `predict`, with the samples they are of."""
        parts = matching_parts(
            inputs, parameters, self._batch_size(), self.input_space_, any_grid=resample
        )
        for part, fields, scalars in parts:
            yield part, {"inputs": fields, "parameters": scalars, "resample": resample}

    def _batch_size(self) -> int:
        cuda = self.device.type == "cuda"
        largest = max(self.input_space_.shape, self.output_space_.shape, key=prod)
        return self.settings.get("evaluation_batch") or chunk_length(*largest, cuda=cuda)

    def _check_fitted(self) -> None:
        if not hasattr(self, "operator_"):
            raise TwoscaleError("this surrogate is not fitted yet: call fit or load first")

    def check_spaces(self, inputs: Space, outputs: Space, *, resample: bool = False) -> None:
        """Raise if the surrogate was not fitted on fields of these spaces, and for its problem.

        With `resample` their grids may be others.
        """
        self._check_fitted()
        for name, fitted, given in zip(
            ("input", "output"), self._spaces, (inputs, outputs), strict=True
        ):
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
        self._check_fitted()
        self.check_level(level)
        given = self._given_inputs(inputs, parameters, resample)
        # Not a decorator: the warning below points at the line that called.
        with torch.no_grad(), reporting(progress) as report:
            found = assessed(
                self,
                self._known_trust(),
                given.fields,
                level=level,
                length=self._batch_size(),
                progress=report,
            )
        check_prediction(given.fields.detach(), found.fields, self._check_values)
        proves = certificate and given.resampling is None
        if proves and is_elliptic(self.problem, self.output_space_):
            # Of the user's inputs: the surrogate reads them in single precision.
            found = replace(found, certificate=certify(found.fields, inputs, self.problem))
        found.flags.warn()
        return found.handed_back(lambda fields: given.result(fields, self._spaces, self.ranks_[1]))

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
        self._check_fitted()
        known = self._known_trust().known
        fields = self._given_inputs(inputs, parameters, resample).fields
        check_prediction(fields, fields[:0], self._check_values)
        return self._flags(known, fields)

    def _flags(self, known: InputRange, fields: Tensor) -> Flags:
        """Return the flags of checked fields."""
        parts = slices(len(fields), self._batch_size())
        seen = [known(fields[part].to(self.device)) for part in parts]
        return Flags.of(seen, self.input_space_.channel_names)

    def check_level(self, level: float) -> None:
        """Raise if radii of this level cannot be given."""
        self._check_fitted()
        self._known_trust().calibrated().check_level(level)

    def _known_trust(self) -> Trust:
        if self.trust_ is None:
            raise TwoscaleError(
                "this surrogate knows neither its errors nor the range of its inputs, because it "
                "was fitted with calibration=False: call calibrate with pairs of fields that took "
                "no part in its fit"
            )
        return self.trust_

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
        pair = self._test_pair(inputs, outputs, parameters, resample=resample)
        grids = (pair.inputs.space.grid, pair.outputs.space.grid)
        with reporting(progress) as report:
            metrics = Resampling(self._spaces, grids).evaluate(
                self.operator_,
                partial(self._apply, self.operator_),
                pair.fields(self.device),
                common=self._common_layout(grids[1]),
                problem=self.problem,
                names=self.output_space_.channel_names,
                per_sample=per_sample,
                coverage=self._coverage(*grids),
                progress=report,
            )
        warn_of_failure(metrics)
        self.errors_["test"] = metrics["mean_relative_l2"]
        LOGGER.info(
            "evaluated on %d pairs: mean_relative_l2 %.4g, mre %.4g",
            len(pair.inputs),
            metrics["mean_relative_l2"],
            metrics["mre"],
        )
        return with_facts_of_fit(metrics, self)

    def _coverage(self, *grids: Grid) -> Coverage | None:
        """Return what counts how often bands hold, on the fitted grids; None without any."""
        fitted = tuple(space.grid for space in self._spaces)
        if self.trust_ is None or grids != fitted:
            return None
        return Coverage(self.trust_, self.operator_, self.problem)

    def score(self, inputs: Fields | None, outputs: Fields, *, parameters: Any = None) -> float:
        """Return R² of the predictions of held-out pairs: 1 is perfect, larger is better.

        R² = 1 - sum ||prediction - truth||² / sum ||truth - mean truth||², with sums over all nodes
        and samples; of several channels the mean of their R². Predicting the mean field scores 0.
        """
        pair = self._test_pair(inputs, outputs, parameters)
        predict = partial(self._apply, self.operator_)
        return coefficient_of_determination(predict, pair.fields(self.device))

    def _test_pair(
        self,
        inputs: Fields | None,
        outputs: Fields,
        parameters: Any,
        *,
        resample: bool = False,
        role: str = "test",
    ) -> Pair:
        self._check_fitted()
        pair = replace(self._door, any_grid=resample).pair(inputs, outputs, parameters, role)
        self.check_spaces(pair.inputs.space, pair.outputs.space, resample=resample)
        return pair

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
    def _door(self) -> Door:
        """Return how fields of the fitted spaces come in."""
        return Door(self.periodic, like=self._spaces)

    @property
    def _spaces(self) -> tuple[Space, Space]:
        return self.input_space_, self.output_space_
