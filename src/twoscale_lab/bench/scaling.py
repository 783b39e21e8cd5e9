"""The benchmark of growth: seconds of each stage as the grid grows, here or shared by workers."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from twoscale.data import generate as generate_dataset
from twoscale.fields.workers import Cluster
from twoscale.problems import Poisson
from twoscale.run.pairs import split_dataset, split_pairs
from twoscale.runtime.stages import FINETUNE_PREPARE, FINETUNING, PCA, TRAINING, TRANSFORM
from twoscale.surrogate import Surrogate
from twoscale_lab.bench.measure import Comparison, Setup, stopwatch
from twoscale_lab.study.statistics import fit_power_law

StageSeconds = dict[str, float]
"""Seconds of stages by their names, or of sizes."""

_SIZES = (64, 128, 256, 512, 1024)
_ON_A_CPU = 2  # of these sizes, in memory
_SMALL = (16, 32)
_SAMPLES, _COARSE = (150, 2000), (8, 32)  # small and paper; nodes per side of the coarse grid
_SHARED_SAMPLES, _SHARED_COARSE = (150, 400), (8, 16)  # fewer nodes than training samples


def scaling(setup: Setup) -> Iterator[Comparison]:
    """Seconds of each stage as the grid grows, with the exponent of the fitted power law.

    Fields are in memory, and the peer is the smallest grid. With workers the fields are on disk,
    the workers share what they can of a fit, and the peer is this process alone.
    """
    workers, small = setup.workers, setup.scale == "small"
    sizes = _SIZES if setup.cuda or workers is not None else _SIZES[:_ON_A_CPU]
    sizes = _SMALL if small else sizes
    if workers is None:
        samples, coarse = setup.size(*_SAMPLES), setup.size(*_COARSE)
        ours = _measured(setup, sizes, partial(_in_memory, setup, samples, coarse))
        theirs, peer, end = None, f"itself at {sizes[0]}x{sizes[0]}", ""
    else:
        samples, coarse = setup.size(*_SHARED_SAMPLES), setup.size(*_SHARED_COARSE)
        ours, theirs = (
            _measured(setup, sizes, partial(_on_disk, samples, coarse, one))
            for one in (workers, None)
        )
        peer = f"this process alone, {_counted(torch.get_num_threads(), 'thread')}"
        end = f" {sizes[-1]}x{sizes[-1]}, {_counted(workers.count, 'worker')}"
    details: dict[str, Any] = {
        "samples": samples,
        "coarse_factors": [_factor(size, coarse) for size in sizes],
    }
    if workers is not None:
        details["workers"] = workers.count
    for name, seconds in ours.items():
        points = list(zip(sizes, seconds, strict=True))
        more = {"seconds": _by_size(sizes, seconds)}
        if theirs is not None:
            more["peer_seconds"] = _by_size(sizes, theirs[name])
        yield Comparison(
            f"scaling {name}{end}",
            peer,
            "stage",
            [seconds[-1]],
            [seconds[0] if theirs is None else theirs[name][-1]],
            {
                "exponent": fit_power_law(points).exponent,
                "exponent_of_the_last_doubling": fit_power_law(points[-2:]).exponent,
            },
            details | more,
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _measured(
    setup: Setup, sizes: Sequence[int], stages: Callable[[int], StageSeconds]
) -> dict[str, list[float]]:
    """Return the seconds of each stage on all sizes; the first size is done twice, to warm up."""
    found: dict[str, list[float]] = {}
    stages(sizes[0])
    for done, size in enumerate(sizes):
        setup.report("scaling", done, len(sizes), f"{size}x{size}")
        for name, taken in stages(size).items():
            found.setdefault(name, []).append(taken)
    return found


def _by_size(sizes: Sequence[int], seconds: Sequence[float]) -> StageSeconds:
    return dict(zip(map(str, sizes), seconds, strict=True))


def _factor(size: int, coarse: int) -> int:
    return max(1, size // coarse)


def _pca_seconds(timings: StageSeconds) -> float:
    return sum(seconds for name, seconds in timings.items() if name.startswith(PCA))


def _in_memory(setup: Setup, samples: int, coarse: int, size: int) -> StageSeconds:
    """Return the seconds of all stages on fields in memory."""
    problem = Poisson()
    training = round(0.8 * samples)
    generated, (pairs, rest) = stopwatch(
        lambda: setup.pairs(problem, size, training, samples - training)
    )
    settings: dict[str, Any] = {"coarse_factor": _factor(size, coarse)}
    settings["epochs"] = setup.size(2, 100, gpu=500)
    surrogate = Surrogate("two-scale", problem=problem, device=str(setup.device), **settings)
    surrogate.fit(*pairs, validation=rest)
    plan: dict[str, Any] = {"objective": "A3", "warm_up": 1, "ramp": 1}
    plan["epochs"] = setup.size(2, 50)
    tuned = surrogate.finetune(*pairs, validation=rest, **plan)
    with torch.no_grad():
        inputs = rest[0][:, None]
        surrogate.operator_(inputs)
        predicted, _ = stopwatch(lambda: surrogate.operator_(inputs))
    timings = tuned.timings_
    return {
        "generate": generated,
        "pca": _pca_seconds(timings),
        "train": timings[TRAINING.name],
        "finetune": timings[FINETUNE_PREPARE.name] + timings[FINETUNING.name],
        "predict": predicted,
    }


def _on_disk(samples: int, coarse: int, workers: Cluster | None, size: int) -> StageSeconds:
    """Return the seconds of the stages that workers share, on a dataset in the current folder.

    A cluster's workers must see it. This process alone reads the dataset on each pass, too.
    """
    with tempfile.TemporaryDirectory(prefix="twoscale-bench-", dir=Path.cwd()) as folder:
        path = Path(folder) / "poisson.zarr"
        generated, data = stopwatch(
            lambda: generate_dataset(
                Poisson(), path, resolution=size, samples=samples, workers=workers
            )
        )
        pairs = split_pairs(data, split_dataset(data, seed=0), stored=True, workers=workers)
        surrogate = Surrogate(
            "two-scale",
            problem=data.problem,
            device="cpu",
            coarse_factor=_factor(size, coarse),
            predictor="affine",
        )
        training, test = pairs.training, pairs.test or pairs.validation
        surrogate.fit(
            training.inputs, training.outputs, validation=pairs.validation, calibration=False
        )
        evaluated, _ = stopwatch(lambda: surrogate.evaluate(test.inputs, test.outputs))
    timings = surrogate.timings_
    return {
        "generate": generated,
        "pca": _pca_seconds(timings),
        "encode": timings[TRANSFORM.name],
        "evaluate": evaluated,
    }
