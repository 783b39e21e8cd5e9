"""The datasets of studies: generated when they are first needed, and tests on others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from twoscale.data import Dataset, generate, open_data
from twoscale.data.description import describe
from twoscale.data.generation import PairSolver
from twoscale.files import atomic_output, content_digest, read_json, write_json
from twoscale.problems import Problem
from twoscale.run.folder import Fitted
from twoscale.run.pairs import loaded_pairs
from twoscale.runtime.memory import available_memory
from twoscale.runtime.progress import Progress, now
from twoscale_lab.study.cells import Data
from twoscale_lab.study.folder import BENCHMARK, StudyFolder

_ERRORS = ("mre", "mean_relative_l2", "median_relative_l1")


class GeneratedDataset(Dataset):
    """Pairs of a problem in memory, with the interface of a dataset; nothing is stored.

    Arguments are those of `generate`. The fields are the same.
    """

    has_checksums = False

    def __init__(
        self, problem: Problem, *, resolution: int, samples: int, seed: int = 0, device: str = "cpu"
    ) -> None:
        self._arguments = (problem, resolution, samples, seed)
        solver = PairSolver.of(*self._arguments)
        self.path = Path(f"{problem.name} in memory")
        self.layout = solver.layout
        self.metadata = describe(self.layout, problem, seed=seed) | {"chunk": self.layout.chunk}
        self.metadata["digest"] = content_digest(self.metadata)
        self._cached = {name: torch.empty(samples, *self.inner_shape(name)) for name in self.arrays}
        self._arrays = self._cached
        for part in solver.batches(device):
            for name, values in solver.solve(part, device).items():
                array = self._cached[name]
                array[part] = torch.from_numpy(values).reshape(-1, *array.shape[1:])

    def __reduce__(self) -> Any:
        """Return how another process generates the same fields."""
        problem, resolution, samples, seed = self._arguments
        make = partial(GeneratedDataset, resolution=resolution, samples=samples, seed=seed)
        return make, (problem,)


def open_dataset(folder: StudyFolder, device: str, data: Data, progress: Progress) -> Dataset:
    """Return a dataset of a study folder, generated if it is not there yet."""
    path = folder.data(data)
    if path.exists():
        return open_data(path)
    with _timing_generation(folder, data, device):
        return generate(data.make_problem(), path, **data.sizes, device=device, progress=progress)


def generated_in_memory(
    folder: StudyFolder, device: str, data: Data, progress: Progress
) -> GeneratedDataset:
    """Return a dataset that needs no Zarr and no disk."""
    with _timing_generation(folder, data, device):
        return GeneratedDataset(data.make_problem(), **data.sizes, device=device)


@contextmanager
def _timing_generation(folder: StudyFolder, data: Data, device: str) -> Iterator[None]:
    """Note in the folder how long the generation of a dataset takes."""
    start = now()
    yield
    with atomic_output(folder.generation(data), overwrite=True) as prepared:
        write_json(prepared, {"seconds": now() - start, "device": device})


@dataclass
class OpenDatasets:
    """Opens datasets for groups of cells; those of the last group stay open for the next one.

    With `hold` they stay in memory if they take less than a quarter of it.
    """

    open: Callable[[Data, Progress], Dataset]
    hold: bool = False
    opened: dict[Data, Dataset] = field(default_factory=dict)

    def __call__(self, wanted: Sequence[Data], progress: Progress) -> list[Dataset]:
        """Return datasets, opened if they are not open yet."""
        for data in self.opened.keys() - set(wanted):
            del self.opened[data]  # before the next one is in memory
        for data in wanted:
            if data not in self.opened:
                dataset = self.opened[data] = self.open(data, progress)
                if self.hold and dataset.nbytes < available_memory() // 4:
                    dataset.cache()
        return [self.opened[data] for data in wanted]


def generation_seconds(folder: StudyFolder, data: Data) -> float | None:
    """Return how long the generation of a dataset took, None if that is not known."""
    file = folder.generation(data)
    return float(read_json(file)["seconds"]) if file.is_file() else None


def benchmark_options(
    dataset: Dataset, tests: Sequence[Dataset], data_seconds: float | None
) -> dict[str, Any]:
    """Return the options of fits on a dataset that are tested on others; else none."""
    if not tests:
        return {}
    measure = partial(
        _measure_benchmark, dataset=dataset, outside=tests[1:], data_seconds=data_seconds
    )
    return {"test": tests[0], "illustrate": measure}


def _measure_benchmark(
    folder: Path,
    fitted: Fitted,
    *,
    dataset: Dataset,
    outside: Sequence[Dataset],
    data_seconds: float | None,
) -> None:
    """Add to a run folder what a benchmark needs beside the metrics.

    It is the errors on validation fields and on fields of another distribution, and the seconds
    that the data took. Cells of one seed and number of fields have the same validation fields,
    whether their fits need them or not.
    """
    content: dict[str, Any] = {"data_seconds": data_seconds}
    held_out = fitted.split.validation.tolist()
    parts = [("validation", dataset, held_out)] if held_out else []
    parts += [("outside", data, range(data.samples)) for data in outside]
    for name, data, samples in parts:
        surrogate = fitted.surrogate.with_problem(data.problem)
        pairs = loaded_pairs(data, samples)
        metrics = surrogate.evaluate(pairs.inputs, pairs.outputs)
        content[name] = {error: metrics[error] for error in _ERRORS}
    write_json(folder / BENCHMARK, content)
