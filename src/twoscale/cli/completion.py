"""The words that a shell offers after a part of a command.

They come from `twoscale.cli.names`, so that a touch of the tab key does not wait for torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points

from twoscale.cli.names import PROBLEMS, SETTINGS

Completion = Callable[[str], list[str]]


def one_of(words: Sequence[str]) -> Completion:
    """Return the completion to one of some words."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def complete_setting(incomplete: str) -> list[str]:
    """Return the settings `key=` that begin with a text; nothing is offered after the `=`."""
    key = incomplete.replace("-", "_")
    return [f"{name}=" for name in SETTINGS if f"{name}=".startswith(key) and "=" not in key]


def complete_problem(incomplete: str) -> list[str]:
    """Return the problems, also those that installed packages offer."""
    offered = [entry.name for entry in entry_points(group="twoscale.problems")]
    return one_of([*PROBLEMS, *offered])(incomplete)
