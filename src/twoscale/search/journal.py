"""A running search on disk: its trials, the candidates being fitted, the best surrogate so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.files import (
    Checkpoints,
    content_digest,
    new_folder,
    plain_json,
    read_json,
    remove,
    write_json,
)
from twoscale.files.reading import rewrite_json
from twoscale.search.space import Candidate
from twoscale.search.trials import Outcome, Trial
from twoscale.surrogate import Surrogate
from twoscale.surrogate.manifest import write_surrogate


class Journal:
    """Keeps a search in a folder, so that another process can go on with it.

    The best surrogate is written whenever it has changed, then the trials, in one step each.

    Attributes
    ----------
    trials, running, elapsed
        Those of the search that `resume` has read, and how many seconds of its budget it has used.
    """

    def __init__(self, folder: Path, best: Callable[[], Surrogate | None]) -> None:
        self.folder = folder
        self._best = best
        self._written: Surrogate | None = None
        self._number = 0
        self._ticked = 0.0
        self.trials: list[Trial] = []
        self.running: list[Trial] = []
        self.elapsed = 0.0

    def training(self) -> Checkpoints:
        """Return the checkpoints of the candidate that is being fitted."""
        return Checkpoints(self.folder / "candidate")

    def note(self, trials: Sequence[Trial], running: Sequence[Trial]) -> None:
        """Note which candidates are being fitted, perhaps none, after some trials."""
        self.folder.mkdir(exist_ok=True)
        best = self._best()
        if best is not None and best is not self._written:
            self._write_best(best)
        content = plain_json(
            {
                "trials": [asdict(trial) for trial in trials],
                "running": [asdict(one) for one in running],
                "best": None if best is None else self._number,
            }
        )
        content["checksum"] = content_digest(content)
        rewrite_json(self.folder / "search.json", content)
        self._ticked = max((one.began for one in running), default=self._ticked)
        for path in self.folder.glob("best-*"):
            if path.name != self._folder(self._number).name:
                remove(path)
        if list(running) != self.running:
            remove(self.folder / "candidate")

    def tick(self, elapsed: float) -> None:
        """Note how many seconds the search has used, at most once a second."""
        if elapsed - self._ticked >= 1.0:
            self._ticked = elapsed
            rewrite_json(self.folder / "elapsed.json", {"elapsed": elapsed})

    def _write_best(self, best: Surrogate) -> None:
        self._number += 1
        folder = self._folder(self._number)
        new_folder(folder)
        write_kept(best, folder)
        self._written = best

    def _folder(self, number: int) -> Path:
        return self.folder / f"best-{number}"

    def resume(self, **options: Any) -> Surrogate | None:
        """Read the search that was left here; return its best surrogate, if it has one.

        Options are those of `Surrogate.load`.
        """
        try:
            content = read_json(self.folder / "search.json")
            if content.pop("checksum", None) != content_digest(content):
                return None
            if content["best"] is not None:
                self._number = content["best"]
                self._written = read_kept(self._folder(self._number), **options)
            both = [[_trial(entry) for entry in content[name]] for name in ("trials", "running")]
        except (TwoscaleError, KeyError, TypeError, ValueError):  # of another version, or damaged
            return None
        self.trials, self.running = both
        self.elapsed = max([self._elapsed(), *(one.began for one in self.running)])
        return self._written

    def _elapsed(self) -> float:
        with suppress(TwoscaleError):
            return float(
                read_json(self.folder / "elapsed.json", require={"elapsed": float})["elapsed"]
            )
        return 0.0


def _trial(entry: dict[str, Any]) -> Trial:
    candidate, outcome = Candidate(**_with_pairs(entry["candidate"])), entry["outcome"]
    if outcome is not None:
        outcome = Outcome(**_with_pairs(outcome))
    return Trial(**entry | {"candidate": candidate, "outcome": outcome})


def _with_pairs(entry: dict[str, Any]) -> dict[str, Any]:
    return entry | {"tuned": tuple((name, value) for name, value in entry["tuned"])}


Files = dict[str, bytes]
"""Contents of files by their names."""

_HISTORY = "history.json"


def write_kept(surrogate: Surrogate, folder: Path) -> None:
    """Write a surrogate and its history into an existing folder."""
    write_surrogate(surrogate, folder)
    write_json(folder / _HISTORY, surrogate.history_)


def read_kept(folder: Path, **options: Any) -> Surrogate:
    """Return what `write_kept` wrote; options are those of `Surrogate.load`."""
    surrogate = Surrogate.load(folder, **options)
    assert surrogate.state_ is not None
    surrogate.state_ = replace(surrogate.state_, history=read_json(folder / _HISTORY))
    return surrogate


def to_files(surrogate: Surrogate) -> Files:
    """Return a surrogate as files."""
    with TemporaryDirectory() as folder:
        write_kept(surrogate, Path(folder))
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def from_files(files: Files, **options: Any) -> Surrogate:
    """Return the surrogate that `to_files` was given; options are those of `Surrogate.load`."""
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return read_kept(Path(folder), **options)
