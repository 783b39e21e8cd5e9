"""A run: a surrogate fitted on a stored dataset, with everything needed to trust and repeat it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from twoscale.clock import now
from twoscale.data import Dataset, Split, split_samples
from twoscale.errors import TwoscaleError
from twoscale.files import read_json, write_json
from twoscale.memory import available_memory
from twoscale.progress import Progress
from twoscale.search import DEFAULT_BUDGET, fit_auto
from twoscale.source import FieldSource
from twoscale.surrogate import Surrogate, fit_together
from twoscale.surrogate.artifact import check_surrogate_folder, environment, surrogate_folder
from twoscale.surrogate.settings import identifying
from twoscale.surrogate.together import Data

Pair = tuple[Tensor | FieldSource, Tensor | FieldSource]
Illustrate = Callable[[Path, Surrogate, Tensor, Tensor], None]

_SEARCH = "search.json"


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
        config = read_json(folder / "config.json", require={"hash": str, "dataset": dict})
        return cls(folder, surrogate, config)

    @property
    def metrics(self) -> dict[str, Any]:
        return read_json(self.path / "metrics.json")

    @property
    def search(self) -> dict[str, Any] | None:
        """Return how the run's method was found, if it was not named."""
        path = self.path / _SEARCH
        return read_json(path, require={"trials": list}) if path.exists() else None

    @property
    def dataset(self) -> Dataset:
        """Return the dataset the run was fitted on."""
        dataset = Dataset(self.config["dataset"].get("path", ""))
        if dataset.identity != self.identity:
            raise TwoscaleError(
                f"{dataset.path} has changed since {self.path} was fitted on it: pass --data"
            )
        return dataset

    @property
    def identity(self) -> str | None:
        """Return the identity of the dataset the run was fitted on."""
        return self.config["dataset"].get("identity")

    @property
    def test_samples(self) -> list[int]:
        return read_json(self.path / "split.json", require={"test": list})["test"]

    def fitted_on(self, data: Dataset) -> bool:
        """Say whether the run was fitted on this dataset or a copy of it."""
        return data.identity == self.identity

    def evaluate(
        self, data: Dataset | None = None, *, samples: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """Return the metrics on some samples of `data`.

        Without `samples`: on the run's test split, or on all samples of another dataset.
        """
        if data is None:
            data = self.dataset
        if samples is None:
            samples = self.test_samples if self.fitted_on(data) else range(data.samples)
        pair = (data.load("input", samples), data.load("output", samples))
        return self.surrogate.with_problem(data.problem).evaluate(*pair)


def fit_run(
    dataset: Dataset,
    out: str | Path,
    *,
    method: str,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    training_samples: int | None = None,
    device: str = "auto",
    memory: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
) -> Run:
    """Fit a method on a dataset's training split and write the run folder.

    `illustrate` is called with the unfinished folder, the surrogate and the test pair, to add
    pictures before the run appears.
    """
    (run,) = fit_runs(
        dataset,
        {seed: out},
        method=method,
        settings=settings,
        training_samples=training_samples,
        device=device,
        memory=memory,
        overwrite=overwrite,
        progress=progress,
        illustrate=illustrate,
    )
    return run


def fit_runs(
    dataset: Dataset,
    outs: Mapping[int, str | Path],
    *,
    method: str,
    settings: dict[str, Any] | None = None,
    training_samples: int | None = None,
    **options: Any,
) -> list[Run]:
    """Fit a method for several seeds at once; `outs` names each seed's run folder.

    Options are those of `fit_requests`. All run folders appear, or none.
    """
    requests = [
        Request(Path(out), method, seed, settings or {}, training_samples)
        for seed, out in outs.items()
    ]
    return [run for run in fit_requests(dataset, requests, **options) if run is not None]


@dataclass(frozen=True)
class Request:
    """A run that is wanted: where it shall lie, and what it shall be."""

    out: Path
    method: str
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    training_samples: int | None = None


def fit_requests(
    dataset: Dataset,
    requests: Sequence[Request],
    *,
    device: str = "auto",
    memory: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
    on_error: Callable[[Request, Exception], None] | None = None,
) -> list[Run | None]:
    """Fit any methods, seeds and variants on a dataset at once, and write their run folders.

    What they have in common is done once: fields are read once per split, equal representations are
    fitted once, networks on codes are trained side by side.

    `memory` is the memory to stay within, in bytes (the machine's free memory unless told). Fields
    that would take more than half of it are read from disk on every pass instead. With `on_error`
    each run appears as soon as it is ready, and one that fails is reported there and given as None;
    without it all run folders appear, or none.
    """
    fits = _RequestedFits(dataset, requests, device, memory, progress)
    runs: list[Run | None] = [None] * len(requests)
    for request in requests:
        check_surrogate_folder(request.out, overwrite=overwrite)
    with ExitStack() as stack:

        def write(place: int) -> None:
            out = requests[place].out
            with ExitStack() as own:
                folder = own.enter_context(surrogate_folder(out, overwrite=overwrite))
                runs[place] = fits.write(place, folder, illustrate)
                if on_error is None:
                    stack.push(own.pop_all())

        failed = None
        if on_error is not None:

            def failed(place: int, error: Exception) -> None:
                on_error(requests[place], error)

        fits.fit(write, failed)
    return runs


def auto_run(
    dataset: Dataset,
    out: str | Path,
    *,
    budget: float | str = DEFAULT_BUDGET,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    training_samples: int | None = None,
    device: str = "auto",
    memory: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
) -> Run:
    """Search for the best surrogate within a time budget and write its run folder.

    The run is one of the method that was found; `search.json` tells how. The test split has no part
    in the choice. Loading counts towards the budget.
    """
    start = now()
    split = split_samples(dataset.samples, seed=seed, training=training_samples)
    stored = dataset.nbytes > (memory or available_memory()) // 2
    with surrogate_folder(out, overwrite=overwrite) as folder:
        pairs = _stored(dataset, split) if stored else _load(dataset, split, progress)
        training, validation, test = pairs
        found = fit_auto(
            *training,
            validation=validation,
            budget=budget,
            seed=seed,
            device=device,
            problem=dataset.problem,
            progress=progress,
            start=start,
            **(settings or {}),
        )
        surrogate = found.surrogate
        config = _config(dataset, surrogate, len(split.training))
        write_json(folder / _SEARCH, found.record)
        _write(folder, surrogate, test, split, config, progress, illustrate)
    return Run(Path(out), surrogate, config)


class _RequestedFits:
    """The surrogates of some requests, and the fields they are fitted and tested on."""

    def __init__(
        self,
        dataset: Dataset,
        requests: Sequence[Request],
        device: str,
        memory: int | None,
        progress: Progress | None,
    ) -> None:
        self.dataset = dataset
        self.requests = requests
        self.progress = progress
        self.surrogates = [
            Surrogate(
                one.method, seed=one.seed, device=device, problem=dataset.problem, **one.settings
            )
            for one in requests
        ]
        self.splits = [
            split_samples(dataset.samples, seed=one.seed, training=one.training_samples)
            for one in requests
        ]
        self.stored = dataset.nbytes > (memory or available_memory()) // 2
        for surrogate in self.surrogates:
            if self.stored and memory and not surrogate.passes_over_fields:
                raise TwoscaleError(
                    f"{surrogate.method} trains on whole fields, which need "
                    f"{2 * dataset.nbytes / 1e9:.1f} GB here: give more --memory, or choose a PCA "
                    "method"
                )
        self.loaded: tuple[Any, list[Pair]] = (None, [])
        self.tests: dict[int, Pair] = {}  # by seed

    def fit(
        self, write: Callable[[int], None], failed: Callable[[int, Exception], None] | None
    ) -> None:
        """Fit all, those of the same split one after the other; `write` each that is ready."""
        order = sorted(range(len(self.requests)), key=lambda place: repr(self._part(place)))
        fit_together(
            [self.surrogates[place] for place in order],
            [partial(self._training, place) for place in order],
            same=[self._part(place) for place in order],
            progress=self.progress,
            finished=lambda position: write(order[position]),
            failed=failed and (lambda position, error: failed(order[position], error)),
        )

    def _part(self, place: int) -> tuple[int, int | None]:
        """Return what decides the split of a request."""
        return self.requests[place].seed, self.requests[place].training_samples

    def _pairs(self, place: int) -> list[Pair]:
        """Return the fields of the three parts of a split; the last ones asked for are kept."""
        part = self._part(place)
        if self.loaded[0] != part:
            self.loaded = (None, [])
            split = self.splits[place]
            load = _stored(self.dataset, split) if self.stored else self._load(split)
            self.loaded = (part, load)
            self.tests[part[0]] = load[2]
        return self.loaded[1]

    def _load(self, split: Split) -> list[Pair]:
        return _load(self.dataset, split, self.progress)

    def _training(self, place: int) -> Data:
        training, validation, _ = self._pairs(place)
        return *training, validation

    def write(self, place: int, folder: Path, illustrate: Illustrate | None) -> Run:
        """Write a fitted run into an open folder."""
        surrogate, split = self.surrogates[place], self.splits[place]
        config = _config(self.dataset, surrogate, len(split.training))
        _write(
            folder, surrogate, self.tests[surrogate.seed], split, config, self.progress, illustrate
        )
        return Run(self.requests[place].out, surrogate, config)


def finetune_run(
    base: Run,
    out: str | Path,
    *,
    data: Dataset | None = None,
    memory: int | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
    **plan: Any,
) -> Run:
    """Fine-tune a run on its own training split (or that of other `data`) into a new run folder.

    `memory` is as for `fit_requests`. Objectives that look at whole fields in each step keep them
    in memory, and are refused where they do not fit.
    """
    if base.path.resolve().is_relative_to(Path(out).resolve()):
        raise TwoscaleError(f"{out} holds the run that is fine-tuned: choose another --out")
    dataset = data or base.dataset
    start = base.surrogate.with_problem(dataset.problem)
    start.check_grid(dataset.grid.shape)
    samples = base.config.get("training_samples") if base.fitted_on(dataset) else None
    split = split_samples(dataset.samples, seed=start.seed, training=samples)
    allowed = memory or available_memory()
    if start.finetuning_keeps_fields(**plan):
        _check_kept(dataset, split, allowed)
    stored = dataset.nbytes > allowed // 2
    with surrogate_folder(out, overwrite=overwrite) as folder:
        pairs = _stored(dataset, split) if stored else _load(dataset, split, progress)
        training, validation, test = pairs
        surrogate = start.finetune(*training, validation=validation, progress=progress, **plan)
        config = _config(dataset, surrogate, len(split.training), base=base.config["hash"])
        _write(folder, surrogate, test, split, config, progress, illustrate)
    return Run(Path(out), surrogate, config)


def _check_kept(dataset: Dataset, split: Split, allowed: int) -> None:
    """Raise if the fields of training and validation are too much for the allowed memory."""
    kept = dataset.nbytes * (len(split.training) + len(split.validation)) / dataset.samples
    if kept > 0.75 * allowed:  # the rest is for what is made of them
        raise TwoscaleError(
            f"this objective looks at whole fields in each step, which need {kept / 0.75e9:.3g} GB "
            "of memory here: give more --memory, or choose an objective that leaves them on disk, "
            "such as A3"
        )


def _load(dataset: Dataset, split: Split, progress: Progress | None) -> list[Pair]:
    """Return the pairs of fields of the three parts of a split."""
    parts = [split.training, split.validation, split.test]
    arrays = []
    for done, name in enumerate(("input", "output")):
        if progress:
            progress("loading", done, 2, f"{name} fields")
        arrays.append(dataset.load_parts(name, parts))
    if progress:
        progress("loading", 2, 2, "")
    return list(zip(*arrays, strict=True))


def _stored(dataset: Dataset, split: Split) -> list[Pair]:
    """Return the same pairs as sources that read from disk on each pass."""
    parts = [split.training, split.validation, split.test]
    return [(dataset.fields("input", part), dataset.fields("output", part)) for part in parts]


def _write(
    folder: Path,
    surrogate: Surrogate,
    test: Pair,
    split: Split,
    config: dict[str, Any],
    progress: Progress | None,
    illustrate: Illustrate | None,
) -> None:
    """Evaluate a fitted surrogate on the test split and write everything a run holds."""
    if progress:
        progress("evaluation", 0, 1, "")
    metrics = surrogate.evaluate(*test)
    surrogate.write(folder)
    write_json(folder / "config.json", config)
    write_json(folder / "split.json", split.as_dict())
    write_json(folder / "history.json", surrogate.history_)
    write_json(folder / "metrics.json", metrics)
    write_json(folder / "environment.json", environment(surrogate.device))
    if illustrate:
        illustrate(folder, surrogate, *(_in_memory(fields) for fields in test))
    if progress:
        progress("evaluation", 1, 1, "")


def _in_memory(fields: Tensor | FieldSource) -> Tensor:
    """Return fields in memory: of a source, the first chunk's."""
    return fields if isinstance(fields, Tensor) else next(iter(fields.chunks()))


def _config(
    dataset: Dataset, surrogate: Surrogate, training_samples: int, *, base: str | None = None
) -> dict[str, Any]:
    described = {
        key: dataset.metadata[key] for key in ("problem", "grid", "samples", "seed", "distribution")
    }
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
    content["dataset"] = {"path": str(dataset.path.resolve()), **content["dataset"]}
    return {"hash": digest, **content}


def _digest(content: dict[str, Any]) -> str:
    """Return the hash of what was asked for.

    The weights that a fine-tuning calibrates are found, not asked for, and differ between devices
    in their last digits: they are left out. Settings that leave everything as it was before they
    came are left out as well.
    """
    content = content | {"settings": identifying(content["settings"])}
    if tuning := content.get("finetuning"):
        plan = {name: value for name, value in tuning.items() if name != "weights"}
        content = content | {"finetuning": plan}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
