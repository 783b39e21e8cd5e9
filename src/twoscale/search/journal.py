"""A running search on disk: its trials, the candidates being fitted, the best surrogate so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.files import Checkpoints, content_digest, new_folder, plain_json, read_json, remove
from twoscale.files.reading import rewrite_json
from twoscale.search.attempts import RunningCandidate
from twoscale.search.candidates import Candidate
from twoscale.search.kept import read_kept, write_kept
from twoscale.search.neighbours import Step
from twoscale.search.trials import Outcome, Trial
from twoscale.surrogate import Surrogate


@dataclass(frozen=True)
class Resumed:
    """A search that was stopped; `elapsed` is how many seconds of its budget it has used."""

    trials: list[Trial]
    running: list[RunningCandidate]
    elapsed: float
    best: Surrogate | None


class Journal:
    """Keeps a search in a folder, so that another process can go on with it.

    The best surrogate is written whenever it has changed, then the trials, in one step each.
    """

    def __init__(self, folder: Path, best: Callable[[], Surrogate | None]) -> None:
        self.folder = folder
        self._best = best
        self._written: Surrogate | None = None
        self._number = 0
        self._ticked = 0.0
        self._resumed: list[RunningCandidate] = []

    def training(self) -> Checkpoints:
        """Return the checkpoints of the candidate that is being fitted."""
        return Checkpoints(self.folder / "candidate")

    def note(self, trials: Sequence[Trial], running: Sequence[RunningCandidate]) -> None:
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
        if list(running) != self._resumed:
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

    def resume(self, **options: Any) -> Resumed | None:
        """Return the search that was left here, or None; options are those of `Surrogate.load`."""
        try:
            content = read_json(self.folder / "search.json")
            if content.pop("checksum", None) != content_digest(content):
                return None
            best = None
            if content["best"] is not None:
                self._number = content["best"]
                best = self._written = read_kept(self._folder(self._number), **options)
            running = self._resumed = [_running(entry) for entry in content["running"]]
            return Resumed(
                [_trial(entry) for entry in content["trials"]],
                list(running),
                max([self._elapsed(), *(one.began for one in running)]),
                best,
            )
        except (TwoscaleError, KeyError, TypeError, ValueError):  # of another version, or damaged
            return None

    def _elapsed(self) -> float:
        with suppress(TwoscaleError):
            return float(
                read_json(self.folder / "elapsed.json", require={"elapsed": float})["elapsed"]
            )
        return 0.0


def _candidate(entry: dict[str, Any]) -> Candidate:
    return Candidate(**entry | {"tuned": _pairs(entry["tuned"])})


def _pairs(entry: list[list[Any]]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, value) for name, value in entry)


def _trial(entry: dict[str, Any]) -> Trial:
    outcome = entry["outcome"]
    if outcome is not None:
        outcome = Outcome(**outcome | {"tuned": _pairs(outcome["tuned"])})
    return Trial(**entry | {"candidate": _candidate(entry["candidate"]), "outcome": outcome})


def _running(entry: dict[str, Any]) -> RunningCandidate:
    step = entry["step"]
    return RunningCandidate(
        Step(**step | {"candidate": _candidate(step["candidate"])}),
        entry["expected"],
        entry["began"],
        entry["deadline"],
    )
