"""Commands of studies and benchmarks, which join the command line of twoscale."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from twoscale.cli.application import Application


def add_commands(app: Application) -> None:
    """Add the commands `study` and `bench` to an application."""
    from twoscale_lab.cli.bench import bench
    from twoscale_lab.cli.study import study_app

    app.add_typer(study_app, name="study")
    app.add(bench)
