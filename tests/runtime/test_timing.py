import math

import numpy as np
import pytest

from twoscale.errors import TwoscaleError
from twoscale.runtime import progress as clock_module
from twoscale.runtime.progress import Clock, add_seconds, parse_duration


@pytest.fixture
def ticks(monkeypatch):
    """Replace the time by a counter that moves on by one at each look."""
    times = iter(range(100))
    monkeypatch.setattr(clock_module, "now", lambda: float(next(times)))


@pytest.mark.usefixtures("ticks")
def test_stages_add_up_by_name_also_those_that_raise():
    clock = Clock()
    for name in ("fit", "train", "fit"):
        with clock.stage(name):
            pass
    with pytest.raises(RuntimeError, match="boom"), clock.stage("fit"):
        raise RuntimeError("boom")
    assert clock.seconds == {"fit": 3.0, "train": 1.0}


def test_timings_add_up_by_stage():
    first, second = {"fit": 1.0, "train": 2.0}, {"train": 3.0, "tune": 4.0}
    assert add_seconds(first, second) == {"fit": 1.0, "train": 5.0, "tune": 4.0}
    assert first == {"fit": 1.0, "train": 2.0}


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        *((90, 90), (0.5, 0.5), (1e16, 1e16), (1e-5, 1e-5), (np.float32(2), 2)),
        *(("90", 90), ("90s", 90), ("2min", 120), ("1.5 h", 5400), ("3M", 180)),
    ],
)
def test_durations_as_people_write_them(given, seconds):
    assert parse_duration(given) == seconds


_WRONG = ("soon", "", "-3s", "0", "2 days", "1h30", "nan", "inf", -3, 0.0, math.nan, True, None)


@pytest.mark.parametrize("given", _WRONG)
def test_durations_that_are_none(given):
    with pytest.raises(TwoscaleError, match="90s, 2min or 1h"):
        parse_duration(given)
