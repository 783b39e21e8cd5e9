"""How many files one has to read to follow a fit or a prediction."""

import subprocess
import sys

CODE = """
import sys
import threading
from pathlib import Path

import numpy as np

import twoscale

ROOT = str(Path(twoscale.__file__).parent)
entered = set()


def note(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(ROOT) and frame.f_code.co_name != "<module>":
        entered.add(name[len(ROOT) + 1 :])


def walk(function):
    entered.clear()
    threading.setprofile(note)
    sys.setprofile(note)
    result = function()
    sys.setprofile(None)
    threading.setprofile(None)
    print(len(entered), *sorted(entered))
    return result


x = np.random.default_rng(0).standard_normal((60, 16, 16)).cumsum(axis=2)
settings = {"epochs": 2, "coarse_components": 4, "device": "cpu"}
Surrogate = twoscale.Surrogate  # imported here: what an import runs is no step of a fit
surrogate = walk(lambda: Surrogate("two-scale", **settings).fit(x, x.cumsum(axis=1)))
walk(lambda: surrogate.predict(x[:2]))
"""


def test_a_walk_visits_few_modules():
    result = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True
    )
    fit, predict = (line.split() for line in result.stdout.splitlines())
    assert int(fit[0]) <= 48, fit[1:]
    assert int(predict[0]) <= 15, predict[1:]
