"""The folder of a run: how a finished one is read, and a new one written."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from twoscale.data import Dataset, Split
from twoscale.errors import TwoscaleError
from twoscale.fields.samples import Samples
from twoscale.fields.source import in_memory
from twoscale.files import check_file, read_checked_json, read_sums, write_json, write_sums
from twoscale.run.pairs import Pair, loaded_pair
from twoscale.runtime.progress import Progress
from twoscale.surrogate import Surrogate
from twoscale.surrogate.artifact import MANIFEST, environment
from twoscale.surrogate.manifest import write_surrogate

Illustrate = Callable[[Path, Surrogate, Tensor, Tensor], None]

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
        dataset = Dataset(self.config["dataset"].get("path", ""))
        if dataset.identity != self.identity:
            raise TwoscaleError(
                f"{dataset.path} has changed since {self.path} was fitted on it: pass data=..."
            )
        return dataset

    @property
    def identity(self) -> str | None:
        """Return the identity of the dataset the run was fitted on."""
        return self.config["dataset"].get("identity")

    @property
    def test_samples(self) -> list[int]:
        return read_run_json(self.path, SPLIT)["test"]

    def fitted_on(self, data: Dataset) -> bool:
        """Say whether the run was fitted on this dataset or a copy of it."""
        return data.identity == self.identity

    def evaluate(
        self,
        data: Dataset | None = None,
        *,
        samples: Sequence[int] | None = None,
        per_sample: bool = False,
    ) -> dict[str, Any]:
        """Return the metrics on some samples of `data`, as `Surrogate.evaluate` does.

        Without `samples`: on the run's test split, or on all samples of another dataset.
        """
        if data is None:
            data = self.dataset
        if samples is None:
            samples = self.test_samples if self.fitted_on(data) else range(data.samples)
        pair = loaded_pair(data, samples)
        measured = self.surrogate.with_problem(data.problem)
        return measured.evaluate(*pair, per_sample=per_sample)


def write_run(
    folder: Path,
    surrogate: Surrogate,
    test: Pair,
    split: Split,
    config: dict[str, Any],
    progress: Progress | None,
    illustrate: Illustrate | None,
) -> None:
    """Evaluate a fitted surrogate on the test split and write all files of a run."""
    if progress:
        progress("evaluation", 0, 1, "")
    metrics = surrogate.evaluate(*test)
    write_surrogate(surrogate, folder)
    write_json(folder / CONFIG, config)
    write_json(folder / SPLIT, split.as_dict())
    write_json(folder / HISTORY, surrogate.history_)
    write_json(folder / METRICS, metrics)
    write_json(folder / ENVIRONMENT, environment(surrogate.device))
    if illustrate:
        illustrate(folder, surrogate, *(_in_memory(fields) for fields in test))
    write_sums(folder)
    if progress:
        progress("evaluation", 1, 1, "")


def _in_memory(samples: Samples) -> Tensor:
    """Return the fields, or only the first chunk if they are on disk."""
    return samples.tensor() if in_memory(samples.source) else next(iter(samples.source.chunks()))


def run_config(
    dataset: Dataset, surrogate: Surrogate, training_samples: int, *, base: str | None = None
) -> dict[str, Any]:
    """Return the config of a run: method, seed, settings, data, and the hash of all that."""
    names = ("problem", "input", "output", "samples", "seed", "distribution")
    described = {name: dataset.metadata[name] for name in names}
    content: dict[str, Any] = {
        "method": surrogate.method,
        "seed": surrogate.seed,
        "settings": surrogate.settings,
        "training_samples": training_samples,
        "dataset": {"identity": dataset.identity, **described},
    }
    if base is not None:
        content |= {"base": base, "finetuning": surrogate.finetuning_}
    digest = _digest(content)
    path = str(dataset.path.resolve()).encode(errors="replace").decode()  # JSON holds only text
    content["dataset"] = {"path": path, **content["dataset"]}
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
