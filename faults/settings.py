"""Random settings, options and environments: plausible, wrong, and far beyond all bounds."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

from faults.children import Outcome
from faults.contents import added, changed, snapshot
from faults.rules import FINE, misbehaviour
from faults.trials import Place, Trial

_SETTINGS = 220
_OPTIONS = 150
_MEMORY = 3 * 2**30  # bytes that a command may map

_ARGUMENTS = ("seed", "device", "problem", "method", "self", "settings", "progress", "__class__")
_METHODS = (
    "global",
    "local",
    "overlap",
    "refinement",
    "fno",
    "two-scale",
    "three-scale",
    "conforming",
)
_VALUES = (
    *("0", "1", "2", "3", "4", "-1", "0.5", "1e-3", "1e-9", "none", "true", "false"),
    *("nan", "inf", "-inf", "1e400", "", " ", "=", "a=b", "2x2", "3x5", "0x0", "2x2x2", "x"),
    *("mlp", "affine", "kernel", "encoder", "adam", "full", "gram", "A1", "two-scale", "problem"),
    *("1_000", "0x10", "١٢", "1,5", "None", "[1]", "{}", "'", "%s", "{0}", "\u202e", "\0", "é"),
    *("9" * 400, "1" + "0" * 5000, "-" + "9" * 30),
)
_LARGE = ("1000", "100000", "1000000", "1e9", "1e18", "1e300", str(2**31), str(2**63), str(2**64))
_LONG_WORK = ("epochs", "refinement_epochs")  # many of them are no mistake, only long

_DATA_OPTIONS = ("--resolution", "--samples", "--seed", "--device")
_FIT_OPTIONS = (
    *("--seed", "--seeds", "--train-samples", "--memory", "--device", "--budget", "--method"),
    *("--no-resume", "--json", "--overwrite", "--bogus", "-x"),
)
_IMPORT_OPTIONS = ("--input", "--output", "--parameters", "--periodic", "--problem")
_TUNE_OPTIONS = ("--objective", "--epochs", "--warm-up", "--ramp", "--memory", "--device", "--data")
_SMALL = (
    *("0", "1", "2", "7", "8", "9", "16", "-1", "-0", "1.5", "1e1", "nan", "", " ", "auto", "cpu"),
    *("cuda", "cuda:9", "cpu:0", "mps", "0-1", "1-0", "0,0", "0,", "a-b", "1GB", "0GB", "-1GB"),
    *("a", "a,b", "p", "a,,b", "a,a", "both", "rows", "poisson", "darcy"),
    *("1s", "0s", "-1s", "nans", "1e400s", "A1", "A5", "A9", "a3", "data.zarr", ".", "\0", "é"),
    *("9" * 30, "9" * 5000, str(2**63), str(2**64 - 1)),
)
_ENVIRONMENTS = (
    {"TWOSCALE_PROCESSES": "two"},
    {"TWOSCALE_PROCESSES": "-1"},
    {"TWOSCALE_PROCESSES": "0"},
    {"TWOSCALE_PROCESSES": "9" * 5000},
    {"TWOSCALE_PROCESSES": ""},
    {"TWOSCALE_COMMIT": "<b>\n{x}"},
    {"COLUMNS": "0"},
    {"COLUMNS": "-5"},
    {"COLUMNS": "many"},
    {"TERM": "dumb", "NO_COLOR": "1"},
    {"FORCE_COLOR": "1"},
    {"TMPDIR": "/no/such/folder"},
    {"HOME": "/no/such/folder"},
)
_START_ENVIRONMENTS = (
    {"OMP_NUM_THREADS": "odd"},
    {"OMP_NUM_THREADS": "-3"},
    {"OMP_NUM_THREADS": "3"},
    {"LC_ALL": "C", "LANG": "C"},
    {"PYTHONIOENCODING": "ascii"},
    {"PATH": ""},
)


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield commands with random words in them."""
    for _ in range(_SETTINGS):
        words = _random_fit(choose)
        yield Trial(_shown(words), partial(_run, words, {}))
    for _ in range(_OPTIONS):
        words = _random_options(choose)
        yield Trial(_shown(words), partial(_run, words, {}))
    for environment in _ENVIRONMENTS:
        for words in (_fit("local"), _tune(), ("evaluate", "small-run")):
            yield Trial(f"{_shown(words)} with {environment}", partial(_run, words, environment))
    for environment in _START_ENVIRONMENTS:
        words = ("predict", "small-run", "inputs.npy", "--out", "result.npy")
        yield Trial(f"a process with {environment}", partial(_process, words, environment), False)


def _shown(words: tuple[str, ...]) -> str:
    return " ".join(ascii(word)[1:-1][:60] for word in words)


def _fit(method: str) -> tuple[str, ...]:
    return ("fit", "data.zarr", "--out", "result", "--method", method, "--set", "epochs=1")


def _tune() -> tuple[str, ...]:
    return ("finetune", "small-run", "--out", "result", "--epochs", "1", "--warm-up", "0")


def _random_fit(choose: random.Random) -> tuple[str, ...]:
    """Return a fit with one to three settings that may be anything."""
    from twoscale.methods.recipes import every_setting

    method = choose.choice(_METHODS)
    words = list(_fit(method)) + (["--set", "patches=2"] if choose.random() < 0.8 else [])
    words += ["--set", "refinement_epochs=1"] if method == "refinement" else []
    for _ in range(choose.choice((1, 1, 2, 3))):
        name = choose.choice(
            (*every_setting(), *every_setting(), *_ARGUMENTS, "", "Epochs", "epoch", "é")
        )
        values = _VALUES if name in _LONG_WORK or choose.random() < 0.7 else _LARGE
        value = choose.choice([v for v in values if name not in _LONG_WORK or not _is_large(v)])
        words += ["--set", f"{name}={value}" if choose.random() < 0.97 else name]
    return tuple(word.replace("\0", "0") for word in words)  # a system passes on no zero bytes


def _is_large(text: str) -> bool:
    return text.strip("-").isascii() and text.isdecimal() and len(text) > 2


def _random_options(choose: random.Random) -> tuple[str, ...]:
    """Return a command with options that may have any value."""
    words: tuple[str, ...]
    words, options = choose.choice(
        (
            (("generate", choose.choice(("poisson", "darcy", "x", ""))), _DATA_OPTIONS),
            (("fit", "data.zarr", "--set", "epochs=1", "--set", "patches=2"), _FIT_OPTIONS),
            (("finetune", "small-run"), _TUNE_OPTIONS),
            (("evaluate", "small-run"), ("--data", "--device", "--json", "--bogus")),
            (("predict", "small-run", "inputs.npy"), ("--device", "--overwrite", "--parameters")),
            (("import", "mixed.npz", "--output", "u"), _IMPORT_OPTIONS),
            (("study", "run", "tiny.yaml"), ("--scale", "--seeds", "--only", "--device")),
        )
    )
    usual = {
        "generate": ("--resolution", "8", "--samples", "3"),
        "fit": ("--method", "local"),
        "finetune": ("--epochs", "1", "--warm-up", "0"),
        "study": ("--scale", "small"),
    }
    words = (*words, *usual.get(words[0], ()))
    if words[0] != "evaluate":
        words = (*words, "--out", "result")
    for option in choose.sample(options, choose.choice((1, 1, 2))):
        words = (*words, option)
        if option not in ("--json", "--overwrite", "--no-resume", "--bogus"):
            words = (*words, _value(option, choose))
    return tuple(word.replace("\0", "0") for word in words)


def _value(option: str, choose: random.Random) -> str:
    """Return any value, but none that only asks for hours of work."""
    values: tuple[str, ...] = _SMALL
    if option in ("--samples", "--epochs", "--resolution", "--budget", "--seeds"):
        values = tuple(value for value in _SMALL if len(value) < 6 or len(value) > 20)
    return choose.choice(values)


def _run(words: tuple[str, ...], environment: dict[str, str], place: Place) -> str | None:
    """Run a command with bounded memory; it succeeds or is refused in a sentence."""
    for name in ("data.zarr", "small-run", "inputs.npy", "tiny.yaml", "mixed.npz"):
        if name in words:
            place.put(name)
    before = snapshot(place.path)

    def prepare() -> None:
        os.environ.update(environment)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))

    return _check(place.run(*words, prepare=prepare), before, place)


def _check(outcome: Outcome, before: dict[str, str], place: Place) -> str | None:
    after = snapshot(place.path)
    wrong = misbehaviour(outcome) or changed(before, after)
    if not wrong and outcome.status != FINE and "study" not in outcome.arguments:
        wrong = added(before, after)
    return wrong


def _process(words: tuple[str, ...], environment: dict[str, str], place: Place) -> str | None:
    """Run a command in a Python of its own, for what counts only at its start."""
    place.put("small-run")
    place.put("inputs.npy")
    before = snapshot(place.path)
    place.commands.append(" ".join(words))
    ended = subprocess.run(
        [sys.executable, "-m", "twoscale", *words],
        env={**os.environ, **environment},
        cwd=place.path,
        capture_output=True,
        text=True,
        check=False,
    )
    own = [line for line in ended.stderr.splitlines() if line and not line.startswith("libgomp:")]
    outcome = Outcome(words, ended.returncode, ended.stdout, "\n".join(own), 0.0, 0, False)
    return _check(outcome, before, place)
