"""A run as its report sees it: its files, what its predictions tell, and what they suggest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twoscale.data import Dataset
from twoscale.data.direct import reopen_data
from twoscale.errors import TwoscaleError
from twoscale.report.method_looks import method_title
from twoscale.report.run_samples import RunSamples, measure_samples, most_samples
from twoscale.run import Run
from twoscale.run.break_even import fit_seconds, prediction_seconds
from twoscale.run.folder import (
    ENVIRONMENT,
    HISTORY,
    METRICS,
    Fitted,
    read_run_json,
    tested_dataset,
)
from twoscale.run.pairs import loaded_pairs
from twoscale.search.advice import Findings, Suggestion, advise
from twoscale.search.policy import INTERRUPTED, NO_TIME
from twoscale.surrogate import Surrogate


@dataclass(frozen=True)
class RunRecord:
    """A run, its numbers, and some of its predictions.

    `path` is where the run is or will appear. `test_samples` are the numbers of the samples that it
    is judged by, in the run's own dataset or in other `data`. `samples` are None where these are
    not looked at.
    """

    path: Path
    surrogate: Surrogate
    config: Mapping[str, Any]
    metrics: Mapping[str, Any]
    history: Mapping[str, Any]
    environment: Mapping[str, Any]
    search: Mapping[str, Any] | None
    test_samples: Sequence[int]
    samples: RunSamples | None = None
    data: Dataset | None = None

    @property
    def name(self) -> str:
        return self.path.name or str(self.path)

    @property
    def dataset_path(self) -> Path:
        return Path(self.config["dataset"]["path"])

    @property
    def judging_identity(self) -> str:
        """Return the identity of the dataset whose samples the errors are of."""
        if self.data is not None:
            return self.data.identity
        return str(tested_dataset(self.config)["identity"])

    def judging_dataset(self) -> Dataset:
        """Return the dataset whose samples the errors are of."""
        return self.data if self.data is not None else reopen_data(tested_dataset(self.config))

    @property
    def judged_by(self) -> str:
        """Return which samples the errors are of, in words."""
        if self.data is not None:
            return f"samples of {self.data.path.name}"
        return f"{self.metrics.get('measured_on', 'test')} samples"

    @property
    def predictor(self) -> str:
        return str(self.surrogate.settings.get("predictor", ""))

    @property
    def title(self) -> str:
        """Return what was fitted: the method, its predictor, and the fine-tuning."""
        method = self.surrogate.method
        words = method_title(method)
        if self.predictor and self.predictor != method:
            words += f" with predictor {self.predictor}"
        tuning = self.surrogate.finetuning_
        return f"{words}, fine-tuned on {tuning['objective']}" if tuning else words

    @property
    def error(self) -> float | None:
        """Return the mean relative L2 error of the test samples; None if it is not finite."""
        return self.metrics["mean_relative_l2"]

    @property
    def prediction_seconds(self) -> float | None:
        """Return the seconds of one prediction among many."""
        return prediction_seconds(self.metrics)

    @property
    def fit_seconds(self) -> float:
        """Return the seconds of the fit, or of the whole search."""
        return fit_seconds(self.metrics, self.search)

    @property
    def findings(self) -> Findings | None:
        """Return what is known of the error; None if it is not finite."""
        if self.error is None:
            return None
        surrogate, search = self.surrogate, self.search or {}
        problem, samples = surrogate.problem, self.samples
        channels = {
            name: values["mean_relative_l2"]
            for name, values in self.metrics.get("channels", {}).items()
            if values["mean_relative_l2"] is not None
        }
        trials = [trial for trial in search.get("trials", ()) if trial["failure"] is None]
        code = self.metrics["output_code"]
        return Findings(
            error=self.error,
            training_error=self.metrics.get("training_mean_relative_l2"),
            oracle=self.metrics["oracle_mean_relative_l2"],
            method=surrogate.method,
            settings=surrogate.settings,
            inputs=surrogate.input_space_,
            outputs=surrogate.output_space_,
            output_code=code,
            symmetries=search.get(
                "declared_symmetries", surrogate.settings.get("symmetries", "none")
            ),
            known_symmetries="none" if problem is None else problem.symmetric_under,
            half_error=search.get("half_error"),
            accelerated=surrogate.device.type == "cuda",
            searched=bool(trials),
            short_of_time=search.get("stopped", "").startswith(NO_TIME),
            interrupted=search.get("stopped") == INTERRUPTED,
            tried_longer=any(
                trial["method"] == surrogate.method and trial["output_code"] > (code or math.inf)
                for trial in trials
            ),
            tried_predictors=[trial["settings"]["predictor"] for trial in trials],
            tunable=self._tunable,
            epochs=None if surrogate.finetuning_ else _epochs(self.history),
            seam_ratio=samples.seam_ratio if samples else None,
            outliers=samples.outliers if samples else (),
            channels=channels,
            tested=self.metrics.get("samples"),
        )

    @property
    def _tunable(self) -> bool:
        """Say whether the run can be fine-tuned, and has not been."""
        try:
            self.surrogate.finetuning_keeps_fields()  # raises if it cannot be fine-tuned
        except TwoscaleError:
            return False
        return self.surrogate.finetuning_ is None

    @property
    def suggestions(self) -> list[Suggestion]:
        """Return what would make the error smaller, the most promising first."""
        return [] if self.findings is None else advise(self.findings)


def _epochs(histories: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the epoch whose weights were kept, and all epochs, of the last training."""
    if not histories:
        return None
    last = list(histories.values())[-1]
    return int(last["best_epoch"]), len(last["training_loss"])


def read_run(run: Run, data: Dataset | None = None, *, look: bool = True) -> RunRecord:
    """Return a finished run, on its test split or on all samples of other `data`.

    Its predictions are computed only if they are to be looked at.
    """
    if data is None or run.tested_on(data):
        other, metrics, numbers = None, run.metrics, sorted(run.test_samples)
    else:
        other, metrics = data, run.evaluate(data)
        numbers = sorted(run.measured_samples(data)[1])
    samples = None
    if look:
        dataset = run.test_dataset if data is None else data
        surrogate = run.surrogate.with_problem(dataset.problem)
        surrogate.check_spaces(dataset.input_space, dataset.output_space)
        most = most_samples(dataset.input_space, dataset.output_space)
        pairs = loaded_pairs(dataset, numbers[:most])
        samples = measure_samples(surrogate, pairs, numbers)
    return RunRecord(
        run.path,
        run.surrogate,
        run.config,
        metrics,
        read_run_json(run.path, HISTORY),
        read_run_json(run.path, ENVIRONMENT),
        run.search,
        numbers,
        samples,
        other,
    )


def fresh_run(folder: Path, fitted: Fitted) -> RunRecord:
    """Return a run whose files are in a folder and which has not appeared yet."""
    numbers = sorted(fitted.split.as_dict()[fitted.split.measured])
    test = fitted.data.test
    assert test is not None
    return RunRecord(
        fitted.out,
        fitted.surrogate,
        fitted.config,
        read_run_json(folder, METRICS),
        fitted.surrogate.history_,
        read_run_json(folder, ENVIRONMENT),
        fitted.search,
        numbers,
        measure_samples(fitted.surrogate, test, numbers),
    )
