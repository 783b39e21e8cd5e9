"""How many files one has to read to follow a fit or a prediction, and how many calls they make."""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

CODE = """
import sys
import tempfile
import threading
from collections import Counter
from pathlib import Path

import numpy as np

import twoscale

ROOT = str(Path(twoscale.__file__).parent)
entered = Counter()


def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(ROOT) and frame.f_code.co_name != "<module>":
        entered[name[len(ROOT) + 1 :]] += 1


def walk(function):
    entered.clear()
    threading.setprofile(note)
    sys.setprofile(note)
    result = function()
    sys.setprofile(None)
    threading.setprofile(None)
    print(len(entered), entered.total(), *sorted(entered))
    return result


x = np.random.default_rng(0).standard_normal((60, 16, 16)).cumsum(axis=2)
u = x.cumsum(axis=1)
settings = {"epochs": 2, "coarse_components": 4, "device": "cpu"}
Surrogate = twoscale.Surrogate  # imported here: what an import runs is no step of a fit
surrogate = walk(lambda: Surrogate("two-scale", **settings).fit(x, u))
walk(lambda: surrogate.predict(x[:2]))
walk(lambda: surrogate.evaluate(x[:20], u[:20]))
with tempfile.TemporaryDirectory() as folder:
    surrogate.save(folder + "/s")
    walk(lambda: Surrogate.load(folder + "/s", device="cpu"))
"""

MOST = {  # modules and calls
    "fit": (44, 1900),
    "predict": (14, 82),
    "evaluate": (28, 890),
    "load": (34, 820),
}


class Walk(NamedTuple):
    calls: int
    files: list[str]


@cache
def walked() -> dict[str, Walk]:
    """Return the calls and the files of the package that each piece of work enters."""
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    )
    lines = [line.split() for line in result.stdout.splitlines()]
    return {
        name: Walk(int(calls), files) for name, (_, calls, *files) in zip(MOST, lines, strict=True)
    }


@pytest.mark.parametrize("work", MOST)
def test_a_walk_visits_few_modules(work):
    modules, calls = MOST[work]
    assert len(walked()[work].files) <= modules, walked()[work].files
    assert walked()[work].calls <= calls


@pytest.mark.parametrize("name", ["house.svg", "fit.svg", "prediction.svg"])
def test_the_pictures_of_the_architecture_are_of_this_code(name):
    from scripts.architecture_pictures import IMAGES, pictures  # which uses the walks

    drawn = (ROOT / IMAGES / name).read_text(encoding="utf-8")
    assert drawn == pictures()[name], "run: python -m scripts.architecture_pictures"
