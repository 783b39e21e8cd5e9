"""The folder of a run: how a finished one is read, and a new one written."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from twoscale.data import Dataset, Reading, Shares, Split, open_data
from twoscale.data.direct import is_stored, reopen_data
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.workers import Workers
from twoscale.files import check_file, new_folder, read_sums, write_json
from twoscale.files.checksums import read_checked_json, write_sums
from twoscale.files.outputs import Output
from twoscale.math.measures import Compared, relative_errors
from twoscale.run.break_even import break_even
from twoscale.run.pairs import loaded_pairs
from twoscale.runtime.progress import Progress
from twoscale.surrogate import Surrogate
from twoscale.surrogate.artifact import MANIFEST, environment
from twoscale.surrogate.manifest import write_surrogate
from twoscale.surrogate.options import shared_device

TRAINING_SAMPLES = 200  # on which the error on training fields is measured, at most

CONFIG, SPLIT, HISTORY = "config.json", "split.json", "history.json"
METRICS, ENVIRONMENT, SEARCH = "metrics.json", "environment.json", "search.json"

_REQUIRED: dict[str, dict[str, type]] = {
    CONFIG: {"hash": str, "dataset": dict, "training_samples": int},
    SPLIT: {"training": list, "validation": list, "test": list},
    METRICS: {"timings": dict, "common_seams": dict},
    SEARCH: {"trials": list, "explanation": list},
}


def read_run_json(folder: Path, name: str) -> dict[str, Any]:
    """Return the content of a file in a run folder; raise if it does not match its checksum."""
    return read_checked_json(folder, name, require=_REQUIRED.get(name))


@dataclass(frozen=True)
class Run:
    """A finished run folder."""

    path: Path
    surrogate: Surrogate
    config: dict[str, Any]

    @classmethod
    def open(cls, path: str | Path, *, device: str = "auto") -> Run:
        """Return the run at `path`."""
        folder = Path(path)
        surrogate = Surrogate.load(folder, device=device)
        check_file(folder, MANIFEST)
        config = read_run_json(folder, CONFIG)
        for name in ("path", "identity"):
            if not isinstance(config["dataset"].get(name), str):
                raise TwoscaleError(
                    f"{folder / CONFIG} is damaged: it lacks a proper dataset {name}"
                )
        return cls(folder, surrogate, config)

    @property
    def metrics(self) -> dict[str, Any]:
        return read_run_json(self.path, METRICS)

    @property
    def search(self) -> dict[str, Any] | None:
        """Return the record of the search that found the run's method, if there was one."""
        known = SEARCH in read_sums(self.path)
        return read_run_json(self.path, SEARCH) if known else None

    @property
    def dataset(self) -> Dataset:
        """Return the dataset the run was fitted on."""
        return self._unchanged(self.config["dataset"])

    def _unchanged(self, described: dict[str, Any]) -> Dataset:
        """Return the dataset that the config describes, or raise if it is another one by now."""
        dataset = reopen_data(described)
        if dataset.identity != described.get("identity"):
            raise TwoscaleError(
                f"{dataset.path} has changed since {self.path} was fitted on it: name other data"
            )
        return dataset

    @property
    def reading(self) -> Reading:
        """Return how the files were read that the run was fitted on; empty if none were."""
        return Reading.recorded_in(self.config["dataset"])

    @property
    def identity(self) -> str | None:
        """Return the identity of the dataset the run was fitted on."""
        return self.config["dataset"].get("identity")

    @property
    def test_dataset(self) -> Dataset:
        """Return the dataset whose samples the run is tested on: its own, or a separate one."""
        return self._unchanged(tested_dataset(self.config))

    def tested_on(self, data: Dataset) -> bool:
        """Say whether the run is tested on samples of this dataset or a copy of it."""
        return data.identity == tested_dataset(self.config).get("identity")

    @property
    def split(self) -> Split:
        """Return the training, validation and test samples."""
        return Split(**{k: np.array(v, int) for k, v in read_run_json(self.path, SPLIT).items()})

    @property
    def test_samples(self) -> list[int]:
        """Return the samples of `test_dataset` that metrics are measured on.

        Those are the test samples; without any, the validation or training samples.
        """
        split = self.split
        return split.as_dict()[split.measured]

    def open_data(self, path: str | Path, asked: Reading | None = None) -> Dataset:
        """Return another dataset or file, read like the run's own, except for what is `asked`."""
        given = asked or Reading()
        return open_data(path, given if is_stored(path) else self.reading.for_other(given))

    def fitted_on(self, data: Dataset) -> bool:
        """Say whether the run was fitted on this dataset or a copy of it."""
        return data.identity == self.identity

    def evaluate(
        self,
        data: Dataset | None = None,
        *,
        samples: Sequence[int] | None = None,
        resample: bool = False,
        per_sample: bool = False,
        times_solver: bool = False,
        workers: Workers | None = None,
    ) -> dict[str, Any]:
        """Return the metrics on some samples of `data`, as `Surrogate.evaluate` does.

        Without `samples`: on the run's test samples, or on all samples of another dataset.
        `measured_on` tells which: "test", "validation", "training", "all", or "given". With
        `resample` the data may be on another grid. With `times_solver` there is `break_even`, if
        the equation is known and the grid is the run's own. With `workers` these predict.
        """
        if data is None:
            data = self.test_dataset
        shared_device(workers, self.surrogate.device)
        measured = "given"
        if samples is None:
            measured, samples = self.measured_samples(data)
        surrogate = self.surrogate.with_problem(data.problem)
        pairs = loaded_pairs(data, samples, workers)
        options = {"resample": resample, "per_sample": per_sample}
        metrics = surrogate.evaluate(pairs.inputs, pairs.outputs, **options)
        if times_solver and "resampled_from" not in metrics:
            metrics |= break_even(surrogate, pairs, metrics, self.search)
        return metrics | {"measured_on": measured}

    def measured_samples(self, data: Dataset) -> tuple[str, Sequence[int]]:
        """Return which part of a dataset metrics are measured on, and its samples."""
        separate = self.config.get("test_dataset")
        if separate is not None and data.identity == separate.get("identity"):
            return "test", range(data.samples)
        if not self.fitted_on(data):
            return "all", range(data.samples)
        split = self.split
        if separate is not None:  # the test samples are those of the other dataset
            split = replace(split, test=split.test[:0])
        return split.measured, split.as_dict()[split.measured]


def tested_dataset(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of the dataset that a run is tested on: a separate one, or its own."""
    return config.get("test_dataset") or config["dataset"]


def recorded_reading(folder: Path) -> Reading:
    """Return how the files of a run were read; an empty reading for a saved surrogate."""
    if not (folder / CONFIG).exists():
        return Reading()
    return Reading.recorded_in(read_run_json(folder, CONFIG)["dataset"])


@dataclass(frozen=True)
class Fitted:
    """A fitted surrogate that becomes a run: where it will appear, and the samples it is of."""

    out: Path
    surrogate: Surrogate
    config: dict[str, Any]
    split: Split
    data: SplitData  # of training pairs perhaps only the first
    trusted: bool = True  # it shall know its range, be calibrated, and compared with the solver
    search: dict[str, Any] | None = None  # the record of the search that found it


Illustrate = Callable[[Path, Fitted], None]
"""Adds a page to the folder of a run, which has all its files but the checksums."""


def write_run(
    output: Output,
    fitted: Fitted,
    progress: Progress | None,
    illustrate: Illustrate | None,
    *,
    commit: bool = True,
) -> Run:
    """Evaluate a fitted surrogate on the test pairs and write all files of a run.

    The run folder appears at once, unless the caller is to `commit` the output.
    """
    folder = output.content
    new_folder(folder)
    if progress:
        progress("evaluation", 0, 1, "")
    surrogate, test = fitted.surrogate, fitted.data.test
    assert test is not None
    metrics = surrogate.evaluate(test.inputs, test.outputs) | {"measured_on": fitted.split.measured}
    metrics |= _training_errors(surrogate, fitted.data.training.first(TRAINING_SAMPLES).loaded())
    if fitted.trusted:
        metrics |= break_even(surrogate, test, metrics, fitted.search)
    write_surrogate(surrogate, folder)
    write_json(folder / CONFIG, fitted.config)
    write_json(folder / SPLIT, fitted.split.as_dict())
    write_json(folder / HISTORY, surrogate.history_)
    write_json(folder / METRICS, metrics)
    if fitted.search is not None:
        write_json(folder / SEARCH, fitted.search)
    write_json(folder / ENVIRONMENT, environment(surrogate.device))
    write_sums(folder)
    if illustrate:
        illustrate(folder, fitted)
    if progress:
        progress("evaluation", 1, 1, "")
    if commit:
        output.commit()
    return Run(fitted.out, surrogate, fitted.config)


def _training_errors(surrogate: Surrogate, pairs: Pairs) -> dict[str, float | None]:
    """Return both relative L2 errors on some training pairs; None if not finite."""
    batches = (
        Compared(surrogate.predict_batch(seen).double(), truth.double())
        for seen, truth in pairs.chunks()
    )
    found = relative_errors(batches).items()
    return {f"training_{name}": one if math.isfinite(one) else None for name, one in found}


def run_config(
    dataset: Dataset,
    surrogate: Surrogate,
    training_samples: int,
    *,
    base: str | None = None,
    shares: Shares | str | None = None,
    test: Dataset | None = None,
) -> dict[str, Any]:
    """Return the config of a run: method, seed, settings, data, and the hash of all that.

    `split` and `test_dataset` are there if they are not the usual ones.
    """
    names = ("problem", "input", "output", "samples", "seed", "distribution")
    described = {name: dataset.metadata[name] for name in names}
    if "reading" in dataset.metadata:
        described["reading"] = dataset.metadata["reading"]
    content: dict[str, Any] = {
        "method": surrogate.method,
        "seed": surrogate.seed,
        "settings": surrogate.settings,
        "training_samples": training_samples,
        "dataset": {"identity": dataset.identity, **described},
    }
    if base is not None:
        content |= {"base": base, "finetuning": surrogate.finetuning_}
    if shares is not None:
        content["split"] = str(shares)
    if test is not None:
        content["test_dataset"] = {"identity": test.identity, "samples": test.samples}
        if "reading" in test.metadata:
            content["test_dataset"]["reading"] = test.metadata["reading"]
    digest = _digest(content)
    for name, one in (("dataset", dataset), ("test_dataset", test)):
        if one is not None:
            path = str(one.path.resolve()).encode(errors="replace").decode()  # JSON holds only text
            content[name] = {"path": path, **content[name]}
            if "files" in one.metadata:
                content[name]["files"] = one.metadata["files"]
    return {"hash": digest, **content}


def _digest(content: dict[str, Any]) -> str:
    """Return the hash of a run's config.

    The weights that a fine-tuning calibrates are found, not asked for, and differ between devices
    in their last digits: they are left out.
    """
    if tuning := content.get("finetuning"):
        plan = {name: value for name, value in tuning.items() if name != "weights"}
        content = content | {"finetuning": plan}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
