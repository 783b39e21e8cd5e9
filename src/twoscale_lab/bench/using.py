"""Benchmarks of use: predictions of many fields and of one, and memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from twoscale.data import generate as generate_dataset
from twoscale.errors import missing_extra
from twoscale.export.graph import Predict
from twoscale.export.onnx_file import prediction as onnx_prediction
from twoscale.problems import Darcy, Poisson, Problem
from twoscale.surrogate import Surrogate
from twoscale_lab.bench.measure import Comparison, Setup, relative, stopwatch

_SOLVERS = {
    "poisson": "direct solver by DST, float64",
    "darcy": "DST-preconditioned conjugate gradients to 1e-10, float64",
}

_LONGEST = 20.0  # seconds: a batch expected to take longer is left out
_TIMED = 0.2  # seconds of calls that are timed together
_MOST_CALLS = 50
_PREDICTORS: dict[str, dict[str, Any]] = {"affine": {}, "encoder": {"epochs": 1}}


def inference(setup: Setup) -> Iterator[Comparison]:
    """Seconds per field of `predict` on device tensors: against FNO, and against the solver."""
    small = setup.scale == "small"
    grids: dict[int, tuple[int, ...]] = {}
    settings: dict[str, Any]
    grids[setup.size(32, 128, gpu=256)] = (1, 16) if small else (1, 64, 1024)
    if not small and not setup.cuda:
        grids[256] = (1,)
    for problem in (Poisson(), Darcy()):
        for resolution, batches in grids.items():
            settings = {"epochs": setup.size(2, 200), "coarse_factor": max(4, resolution // 32)}
            fitted = setup.size(200, 1200, gpu=2000)
            yield from _inference_on(setup, problem, resolution, batches, fitted, settings)
    settings = {"epochs": 1, "coarse_factor": setup.size(4, 8), "predictor": "encoder"}
    settings["coarse_components"] = setup.size(2, 40)
    settings |= {"patches": 2, "width": 8} if small else {}
    shape = setup.size(16, 128), (setup.size(16, 100, gpu=1000),), setup.size(60, 500)
    yield from _inference_on(setup, Darcy(), *shape, settings)


def _inference_on(
    setup: Setup,
    problem: Problem,
    resolution: int,
    batches: tuple[int, ...],
    fitted: int,
    settings: dict[str, Any],
) -> Iterator[Comparison]:
    """Time predictions of a surrogate with some settings, those of FNO and the solver."""
    x, u = setup.fields(problem, resolution, fitted + max(batches))
    ours = Surrogate("two-scale", device=str(setup.device), **settings)
    ours.fit(x[:fitted], u[:fitted], calibration=False)
    few = setup.size(8, 16)  # training does not change the time of a prediction
    network = Surrogate("fno", epochs=1, device=str(setup.device))
    network.fit(x[:few], u[:few], calibration=False)
    methods: dict[str, Callable[[Tensor], Tensor]] = {
        "two-scale": ours.predict,
        "FNO": network.predict,
        _SOLVERS[problem.name]: problem.solve,
    }
    latest = dict.fromkeys(methods, 0.0)
    predictor = f"{settings['predictor']} " if "predictor" in settings else ""
    for batch in batches:
        inputs, truth = x[fitted : fitted + batch], u[fitted : fitted + batch]
        affordable = [
            name for name in methods if name == "two-scale" or latest[name] * batch < _LONGEST
        ]
        seconds = {name: _per_field(methods[name], inputs, setup) for name in affordable}
        latest |= {name: min(taken) for name, taken in seconds.items()}
        agreement = _agreement(ours, inputs, truth)
        mine = seconds.pop("two-scale")
        for peer, theirs in seconds.items():
            yield Comparison(
                f"inference {predictor}{problem.name}-{resolution}, batch {batch}",
                peer,
                "field",
                mine,
                theirs,
                agreement,
                {"fields_per_second": 1 / min(mine), "peer_fields_per_second": 1 / min(theirs)},
            )


@torch.no_grad()
def _agreement(surrogate: Surrogate, inputs: Tensor, truth: Tensor) -> dict[str, float]:
    """Return the error against the solver, and the difference of replayed and eager predictions."""
    predicted = surrogate.predict(inputs)
    return {
        "mre": relative(predicted, truth),
        "replay_difference": relative(predicted, surrogate.operator_(inputs[:, None])[:, 0]),
    }


def _per_field(method: Callable[[Tensor], Tensor], inputs: Tensor, setup: Setup) -> list[float]:
    """Return seconds per field of repeated calls; on CUDA the first two are recorded."""
    found = _per_call({"": lambda: method(inputs)}, repeats=setup.size(1, 3), most=_MOST_CALLS)
    return [seconds / len(inputs) for seconds in found[""]]


def _per_call(
    ways: Mapping[str, Callable[[], Any]], *, repeats: int, most: int = 10**9
) -> dict[str, list[float]]:
    """Return seconds of calls of each way in turn, after two calls of each that do not count.

    Short calls are timed together, at most so many.
    """

    def many(function: Callable[[], Any], count: int) -> None:
        for _ in range(count):
            function()

    counts = {}
    for name, function in ways.items():
        many(function, 2)
        once, _ = stopwatch(function)
        counts[name] = max(1, min(most, round(_TIMED / max(once, 1e-9))))
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, function in ways.items():
            taken, _ = stopwatch(partial(many, function, counts[name]))
            seconds[name].append(taken / counts[name])
    return seconds


def single(setup: Setup) -> Iterator[Comparison]:
    """Seconds of `predict` of one field, against onnxruntime on the CPU with as many threads."""
    resolution, samples = setup.size(32, 64), setup.size(200, 600)
    x, u = setup.fields(Poisson(), resolution, samples + 1)
    for predictor, settings in _PREDICTORS.items():
        if predictor == "encoder":  # training does not change the time of a prediction
            settings = {**settings, "width": setup.size(8, 64)}
        surrogate = Surrogate(
            "two-scale",
            predictor=predictor,
            coarse_factor=setup.size(4, 8),
            device=str(setup.device),
            **settings,
        )
        surrogate.fit(x[:samples], u[:samples], calibration=False)
        yield _compare(setup, surrogate, f"{predictor}-{resolution}", x[samples:])


def _compare(setup: Setup, surrogate: Surrogate, name: str, inputs: Tensor) -> Comparison:
    """Time one field as an array, and beside it the torch module and the exported file."""
    array, fields = inputs.cpu().numpy(), inputs[:, None]
    run, host = _exported(surrogate), (fields.cpu(),)
    ways: dict[str, Callable[[], Any]] = {
        "predict": lambda: surrogate.predict(array),
        "module": lambda: surrogate.operator_(fields),
        "onnxruntime": lambda: run(host),
    }
    with torch.no_grad():
        seconds = _per_call(ways, repeats=setup.size(1, 5))
        difference = relative(run(host)[:, 0], torch.from_numpy(surrogate.predict(array)))
    return Comparison(
        f"single two-scale {name}",
        "onnxruntime, exported file",
        "field",
        seconds["predict"],
        seconds["onnxruntime"],
        {"difference": difference},
        {"module_seconds": seconds["module"], "threads": torch.get_num_threads()},
    )


def _exported(surrogate: Surrogate) -> Predict:
    """Return how onnxruntime predicts from fields (batch, 1, height, width) on the host."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        surrogate.export(path)
        found = onnx_prediction(path.read_bytes())
    if found is None:
        raise missing_extra("onnxruntime", "export")
    return found[0]


_METHOD = "two-scale"  # whose fits are measured; without a method, `fit` would search for one


def memory(setup: Setup) -> Iterator[Comparison]:
    """Peak memory of a fit in memory, and of one from disk within a quarter of the data's size."""
    resolution, samples = setup.size(32, 128), setup.size(1000, 32768)
    allowed = setup.size(700 * 10**6, 10**9)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.zarr"
        data = generate_dataset(
            Poisson(), path, resolution=resolution, samples=samples, device=setup.device
        )
        command = ["fit", str(path), "--method", _METHOD, "--set", "epochs=2"]
        command += ["--device", "cpu", "--out"]
        stored = [*command, f"{folder}/stored", "--memory", str(min(allowed, data.nbytes))]
        loaded = [*command, f"{folder}/loaded", "--memory", str(100 * data.nbytes)]
        runs = {"out of core": _peak(stored), "in memory": _peak(loaded)}
    yield Comparison(
        f"memory fit poisson-{resolution}",
        "the same fit with all fields in memory",
        "gigabyte",
        [runs["out of core"] / 1e9],
        [runs["in memory"] / 1e9],
        {"allowance_gigabytes": allowed / 1e9, "dataset_gigabytes": data.nbytes / 1e9},
        {"within": runs["out of core"] <= allowed, "dataset_over_allowance": data.nbytes / allowed},
    )


_CHILD = """
import runpy, sys
from twoscale.runtime.memory import peak_memory
sys.argv = ["twoscale", *sys.argv[1:]]
try:
    runpy.run_module("twoscale", run_name="__main__")
finally:
    print("peak", peak_memory(), file=sys.stderr)
"""


def _peak(arguments: list[str]) -> float:
    """Return the peak resident bytes of a command in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, *arguments], capture_output=True, text=True, check=True
    )
    return float(done.stderr.rsplit("peak", 1)[1])
