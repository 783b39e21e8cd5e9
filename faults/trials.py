"""A trial: a number, words that say what is done, and the attack itself."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from faults.children import PATIENCE, Child, Outcome
from faults.contents import copy
from faults.templates import Templates


class Skipped(Exception):
    """What was to be tried is not possible on this system."""


@dataclass
class Place:
    """The folder that a trial happens in, and all that it needs.

    `path` is the current folder of its commands. `random` gives the same numbers whenever the trial
    is repeated. `commands` gathers what was run, for the report of a failure.
    """

    root: Path
    templates: Templates
    random: random.Random
    commands: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True)

    @property
    def path(self) -> Path:
        return self.root / "place"

    def another(self) -> Place:
        """Return a fresh place for the same trial, to learn how things go undisturbed."""
        root = Path(tempfile.mkdtemp(prefix="another-", dir=self.root))
        return Place(root, self.templates, self.random)

    def put(self, name: str, as_name: str = "") -> Path:
        """Copy a template into the place."""
        target = self.path / (as_name or name)
        target.parent.mkdir(parents=True, exist_ok=True)
        copy(self.templates.get(name), target)
        return target

    def start(
        self, arguments: Sequence[str], *, prepare: Callable[[], None] | None = None
    ) -> Child:
        """Start a command."""
        child = Child(arguments, self.path, self.root / f"log-{len(self.commands)}", prepare)
        self.commands.append(" ".join(arguments))
        return child

    def run(
        self,
        *arguments: str,
        prepare: Callable[[], None] | None = None,
        patience: float = PATIENCE,
    ) -> Outcome:
        """Run a command to its end."""
        return self.start(arguments, prepare=prepare).wait(patience)

    def close(self) -> None:
        """Remove the place, whatever the trial has made of it."""
        for base, _, _ in os.walk(self.root):
            os.chmod(base, 0o700)
        shutil.rmtree(self.root, ignore_errors=True)


Attack = Callable[[Place], str | None]
"""Does something to a command; returns None, or a sentence on what went wrong."""


@dataclass(frozen=True)
class Trial:
    """One attack, and what it is called; `quick` ones take a fraction of a second."""

    words: str
    attack: Attack
    quick: bool = True


Trials = Callable[[random.Random], Iterator[Trial]]
"""Yields the trials of a kind; what is random about their choice comes from the generator."""
