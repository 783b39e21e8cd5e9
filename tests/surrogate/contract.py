"""What every method promises, on any kind of fields: one suite, subclassed by every method."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

from twoscale import Surrogate

SAMPLES = 40


class Case(NamedTuple):
    """A kind of data: channels, grid, and whether scalars come beside the fields or alone."""

    inputs: int  # channels; 0 for parameters alone
    outputs: int
    grid: tuple[int, int]
    periodic: bool = False
    parameters: int = 0

    @property
    def name(self) -> str:
        scalars = f"+{self.parameters}p" if self.parameters else ""
        wraps = "p" if self.periodic else ""
        return f"{self.inputs}{scalars}-to-{self.outputs}-{self.grid[0]}x{self.grid[1]}{wraps}"


GRIDS = (((16, 16), False), ((17, 23), False), ((1, 64), False), ((32, 32), True))
KINDS = ((1, 1, 0), (3, 2, 0), (1, 2, 0), (3, 1, 0), (3, 2, 2), (0, 2, 3))


def cases_of(turn: int) -> list[Case]:
    """Return cases with every kind of samples and every grid once; turns differ in who meets whom.

    Four turns hold all combinations.
    """
    found = []
    for number, (inputs, outputs, parameters) in enumerate(KINDS):
        grid, periodic = GRIDS[(number + turn) % len(GRIDS)]
        found.append(Case(inputs, outputs, grid, periodic, parameters))
    return found


class Data(NamedTuple):
    """Inputs (or None), outputs, and parameters (or None) of some samples."""

    inputs: np.ndarray | None
    outputs: np.ndarray
    parameters: np.ndarray | None

    def part(self, samples: slice) -> Data:
        return Data(*(None if one is None else one[samples] for one in self))


def make_data(case: Case) -> Data:
    """Smooth random fields; outputs are running sums of the inputs, shaped by the parameters."""
    generator = np.random.default_rng(0)
    height, width = case.grid
    rows, columns = (np.linspace(0, 1, side, endpoint=not case.periodic) for side in case.grid)
    waves = np.stack(
        [np.cos(2 * np.pi * (k * rows[:, None] + m * columns)) for k in range(3) for m in range(3)]
    )
    scalars = generator.standard_normal((SAMPLES, case.parameters))
    fields = generator.standard_normal((SAMPLES, max(case.inputs, 1), len(waves)))
    shape = (SAMPLES, -1, height, width)
    inputs = np.einsum("nck,khw->nchw", fields, waves).reshape(shape)
    factors = 1 + 0.3 * scalars.sum(1)[:, None, None, None]
    if not case.inputs:
        inputs = np.einsum("np,phw->nhw", scalars, waves[1 : 1 + case.parameters])[:, None]
    units = np.array([1.0, 1e-3])[: case.outputs, None, None]  # channels of different size
    outputs = np.cumsum(inputs[:, :1], axis=3) * factors * units + units
    outputs[:, -1] += 0.1 * units[-1] * inputs[:, -1] ** 2
    given = inputs.astype(np.float32) if case.inputs else None
    if given is not None and case.inputs == 1 and case.outputs == 1:
        given, outputs = given[:, 0], outputs[:, 0]  # the channel axis may be left out
    return Data(given, outputs.astype(np.float32), scalars if case.parameters else None)


class MethodContract:
    """The path of a user: fit, predict, evaluate, save, load, fine-tune.

    Every method meets every kind of samples and every grid. Every combination of these two is met
    by at least two methods.
    """

    method: ClassVar[str]
    settings: ClassVar[dict[str, Any]] = {}
    tunable: ClassVar[bool] = True
    needs_fields: ClassVar[bool] = False

    def pytest_generate_tests(self, metafunc) -> None:
        turn = MethodContract.__subclasses__().index(type(self))
        metafunc.parametrize("case", cases_of(turn), ids=lambda case: case.name)

    def test_the_path_of_a_user(self, case, tmp_path):
        if self.needs_fields and not case.inputs:
            pytest.skip("it refuses parameters alone")
        data = make_data(case)
        training, new = data.part(slice(0, 32)), data.part(slice(32, None))
        surrogate = Surrogate(
            self.method, seed=1, device="cpu", periodic=case.periodic, **self.settings
        ).fit(training.inputs, training.outputs, parameters=training.parameters)
        predicted = surrogate.predict(new.inputs, parameters=new.parameters)
        assert predicted.shape == new.outputs.shape
        assert predicted.dtype == np.float32
        metrics = surrogate.evaluate(new.inputs, new.outputs, parameters=new.parameters)
        self.check_metrics(metrics, case, predicted, new.outputs)
        surrogate.save(tmp_path / "saved")
        loaded = Surrogate.load(tmp_path / "saved", device="cpu")
        again = loaded.predict(new.inputs, parameters=new.parameters)
        np.testing.assert_array_equal(again, predicted)
        if self.tunable:
            self.check_tuning(loaded, training, new)

    def check_metrics(self, metrics, case, predicted, truth):
        axes = (0, 2, 3) if truth.ndim == 4 else None
        error, size = ((one.astype(float) ** 2).sum(axes) for one in (predicted - truth, truth))
        relative = np.sqrt(error / size)
        assert metrics["mre"] == pytest.approx(np.sqrt(np.mean(relative**2)), rel=1e-5)
        if case.outputs > 1:
            found = [one["mre"] for one in metrics["channels"].values()]
            np.testing.assert_allclose(found, relative, rtol=1e-5)
        else:
            assert "channels" not in metrics

    def check_tuning(self, surrogate, training, new):
        tuned = surrogate.finetune(
            training.inputs,
            training.outputs,
            parameters=training.parameters,
            objective="A4",
            epochs=3,
            warm_up=1,
            ramp=1,
        )
        fields = tuned.predict(new.inputs, parameters=new.parameters)
        assert fields.shape == new.outputs.shape
        assert np.isfinite(fields).all()
