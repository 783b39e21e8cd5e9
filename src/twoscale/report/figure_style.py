"""The one style of all figures: of charts of studies, and of pictures of runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import ParamSpec, TypeVar

from twoscale.errors import missing_extra

try:
    import matplotlib

    matplotlib.use("Agg")
except ImportError as error:
    raise missing_extra("matplotlib", "report") from error

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def chart_style() -> AbstractContextManager[None]:
    """Return the context in which figures are drawn."""
    return matplotlib.rc_context(
        {
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.labelsize": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.axisbelow": True,
            "axes.grid": True,
            "grid.color": "#e4e7eb",
            "grid.linewidth": 0.7,
            "legend.frameon": False,
            "legend.fontsize": 9,
            "hatch.linewidth": 0.7,
            "errorbar.capsize": 2.5,
            "lines.markersize": 6.5,
            "svg.hashsalt": "twoscale",
        }
    )


def styled(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Return a function that draws in this style."""

    @wraps(function)
    def drawn(*arguments: Arguments.args, **options: Arguments.kwargs) -> Result:
        with chart_style():
            return function(*arguments, **options)

    return drawn
