"""Commands about a run: how to repeat it, how to use it, how to do what its report suggests."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from twoscale.data.split import TESTED_ELSEWHERE, USUAL, Shares
from twoscale.methods.recipes import changed_settings
from twoscale.methods.settings import setting_text
from twoscale.report.run_record import RunRecord
from twoscale.search.advice import Suggestion
from twoscale.surrogate.artifact import PAGE

_BUDGET = "2min"
_READING = {"inputs": "--input", "outputs": "--output", "parameters": "--parameters"}
_READING |= {name: f"--{name}" for name in ("axes", "select", "time")}
_WRAPS = {(True, False): "rows", (False, True): "columns", (True, True): "both"}
_FEW = 10  # files that a command names one by one
_LONGER = 3  # times the budget of the first search


def repeat_command(run: RunRecord) -> str:
    """Return the command that makes the same run again."""
    if tuning := run.surrogate.finetuning_:
        plan = [
            f"--{name.replace('_', '-')} {tuning[name]}"
            for name in ("objective", "epochs", "warm_up", "ramp")
        ]
        return " ".join(["twoscale finetune BASE_RUN", *plan, "--out", _path(run.path)])
    if run.search is not None:
        budget = f"--budget {run.search['budget']:g}s"
        return " ".join([*_fit(run), budget, *_rest(run), "--out", _path(run.path)])
    return fit_command(run, {}, run.path)


def fit_command(run: RunRecord, other: Mapping[str, Any], out: Path) -> str:
    """Return the command that fits a run's method with some other settings."""
    method, settings = run.surrogate.method, dict(run.surrogate.settings)
    changed = changed_settings(method, settings) | dict(other)
    options = [f"--set {shlex.quote(f'{name}={setting_text(v)}')}" for name, v in changed.items()]
    words = [*_fit(run), "--method", method, *_rest(run), *options, "--out", _path(out)]
    return " ".join(words)


def _fit(run: RunRecord) -> list[str]:
    """Return the start of a fit on the run's data."""
    return ["twoscale", "fit", *_data(run)]


def _data(run: RunRecord) -> list[str]:
    """Return the words for the run's data: a dataset, or files and how they are read."""
    data, test = run.config["dataset"], run.config.get("test_dataset", {})
    files = [Path(file) for file in data.get("files", ())] or [run.dataset_path]
    places = files if len(files) <= _FEW else [files[0].parent]
    words = [_path(place) for place in places]
    read: dict[str, Any] = next((one for one in (data, test) if "files" in one), {})
    reading = read.get("reading", {})
    for name, option in _READING.items():
        if value := reading.get(name):
            text = value if isinstance(value, str) else ",".join(value)
            words += [option, shlex.quote(text)]
    wraps = tuple(reading.get("periodic") or ())
    return [*words, *(["--periodic", _WRAPS[wraps]] if any(wraps) else [])]


def _rest(run: RunRecord) -> list[str]:
    """Return the options that every fit of the same split has."""
    config = run.config
    words = ["--seed", str(run.surrogate.seed)] if run.surrogate.seed else []
    shares = TESTED_ELSEWHERE if "test_dataset" in config else USUAL
    if "split" in config:
        words += ["--split", config["split"]]
        shares = Shares.parse(config["split"])
    if "test_dataset" in config:
        words += ["--test", _path(Path(config["test_dataset"]["path"]))]
    used = config["training_samples"]
    most, held, _ = shares.counts(config["dataset"]["samples"])
    if used not in (most, most - max(1, most // 10) if not held else most):
        words += ["--train-samples", str(used)]
    return words


def suggested_command(run: RunRecord, suggestion: Suggestion) -> str:
    """Return the command that does what is suggested; empty if there is none."""
    if suggestion.check:
        return " ".join(["twoscale", "check", *_data(run)])
    if suggestion.objective:
        out = _path(_beside(run, suggestion.objective))
        return f"twoscale finetune {_path(run.path)} --objective {suggestion.objective} --out {out}"
    if suggestion.search:
        budget = _BUDGET
        if run.search is not None:
            budget = f"{_LONGER * run.search['budget']:g}s"
        out = _path(_beside(run, "search"))
        return " ".join([*_fit(run), *_rest(run), f"--budget {budget}", "--out", out])
    if suggestion.method:
        words = [*_fit(run), "--method", suggestion.method, *_rest(run)]
        return " ".join([*words, "--out", _path(_beside(run, suggestion.method))])
    if suggestion.settings:
        return fit_command(run, suggestion.settings, _beside(run, "next"))
    return ""


def predict_command(run: RunRecord) -> str:
    """Return the command that predicts new inputs."""
    space = run.surrogate.input_space_
    words = ["twoscale", "predict", _path(run.path)]
    words += ["inputs.npy"] if space.field_channels else []
    words += ["--parameters", "parameters.npy"] if space.parameters else []
    return " ".join([*words, "--out", "predictions.npy"])


def _predict_words(run: RunRecord) -> str:
    """Return what the command to predict does, and which names in it stand for a user's files."""
    space = run.surrogate.input_space_
    if space.field_channels and space.parameters:
        return "Predict new inputs (inputs.npy and parameters.npy are yours)"
    return f"Predict new inputs ({'inputs' if space.field_channels else 'parameters'}.npy is yours)"


def next_commands(run: RunRecord) -> list[tuple[str, str]]:
    """Return three things to do next, in words and as commands."""
    found = [
        ("Open the report", f"python -m webbrowser {_path(run.path / PAGE)}"),
        (_predict_words(run), predict_command(run)),
    ]
    for suggestion in run.suggestions:
        if command := suggested_command(run, suggestion):
            return [*found, (suggestion.text, command)]
    return [
        *found,
        (
            "Measure it on other data (DATA is yours)",
            f"twoscale evaluate {_path(run.path)} --data DATA",
        ),
    ]


def compare_command(folder: Path) -> str:
    """Return the command that compares all runs in a folder."""
    return f"twoscale report {_path(folder)}"


def python_line(run: RunRecord) -> str:
    """Return the line of Python that uses the run."""
    space = run.surrogate.input_space_
    given = "x" if space.field_channels else "None"
    given += ", parameters=p" if space.parameters else ""
    return f"from twoscale import Surrogate; u = Surrogate.load({str(run.path)!r}).predict({given})"


def _beside(run: RunRecord, ending: str) -> Path:
    return run.path.with_name(f"{run.name}-{ending}")


def _path(path: Path) -> str:
    """Return a path for a command line: relative, where it lies below the working folder."""
    with suppress(OSError, ValueError):
        path = path.resolve().relative_to(Path.cwd().resolve())
    return shlex.quote(str(path))
