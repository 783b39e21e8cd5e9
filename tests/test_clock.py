import pytest

from twoscale import clock as clock_module
from twoscale.clock import Clock, add_seconds


@pytest.fixture
def ticks(monkeypatch):
    """Replace the time by a counter that moves on by one at each look."""
    times = iter(range(100))
    monkeypatch.setattr(clock_module, "now", lambda: float(next(times)))


@pytest.mark.usefixtures("ticks")
def test_stages_add_up_by_name():
    clock = Clock()
    for name in ("fit", "train", "fit"):
        with clock.stage(name):
            pass
    assert clock.seconds == {"fit": 2.0, "train": 1.0}


@pytest.mark.usefixtures("ticks")
def test_a_stage_that_raises_is_still_counted():
    clock = Clock()
    with pytest.raises(RuntimeError, match="boom"), clock.stage("fit"):
        raise RuntimeError("boom")
    assert clock.seconds == {"fit": 1.0}


def test_timings_add_up_by_stage():
    first, second = {"fit": 1.0, "train": 2.0}, {"train": 3.0, "tune": 4.0}
    assert add_seconds(first, second) == {"fit": 1.0, "train": 5.0, "tune": 4.0}
    assert first == {"fit": 1.0, "train": 2.0}


def test_time_does_not_run_backwards():
    clock = Clock()
    with clock.stage("anything"):
        pass
    assert clock.seconds["anything"] >= 0.0
