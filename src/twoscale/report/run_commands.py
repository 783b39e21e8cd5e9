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

_BUDGET = 120.0  # seconds
_READING = {"inputs": "--input", "outputs": "--output", "parameters": "--parameters"}
_READING |= {name: f"--{name}" for name in ("axes", "select", "time")}
_WRAPS = {(True, False): "rows", (False, True): "columns", (True, True): "both"}
_FEW = 10  # files that a command names one by one
_LONGER = 3  # times the budget of the first search


def repeat_command(run: RunRecord) -> str:
    """Return the command that makes the same run again."""
    if tuning := run.surrogate.finetuning_:
        names = ("objective", "epochs", "warm_up", "ramp")
        plan = [f"--{name.replace('_', '-')} {tuning[name]}" for name in names]
        return _command("finetune", "BASE_RUN", *plan, out=run.path)
    if run.search is not None:
        return _search_command(run, run.search["budget"], run.path)
    return fit_command(run, {}, run.path)


def fit_command(run: RunRecord, other: Mapping[str, Any], out: Path) -> str:
    """Return the command that fits a run's method with some other settings."""
    method, settings = run.surrogate.method, dict(run.surrogate.settings)
    changed = changed_settings(method, settings) | dict(other)
    options = [f"--set {shlex.quote(f'{name}={setting_text(v)}')}" for name, v in changed.items()]
    return _command("fit", *_data(run), "--method", method, *_rest(run), *options, out=out)


def _search_command(run: RunRecord, seconds: float, out: Path) -> str:
    return _command("fit", *_data(run), f"--budget {seconds:g}s", *_rest(run), out=out)


def _command(*words: str, out: Path | str | None = None) -> str:
    target = [] if out is None else ["--out", _path(Path(out))]
    return " ".join(["twoscale", *words, *target])


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

    def beside(ending: str) -> Path:
        return run.path.with_name(f"{run.name}-{ending}")

    if suggestion.check:
        return _command("check", *_data(run))
    if objective := suggestion.objective:
        start = ("finetune", _path(run.path))
        return _command(*start, "--objective", objective, out=beside(objective))
    if suggestion.search:
        budget = _BUDGET if run.search is None else _LONGER * run.search["budget"]
        return _search_command(run, budget, beside("search"))
    if method := suggestion.method:
        words = ("fit", *_data(run), "--method", method, *_rest(run))
        return _command(*words, out=beside(method))
    if suggestion.settings:
        return fit_command(run, suggestion.settings, beside("next"))
    return ""


def predict_command(run: RunRecord) -> str:
    """Return the command that predicts new inputs."""
    space = run.surrogate.input_space_
    words = ["predict", _path(run.path)]
    words += ["inputs.npy"] if space.channels else []
    words += ["--parameters", "parameters.npy"] if space.parameters else []
    return _command(*words, out="predictions.npy")


def next_commands(run: RunRecord) -> list[tuple[str, str]]:
    """Return three things to do next, in words and as commands."""
    last = ("Measure it on other data.", _command("evaluate", _path(run.path), "--data DATA"))
    for suggestion in run.suggestions:
        if command := suggested_command(run, suggestion):
            last = (suggestion.text, command)
            break
    return [
        ("Open the report.", f"python -m webbrowser {_path(run.path / PAGE)}"),
        ("Predict new inputs from files of yours.", predict_command(run)),
        last,
    ]


def compare_command(folder: Path) -> str:
    """Return the command that compares all runs in a folder."""
    return _command("report", _path(folder))


def python_line(run: RunRecord) -> str:
    """Return the line of Python that uses the run."""
    space = run.surrogate.input_space_
    given = "x" if space.channels else "None"
    given += ", parameters=p" if space.parameters else ""
    return f"from twoscale import Surrogate; u = Surrogate.load({str(run.path)!r}).predict({given})"


def _path(path: Path) -> str:
    """Return a path for a command line: relative, where it lies below the working folder."""
    with suppress(OSError, ValueError):
        path = path.resolve().relative_to(Path.cwd().resolve())
    return shlex.quote(str(path))
