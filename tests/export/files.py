"""Pairs of small fields, surrogates of them, and exported files as onnxruntime runs them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tests.surrogate.tiny import make
from twoscale import Surrogate

SAMPLES = 64
BATCHES = (1, 3, SAMPLES)
LARGEST_DIFFERENCE = 1e-5


class Data(NamedTuple):
    """Pairs (samples, channels, height, width), and parameters (samples, P) or None."""

    inputs: np.ndarray | None
    outputs: np.ndarray
    parameters: np.ndarray | None = None

    def given(self, batch: int) -> dict[str, np.ndarray]:
        """The first samples as a graph takes them."""
        held = {"fields": self.inputs, "parameters": self.parameters}
        return {name: one[:batch] for name, one in held.items() if one is not None}


def make_data(
    shape: tuple[int, int] = (16, 16),
    *,
    channels: int = 1,
    outputs: int = 1,
    shape_out: tuple[int, int] | None = None,
    parameters: int = 0,
    positive: bool = False,
) -> Data:
    """Smooth random fields, with a little noise, and products and sums of them."""
    generator = np.random.default_rng(0)

    def waves(sides: tuple[int, int]) -> np.ndarray:
        rows, columns = (np.linspace(0, 1, side, endpoint=False) for side in sides)
        return np.stack(
            [np.sin(2 * np.pi * (k * rows[:, None] + m * columns) + k) for k, m in _MODES]
        )

    codes = generator.standard_normal((SAMPLES, max(channels, 1), len(_MODES)))
    scalars = generator.standard_normal((SAMPLES, parameters))
    fields = np.einsum("nck,khw->nchw", codes, waves(shape))
    fields += 0.05 * generator.standard_normal(fields.shape)
    seen = np.einsum("nck,khw->nchw", codes, waves(shape_out or shape)).sum(1, keepdims=True)
    factors = 2 + np.arange(outputs)[:, None, None] + scalars.sum(1)[:, None, None, None]
    found = factors * seen + 0.3 * seen**2 + 1
    given = (np.exp(0.3 * fields) if positive else fields).astype(np.float32)
    return Data(
        given if channels else None,
        found.astype(np.float32),
        scalars.astype(np.float32) if parameters else None,
    )


_MODES = ((0, 1), (1, 0), (1, 1), (2, 1), (1, 3))


def fitted(method: str, data: Data, **options: Any) -> Surrogate:
    """A tiny surrogate, fitted."""
    return make(method, **options).fit(data.inputs, data.outputs, parameters=data.parameters)


def session(path: Any) -> Any:
    """An exported file in onnxruntime, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def check_file(surrogate: Surrogate, path: Any, data: Data) -> None:
    """Compare what a file predicts with what the surrogate does, in batches of several sizes."""
    model = session(path)
    for batch in BATCHES:
        given = data.given(batch)
        (found,) = model.run(["prediction"], given)
        expected = surrogate.predict(given.get("fields"), parameters=given.get("parameters"))
        assert found.dtype == np.float32
        assert found.shape == (batch, *data.outputs.shape[1:])
        expected = expected.reshape(found.shape)
        assert np.linalg.norm(found - expected) <= LARGEST_DIFFERENCE * np.linalg.norm(expected)
