"""The end of a fit: three commands that fit the case."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from twoscale.cli.display import say
from twoscale.report.run_commands import compare_command, next_commands
from twoscale.report.run_record import read_run
from twoscale.run import Run
from twoscale.surrogate.artifact import PAGE


def print_next(runs: Sequence[Run], folder: Path | None = None) -> None:
    """Print what to do next with a run, or with those of several seeds in a folder."""
    steps = next_commands(read_run(runs[0], look=False))
    if folder is not None and len(runs) > 1:
        steps[0] = ("Compare the seeds", compare_command(folder))
    elif not (runs[0].path / PAGE).exists():
        del steps[0]  # a warning has told why there is none
    print("Next:")
    for words, command in steps:
        say(f"{words.rstrip('.')}:")
        print(f"    {command}")
