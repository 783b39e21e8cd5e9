"""Benchmark of single predictions against the same surrogate as an ONNX file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import missing_extra
from twoscale.problems import Poisson
from twoscale.surrogate import Surrogate
from twoscale_lab.bench.measure import Comparison, Setup, relative, stopwatch

_TIMED = 0.2  # seconds of calls that are timed together
_PREDICTORS: dict[str, dict[str, Any]] = {"affine": {}, "encoder": {"epochs": 1}}


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
    run = _exported(surrogate)
    ways: dict[str, Callable[[], Any]] = {
        "predict": lambda: surrogate.predict(array),
        "module": lambda: surrogate.operator_(fields),
        "onnxruntime": lambda: run(array[:, None]),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    with torch.no_grad():
        calls = {way: _calls(function) for way, function in ways.items()}
        for _ in range(setup.size(1, 5)):
            for way, function in ways.items():
                seconds[way].append(_seconds_per_call(function, calls[way]))
        found = torch.from_numpy(run(array[:, None]))[:, 0]
        difference = relative(found, torch.from_numpy(surrogate.predict(array)))
    return Comparison(
        f"single two-scale {name}",
        "onnxruntime, exported file",
        "field",
        seconds["predict"],
        seconds["onnxruntime"],
        {"difference": difference},
        {"module_seconds": seconds["module"], "threads": torch.get_num_threads()},
    )


def _seconds_per_call(function: Callable[[], Any], calls: int) -> float:
    def many() -> None:
        for _ in range(calls):
            function()

    return stopwatch(many)[0] / calls


def _calls(function: Callable[[], Any]) -> int:
    """Return how many calls are timed together, after two that are not."""
    function()
    once, _ = stopwatch(function)
    return max(1, round(_TIMED / max(once, 1e-9)))


def _exported(surrogate: Surrogate) -> Callable[[np.ndarray], np.ndarray]:
    """Return how onnxruntime predicts from fields (batch, 1, height, width)."""
    try:
        import onnxruntime
    except ImportError as error:
        raise missing_extra("onnxruntime", "export") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        surrogate.export(path)
        session = onnxruntime.InferenceSession(path.read_bytes(), options)
    return lambda fields: session.run(None, {"fields": fields})[0]
