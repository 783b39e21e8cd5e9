"""How a hostile file is read: with bounded memory and time, by a command that must not fall."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

from faults.contents import added, changed, snapshot
from faults.rules import FINE, misbehaviour, refusal
from faults.trials import Place

MAPPED = 3 * 2**30
"""Bytes of address space that a command may take; the libraries alone take a quarter of it."""

RESIDENT = 2**30
PATIENCE = 30.0

Maker = Callable[[Place], object]
"""Puts a hostile thing into a place."""


def read(
    make: Maker, words: tuple[str, ...], needs: tuple[str, ...], place: Place, *, harmless: bool
) -> str | None:
    """Make something hostile and run the command that reads it.

    It must be refused in one sentence, unless it may be `harmless`. Nothing is left of a refused
    command, and nothing is ever written outside of the place.
    """
    for name in needs:
        place.put(name)
    make(place)
    before = snapshot(place.path)
    around = _around(place)

    def prepare() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MAPPED, MAPPED))

    outcome = place.run(*words, prepare=prepare, patience=PATIENCE)
    wrong = misbehaviour(outcome) if harmless else refusal(outcome)
    after = snapshot(place.path)
    if not wrong and outcome.peak > RESIDENT:
        wrong = f"it took {outcome.peak / 2**20:.0f} MiB of memory"
    if not wrong and _around(place) != around:
        wrong = "it wrote outside of the folder it was given"
    if not wrong and outcome.status != FINE:
        wrong = changed(before, after) or added(before, after)
    return wrong


def _around(place: Place) -> set[str]:
    """Return the names beside the place, but for the logs of its commands."""
    return {name for name in os.listdir(place.root) if not name.startswith("log-")}


def odd_file(kind: str, path: Path) -> None:
    """Put something that is no plain file where one is expected."""
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        path.rename(path.with_name("moved-away"))
    ODD[kind](path)


def _deep(path: Path) -> None:
    path.write_text("[" * 200_000)


def _hole(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**40)


ODD: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "an endless device": lambda path: path.symlink_to("/dev/zero"),
    "a folder": lambda path: path.mkdir(),
    "a loop of links": lambda path: path.symlink_to(path.name),
    "a dangling link": lambda path: path.symlink_to("no-such-file"),
    "an empty file": lambda path: path.touch(),
    "deep nesting": _deep,
    "noise": lambda path: path.write_bytes(bytes(range(256)) * 40),
    "zeros": lambda path: path.write_bytes(bytes(10_000)),
    "a huge hole": _hole,
}
