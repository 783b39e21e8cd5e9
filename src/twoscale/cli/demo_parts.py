"""The parts of a demo: made one after the other in its folder, and noted there when finished."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from twoscale.cli.display import progress_bar
from twoscale.cli.terminal import is_quiet
from twoscale.data import Dataset, generate, open_data
from twoscale.errors import TwoscaleError
from twoscale.files import atomic_output, read_json, working, write_json
from twoscale.files.work_folder import SUFFIX, is_work_folder
from twoscale.problems import Poisson
from twoscale.report.demo_page import SEARCH, write_demo_page
from twoscale.report.figure_folder import check_page
from twoscale.report.method_looks import method_title
from twoscale.run import Run, auto_run, fit_run
from twoscale.runtime.texts import duration_text
from twoscale.search.policy import INTERRUPTED
from twoscale.surrogate.options import resolve_device

PAGE = "report.html"
_METHODS = ("local", "overlap", "two-scale")  # of the paper, after the search
_PARTS = 4
_NOTE = "demo.json"  # says that a folder is a demo's, what was asked, and which parts are done
_FORMAT = "twoscale-demo"


@dataclass(frozen=True)
class DemoOptions:
    """What a demo is asked to make; one that was stopped goes on only if this is the same."""

    samples: int
    resolution: int
    budget: float
    epochs: int
    seed: int
    device: str


def run_demo(out: Path, asked: DemoOptions, *, overwrite: bool = False) -> dict[str, Run]:
    """Make data, fit a search's result and three methods, write `report.html`; return the runs.

    A folder that holds anything must be a demo's. One that is finished is made anew only with
    `overwrite`; one that was interrupted goes on after its last finished part.
    """
    resolve_device(asked.device)
    _check_folder(out, overwrite=overwrite)
    with working(out / "demo", subject=f"making a demo in {out}"):
        _check_folder(out, overwrite=overwrite)  # another demo may have finished meanwhile
        check_page(out / PAGE, overwrite=True)
        return _Demo(out, asked).make()


class _Demo:
    """A demo that is being made in its own folder; finished parts are noted there."""

    def __init__(self, out: Path, asked: DemoOptions) -> None:
        self.out = out
        self.asked = asked
        note = _read_note(out)
        same = note.get("asked") == asdict(asked) and not note.get("complete")
        self.done: list[str] = list(note.get("done", [])) if same else []
        self._note(complete=False)

    def make(self) -> dict[str, Run]:
        """Make what is missing, in four parts; return the runs, the search's first."""
        side = self.asked.resolution
        _tell(1, f"making {self.asked.samples:,} pairs of Poisson fields on {side} x {side} nodes")
        dataset = self._dataset()
        runs: dict[str, Run] = {}
        _tell(2, f"searching for the best surrogate within {duration_text(self.asked.budget)}")
        runs[SEARCH] = self._run(dataset, SEARCH)
        for place, method in enumerate(_METHODS, 1):
            title = method_title(method)
            _tell(3, f"fitting the paper's methods: {title} ({place} of {len(_METHODS)})")
            runs[method] = self._run(dataset, method)
        _tell(4, "drawing the page")
        with progress_bar() as progress:
            write_demo_page(self.out / PAGE, dataset, runs, overwrite=True, progress=progress)
        self._note(complete=True)
        return runs

    def _dataset(self) -> Dataset:
        path = self.out / f"poisson-{self.asked.resolution}.zarr"
        if path.name in self.done:
            try:
                return open_data(path)
            except TwoscaleError:  # damaged meanwhile, or a file is lost
                self.done.clear()
        with progress_bar() as progress:
            dataset = generate(
                Poisson(),
                path,
                resolution=self.asked.resolution,
                samples=self.asked.samples,
                seed=self.asked.seed,
                device=resolve_device(self.asked.device),
                overwrite=True,
                progress=progress,
            )
        self._finish(path.name)
        return dataset

    def _run(self, dataset: Dataset, name: str) -> Run:
        """Return the finished run of that name on this dataset, or make it."""
        path = self.out / "runs" / name
        if name in self.done:
            with suppress(TwoscaleError):  # damaged meanwhile
                run = Run.open(path, device=self.asked.device)
                if run.fitted_on(dataset):
                    return run
        run = self._fit(dataset, path, name)
        self._finish(name)
        return run

    def _fit(self, dataset: Dataset, path: Path, name: str) -> Run:
        """Return the result of a search, or the run of one of the paper's methods."""
        options: dict[str, Any] = {"seed": self.asked.seed, "device": self.asked.device}
        options["overwrite"] = True
        if name != SEARCH:
            options |= {"method": name, "settings": {"epochs": self.asked.epochs}}
            with progress_bar(method_title(name)) as progress:
                return fit_run(dataset, path, progress=progress, **options)
        with progress_bar("search", over="seconds") as progress:
            run = auto_run(dataset, path, budget=self.asked.budget, progress=progress, **options)
        if run.search and run.search["stopped"] == INTERRUPTED:
            raise KeyboardInterrupt  # it stops the demo, and not only the search
        return run

    def _finish(self, part: str) -> None:
        self.done.append(part)
        self._note(complete=False)

    def _note(self, *, complete: bool) -> None:
        note = {
            "format": _FORMAT,
            "complete": complete,
            "asked": asdict(self.asked),
            "done": self.done,
        }
        with atomic_output(self.out / _NOTE, overwrite=True) as prepared:
            write_json(prepared, note)


def _tell(part: int, words: str) -> None:
    """Write a line on stderr that says which part begins."""
    if not is_quiet():
        print(f"{part} of {_PARTS}: {words}", file=sys.stderr, flush=True)


def _read_note(out: Path) -> dict[str, Any]:
    try:
        return read_json(out / _NOTE)
    except TwoscaleError:
        return {}


def _check_folder(out: Path, *, overwrite: bool) -> None:
    """Raise if the demo must not write into a folder."""
    try:
        if not os.path.lexists(out) or (out.is_dir() and all(map(_is_work, out.iterdir()))):
            return
        note = _read_note(out)
    except OSError as error:
        raise TwoscaleError(f"cannot write {out}: {error.strerror or error}") from error
    if note.get("format") != _FORMAT:
        raise TwoscaleError(f"{out} holds something else: choose another --out")
    if note.get("complete") and not overwrite:
        raise TwoscaleError(f"{out} exists already: choose another --out or pass --overwrite")


def _is_work(path: Path) -> bool:
    """Say whether something was left by a command that was killed."""
    return path.name.endswith(SUFFIX) and is_work_folder(path)
