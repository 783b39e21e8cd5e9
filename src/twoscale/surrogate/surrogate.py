"""The surrogate: its arguments, fit and fine-tuning on pairs of fields, saving and loading."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import torch

from twoscale.errors import TwoscaleWarning
from twoscale.export import Exported, describe, export_operator
from twoscale.fields.pairs import SplitData
from twoscale.fields.samples import Fields
from twoscale.files import Checkpoints, atomic_output
from twoscale.finetuning.finetune import FinetunePlan, finetune_operator, keeps_fields, tunable
from twoscale.operators.fitting import FitOptions, FitRecord
from twoscale.operators.operators import CodeOperator
from twoscale.predictors import CodePredictor
from twoscale.problems import Problem
from twoscale.representation import Representation
from twoscale.runtime import processes
from twoscale.runtime.logs import LOGGER
from twoscale.runtime.progress import ShowProgress, reporting, reset_peak_memory
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.surrogate.artifact import is_replaceable, read_artifact
from twoscale.surrogate.display import constructor_text, surrogate_html, surrogate_text
from twoscale.surrogate.driver import (
    Fit,
    calibrated,
    checkpoints_beside,
    run_fit,
    warn_of_symmetries,
    with_trust,
)
from twoscale.surrogate.fitted import FittedSurrogate
from twoscale.surrogate.inputs import Calibration, InputReader, Validation
from twoscale.surrogate.manifest import restored, write_surrogate
from twoscale.surrogate.options import (
    Resolved,
    equal_arguments,
    resolve_arguments,
    resolve_device,
)
from twoscale.surrogate.protocol import changed_parameters, parameters_by_name, regressor_tags


class Surrogate(FittedSurrogate):
    """A learned map from input fields, parameters or both to solution fields.

    Fields are (samples, height, width), with channels (samples, channels, height, width), or
    (samples, length) on a line. They may be NumPy, torch or xarray arrays, Zarr arrays, HDF5
    datasets or nested lists. The axis of a single channel may be missing.
    Predictions have the axes of the training outputs.
    A surrogate follows the habits of scikit-learn: `clone`, pipelines and grid searches work.

    Parameters
    ----------
    method
        The name of a recipe for the three parts, "two-scale" by default: see `METHODS`.
    inputs, outputs
        Representations as objects, in place of the recipe's: `outputs=TwoScale(patches=(2, 2))`.
    predictor
        A predictor as an object, or the name of one: `predictor="affine"`. By default it is the
        recipe's, a network.
    correction
        A predictor on fields that maps the predicted field to a better one. By default only the
        method "refinement" has one.
    seed
        The seed of everything random, a whole number from 0; 0 by default.
    device
        "auto", "cpu" or "cuda". By default ("auto") a GPU is used where there is one.
    problem
        The equation, by name or as an object, if it is known. Residuals need it. None by default.
    periodic
        Whether the fields are periodic: a bool, or a pair for rows and columns. By default it is
        the problem's, or false.
    settings
        Settings of the method and its predictor by name, such as `epochs=100`.

    Attributes
    ----------
    settings, parts
        All settings with their values, and the parts they stand for; known before the fit.
    operator_
        The fitted map from field batches to field batches, a torch module.
    input_space_, output_space_
        Channels and grids of the training fields.
    ranks_
        Numbers of axes of the user's inputs and outputs.
    n_features_in_
        Number of values in one input field.
    training_samples_
        Number of training pairs.
    timings_
        Seconds of each stage of the fit.
    history_
        Losses of each training, epoch by epoch.
    chosen_
        What a predictor in closed form chose on the validation fields.
    errors_
        The mean relative L2 errors that were measured: "validation" by `fit_auto`, "test" by
        `evaluate`.
    finetuning_
        The plan of the fine-tuning, or None.
    peak_device_gigabytes_
        Most GPU memory in use at once (10⁹ bytes) in the latest fit or fine-tuning; None without.
    trained_together_
        Number of networks that shared the time of the training.
    trust_
        The range of the training inputs, and the band around predictions; None after a fit with
        `calibration=False`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((60, 16, 16))
    >>> surrogate = Surrogate("two-scale", epochs=2).fit(x, x.cumsum(axis=2))
    >>> surrogate.predict(x[:3]).shape
    (3, 16, 16)
    """

    method: str
    seed: int

    def __init__(
        self,
        method: str = "two-scale",
        *,
        inputs: Representation | None = None,
        predictor: CodePredictor | str | None = None,
        outputs: Representation | None = None,
        correction: CodePredictor | None = None,
        seed: int = 0,
        device: str | torch.device = "auto",
        problem: str | Problem | None = None,
        periodic: bool | tuple[bool, bool] | None = None,
        **settings: Any,
    ) -> None:
        self._take_arguments(
            {
                "method": method,
                "inputs": inputs,
                "predictor": predictor,
                "outputs": outputs,
                "correction": correction,
                "seed": seed,
                "device": device,
                "problem": problem,
                "periodic": periodic,
                **settings,
            }
        )

    def _take_arguments(self, given: dict[str, Any]) -> None:
        """Remember arguments, and what they stand for; a wrong one raises and changes nothing."""
        self._take(resolve_arguments(**given), given)

    def _take(self, resolved: Resolved, given: dict[str, Any]) -> None:
        self._given = given
        self.method, self.settings, self.parts = resolved.method, resolved.settings, resolved.parts
        self.seed, self.device = resolved.seed, resolved.device
        self.problem, self.periodic = resolved.problem, resolved.periodic
        self.state_ = None  # any fit had other arguments

    def __repr__(self) -> str:
        return constructor_text(self)

    def __str__(self) -> str:
        return surrogate_text(self)

    def _repr_html_(self) -> str:
        return surrogate_html(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments of the constructor by name, as scikit-learn expects it.

        These are all named arguments, and the settings that were given. With `deep` the arguments
        of parts follow: `outputs__patches` is the argument `patches` of the part `outputs`.
        """
        return parameters_by_name(self._given, deep=deep)

    def set_params(self, **changes: Any) -> Self:
        """Change arguments of the constructor, and any setting, by name; return the surrogate.

        Arguments of parts are named as in `get_params`. A fitted surrogate is unfitted after any
        change. If a name or a value is wrong, nothing changes.
        """
        if changes:
            self._take_arguments(changed_parameters(self._given, changes))
        return self

    def __sklearn_tags__(self) -> Any:
        return regressor_tags()

    def __sklearn_is_fitted__(self) -> bool:
        return self.state_ is not None

    @property
    def n_features_in_(self) -> int:
        """Return the number of values in one input field, of all its channels."""
        return self.input_space_.channels * self.input_space_.grid.nodes

    def fit(
        self,
        inputs: Fields | None,
        outputs: Fields,
        *,
        parameters: Any = None,
        validation: Validation = None,
        calibration: Calibration = None,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        progress: ShowProgress = None,
        checkpoint: str | Path | None = None,
        scratch: Scratch = IN_MEMORY,
    ) -> Self:
        """Fit the representations and the predictor on pairs of fields.

        Parameters
        ----------
        inputs
            Input fields, one per sample; None if there are parameters only.
        outputs
            Solution fields of the same samples.
        parameters
            Scalars of each sample, (samples, P), beside the input fields or instead of them.
        validation
            (inputs, outputs), or (inputs, outputs, parameters), on which weights and settings are
            chosen; or the share of the samples to hold out for that, such as 0.2. By default the
            last tenth of a shuffle by the seed is held out.
        calibration
            (inputs, outputs), or (inputs, outputs, parameters), by which `assess` knows how wrong
            predictions can be. By default it is the second half of what is held out, if that is 9
            pairs at least; of validation pairs that are given, none. False leaves out flags, too.
        input_names, output_names
            Names of the channels. By default they have numbers.
        progress
            True shows a bar; a function is called as progress(stage, done, total, remark). By
            default nothing is shown.
        checkpoint
            A path beside which the state of a long fit is kept. The same call goes on from there
            after the process was killed. By default nothing is kept.
        scratch
            Where tensors as long as the data are kept; in memory by default.

        Returns
        -------
        Surrogate
            The surrogate itself.
        """
        reader = InputReader(self.periodic, input_names, output_names)
        data = reader.split(inputs, outputs, parameters, validation, calibration, seed=self.seed)
        if self.parts.data_parallel and not processes.is_first():
            checkpoint = None
        else:
            warn_of_symmetries(self.parts.symmetries, data.training)
        with (
            reporting(progress) as report,
            checkpoints_beside(checkpoint, self.parts, self.seed, data, self.device) as kept,
        ):
            options = FitOptions(self.seed, report, kept, scratch=scratch)
            self.state_ = run_fit(
                self.wanted_fit(lambda: data, options, learns_trust=calibration is not False)
            )
        return self

    def wanted_fit(
        self, read: Callable[[], SplitData], options: FitOptions, *, learns_trust: bool = True
    ) -> Fit:
        """Return the fit of this surrogate on some pairs, whose result becomes its `state_`.

        Parameters
        ----------
        read
            Returns the pairs.
        options
            How the fit is done; its seed is that of the surrogate.
        learns_trust
            Whether the range of the inputs is learned and, with calibration pairs, a band. True by
            default.
        """
        return Fit(
            self.parts,
            read,
            replace(options, seed=self.seed),
            self.device,
            problem=self.problem,
            batch_size=self.settings.get("evaluation_batch"),
            learns_trust=learns_trust,
            label=self,
        )

    def learn_trust(self, data: SplitData) -> Self:
        """Learn the range of the training inputs and, from calibration pairs, a band."""
        self.state_ = with_trust(self._fitted_state(), data, **self._calibration_options)
        return self

    @property
    def _calibration_options(self) -> dict[str, Any]:
        batch = self.settings.get("evaluation_batch")
        return {"problem": self.problem, "device": self.device, "batch": batch}

    def calibrate(self, inputs: Fields | None, outputs: Fields, *, parameters: Any = None) -> Self:
        """Measure how wrong predictions are, on pairs that took no part in the fit.

        `assess` then gives radii that hold for fresh inputs of the same kind. For a level of 95 %
        at least 19 pairs are needed; with some hundreds the level is met closely. Copies of the
        surrogate keep their own calibration.

        Parameters
        ----------
        inputs, outputs, parameters
            Pairs, as for `fit`.

        Returns
        -------
        Surrogate
            The surrogate itself.
        """
        pairs = self._test_pairs(inputs, outputs, parameters, role="calibration")
        state = self._fitted_state()
        trust = calibrated(state, pairs, **self._calibration_options).trust
        old, new = (
            0 if one is None or one.band is None else len(one.band.ratios)
            for one in (state.trust, trust)
        )
        if new < old:
            warnings.warn(
                f"this calibration has {new} samples, the one it replaces had {old}: levels above "
                f"{new / (new + 1):.3g} are no longer possible",
                TwoscaleWarning,
                stacklevel=2,
            )
        self.state_ = replace(state, trust=trust)
        return self

    def finetune(
        self,
        inputs: Fields | None,
        outputs: Fields,
        *,
        parameters: Any = None,
        validation: Validation = None,
        progress: ShowProgress = None,
        checkpoints: Checkpoints | None = None,
        scratch: Scratch = IN_MEMORY,
        **plan: Any,
    ) -> Self:
        """Return a copy whose predictor is fine-tuned on an objective of the assembled field.

        Parameters
        ----------
        inputs, outputs, parameters, validation, progress, scratch
            As for `fit`.
        checkpoints
            Where the state is kept. A later call with the same data and plan goes on from there.
            By default nothing is kept.
        plan
            Options of `FinetunePlan`, such as `objective` ("A1" to "A5", or "flux") and `epochs`.

        Returns
        -------
        Surrogate
            The copy. Its timings include those of the first fit. It knows the same inputs, but it
            has to be calibrated again.
        """
        steps = FinetunePlan.of(plan)
        operator, state = self._tunable(steps), self._fitted_state()
        data = self._reader.split(inputs, outputs, parameters, validation, False, seed=self.seed)
        for pairs in (data.training, data.validation):
            self.check_spaces(*pairs.spaces)
        LOGGER.info("fine-tuning on %s, %d pairs", steps.objective, len(data.training))
        record = FitRecord()
        # Fields are passed over twice and then never again: they need not stay on the device.
        sent = (one.on(self.device, resident=False) for one in (data.training, data.validation))
        reset_peak_memory()
        with reporting(progress) as report:
            operator, found = finetune_operator(
                operator,
                SplitData(*sent),
                steps,
                FitOptions(self.seed, report, checkpoints, scratch=scratch),
                record,
                common=self._common_layout(),
                problem=self.problem,
            )
        tuned = copy.copy(self)
        tuned.state_ = replace(
            state.measured(operator, record),
            training_samples=len(data.training),
            finetuning={**asdict(steps), "weights": found.weights},
            trust=state.trust and state.trust.without_band(),
        )
        tuned.history_["finetuning"]["components"] = found.components
        return tuned

    def finetuning_keeps_fields(self, **plan: Any) -> bool:
        """Say whether a fine-tuning needs its fields in memory; otherwise they may stay on disk."""
        steps = FinetunePlan.of(plan)
        self._tunable(steps)  # raises if it cannot be fine-tuned in this way
        return keeps_fields(steps, common=self._common_layout(), problem=self.problem)

    def _tunable(self, plan: FinetunePlan) -> CodeOperator:
        operator = self._fitted_state().operator
        return tunable(operator, plan, common=self._common_layout(), problem=self.problem)

    def with_problem(self, problem: Problem | None) -> Self:
        """Return the same surrogate for pairs of another equation, or of an unknown one."""
        other = copy.copy(self)
        other.problem = problem
        other.state_ = self.state_ and replace(self.state_, errors={})
        other._given = self._given | {"problem": problem}
        return other

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the surrogate as a folder; it appears complete or not at all."""
        self._fitted_state()
        with atomic_output(path, overwrite=overwrite, may_replace=is_replaceable) as folder:
            folder.mkdir()
            write_surrogate(self, folder)
        LOGGER.info("saved as %s", path)

    def export(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        metrics: Mapping[str, Any] | None = None,
    ) -> Exported:
        """Write the surrogate as one file that predicts without twoscale.

        The graph takes `fields` (batch, channels, height, width) and, if there are any,
        `parameters` (batch, P), float32 both. It gives `prediction`, the solution fields. The file
        is read back and compared with `predict` before it appears.

        Parameters
        ----------
        path
            The new file. Its suffix decides the format: ".onnx", or ".pt2" by `torch.export`.
        overwrite
            Whether to replace a file that is there already. False by default.
        metrics
            Metrics of `evaluate`, whose error and mean radius the file's metadata shall tell. By
            default they tell the errors that are known.

        Returns
        -------
        Exported
            Path and size of the file, its metadata, and how it was checked.
        """
        state = self._fitted_state()
        metadata = describe(
            state.operator,
            state.spaces,
            method=self.method,
            problem=self.problem,
            training_samples=state.training_samples,
            errors=state.errors,
            trust=state.trust,
            metrics=metrics,
        )
        made = export_operator(state.operator, state.spaces[0], metadata, path, overwrite=overwrite)
        LOGGER.info("exported as %s", path)
        return made

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        device: str | torch.device = "auto",
        problem: Problem | None = None,
    ) -> Self:
        """Return the surrogate saved at `path`.

        A problem that is not installed here is unknown: give it again as `problem`.
        """
        manifest, tensors = read_artifact(Path(path))
        place = resolve_device(device)
        resolved, state = restored(path, manifest, tensors, place, problem)
        surrogate = cls.__new__(cls)
        surrogate._take(resolved, equal_arguments(resolved, device))
        surrogate.state_ = state
        return surrogate
