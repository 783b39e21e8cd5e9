"""Runs that are wanted, fitted at once: what they have in common is done once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from twoscale.data import Dataset, split_samples
from twoscale.errors import TwoscaleError
from twoscale.files import (
    Checkpoints,
    Output,
    WorkFolder,
    check_file,
    check_target,
    claimed,
    content_digest,
    new_folder,
    read_sums,
    resolve_target,
    tidy,
    working,
)
from twoscale.run.folder import Illustrate, Run, run_config, write_run
from twoscale.run.pairs import Pair, loaded_pairs, stored_pairs, whole_fields_refused
from twoscale.runtime.memory import available_memory
from twoscale.runtime.progress import Progress
from twoscale.surrogate import Surrogate, fit_together
from twoscale.surrogate.artifact import is_replaceable, is_surrogate
from twoscale.surrogate.fitting import kept_checkpoints
from twoscale.surrogate.options import resolve_device
from twoscale.surrogate.together import Data


def fit_run(
    dataset: Dataset,
    out: str | Path,
    *,
    method: str,
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    training_samples: int | None = None,
    device: str = "auto",
    memory: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
) -> Run:
    """Fit a method on a dataset's training split and write the run folder.

    `illustrate` is called with the unfinished folder, the surrogate and the test pair, to add
    pictures before the run appears. A fit that was stopped goes on from its last checkpoint, unless
    `resume` is false.
    """
    (run,) = fit_runs(
        dataset,
        {seed: out},
        method=method,
        settings=settings,
        training_samples=training_samples,
        device=device,
        memory=memory,
        overwrite=overwrite,
        resume=resume,
        progress=progress,
        illustrate=illustrate,
    )
    return run


def fit_runs(
    dataset: Dataset,
    outs: Mapping[int, str | Path],
    *,
    method: str,
    settings: dict[str, Any] | None = None,
    training_samples: int | None = None,
    **options: Any,
) -> list[Run]:
    """Fit a method for several seeds at once; `outs` names each seed's run folder.

    Options are those of `fit_requests`. All run folders appear, or none. If a kill let only some
    appear, those are not fitted again.
    """
    requests = [
        Request(Path(out), method, seed, settings or {}, training_samples)
        for seed, out in outs.items()
    ]
    if len(requests) == 1:
        return [run for run in fit_requests(dataset, requests, **options) if run is not None]
    return _fit_several(dataset, requests, **options)


def _fit_several(
    dataset: Dataset,
    requests: Sequence[Request],
    *,
    device: str = "auto",
    overwrite: bool = False,
    resume: bool = True,
    **options: Any,
) -> list[Run]:
    """Fit several requests; their checkpoints outlive the first run that appears."""
    known: dict[Path, Run] = {}
    if resume and not overwrite:
        known = _finished(dataset, requests, device)
    missing = [request for request in requests if request.out not in known]
    asked = {"dataset": dataset.identity, "requests": [repr(request) for request in requests]}
    first = resolve_target(requests[0].out)
    place = first.with_name(f"{first.name}-and-others-{content_digest(asked)[:8]}")
    if not missing:
        with suppress(TwoscaleError):  # of a command that was killed at its very end
            WorkFolder(place).remove()
        raise TwoscaleError(
            f"{requests[0].out.parent} exists already, with all these runs: choose another --out "
            "or pass --overwrite"
        )
    for request in missing:
        check_target(request.out, overwrite=overwrite, may_replace=is_replaceable)
    with working(place, subject=f"fitting into {place.parent}") as work:
        kept = kept_checkpoints(work, asked, device=resolve_device(device), resume=resume)
        runs = fit_requests(
            dataset, missing, device=device, overwrite=overwrite, checkpoints=kept, **options
        )
    known |= {run.path: run for run in runs if run is not None}
    return [known[request.out] for request in requests]


def _finished(dataset: Dataset, requests: Sequence[Request], device: str) -> dict[Path, Run]:
    """Return the runs that are there already and are just what is asked for, by their folders."""
    found = {}
    for one in requests:
        if not is_surrogate(one.out):
            continue
        run = Run.open(one.out, device=device)
        for name in read_sums(one.out):
            check_file(one.out, name)
        asked = _surrogate(dataset, one, device)
        split = split_samples(dataset.samples, seed=one.seed, training=one.training_samples)
        config = run_config(dataset, asked, len(split.training))
        if run.config["hash"] == config["hash"]:
            found[one.out] = run
            tidy(one.out.resolve())
    return found


def _surrogate(dataset: Dataset, request: Request, device: str) -> Surrogate:
    """Return the surrogate of a request, to be fitted."""
    return Surrogate(
        request.method,
        seed=request.seed,
        device=device,
        problem=dataset.problem,
        **request.settings,
    )


@dataclass(frozen=True)
class Request:
    """A run that is wanted: where it shall lie, and what it shall be."""

    out: Path
    method: str
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    training_samples: int | None = None


def fit_requests(
    dataset: Dataset,
    requests: Sequence[Request],
    *,
    device: str = "auto",
    memory: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
    on_error: Callable[[Request, Exception], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[Run | None]:
    """Fit any methods, seeds and variants on a dataset at once, and write their run folders.

    What they have in common is done once: fields are read once per split, equal representations are
    fitted once, networks on codes are trained side by side.

    `memory` is the memory to stay within, in bytes (by default the machine's free memory). Fields
    that would take more than half of it are read from disk on every pass instead. With `on_error`
    each run appears as soon as it is ready, and one that fails is reported there and given as None;
    without it all run folders appear, or none. `resume` is as for `fit_run`. `checkpoints` are kept
    beside the first run unless a place is given.
    """
    fits = _RequestedFits(dataset, requests, device, memory, progress)
    runs: list[Run | None] = [None] * len(requests)
    with ExitStack() as stack:
        outputs = [
            stack.enter_context(claimed(one.out, overwrite=overwrite, may_replace=is_replaceable))
            for one in requests
        ]
        fits.checkpoints = checkpoints or fits.own_checkpoints(outputs[0], resume=resume)

        def write(place: int) -> None:
            content = outputs[place].content
            new_folder(content)
            runs[place] = fits.write(place, content, illustrate)
            if on_error is not None:
                outputs[place].commit()

        failed = None
        if on_error is not None:

            def failed(place: int, error: Exception) -> None:
                on_error(requests[place], error)

        fits.fit(write, failed)
        if on_error is None:
            for output in outputs:
                output.commit()
    return runs


class _RequestedFits:
    """The surrogates of some requests, and the fields they are fitted and tested on."""

    def __init__(
        self,
        dataset: Dataset,
        requests: Sequence[Request],
        device: str,
        memory: int | None,
        progress: Progress | None,
    ) -> None:
        self.dataset = dataset
        self.requests = requests
        self.progress = progress
        self.surrogates = [_surrogate(dataset, one, device) for one in requests]
        self.splits = [
            split_samples(dataset.samples, seed=one.seed, training=one.training_samples)
            for one in requests
        ]
        self.stored = dataset.nbytes > (memory or available_memory()) // 2
        for surrogate in self.surrogates:
            if self.stored and memory and not surrogate.passes_over_fields:
                raise whole_fields_refused(dataset, surrogate.method)
        self.checkpoints: Checkpoints | None = None
        self.loaded: tuple[Any, list[Pair]] = (None, [])
        self.tests: dict[int, Pair] = {}  # by seed

    def own_checkpoints(self, output: Output, *, resume: bool) -> Checkpoints:
        """Return the checkpoints beside an output: those of the same fits, or none yet."""
        surrogates = [(one.method, one.seed, one.settings) for one in self.surrogates]
        asked = {
            "dataset": self.dataset.identity,
            "fits": surrogates,
            "training_samples": [len(split.training) for split in self.splits],
        }
        device = self.surrogates[0].device
        return kept_checkpoints(output.work, asked, device=device, resume=resume)

    def fit(
        self, write: Callable[[int], None], failed: Callable[[int, Exception], None] | None
    ) -> None:
        """Fit all, those of the same split one after the other; `write` each that is ready."""
        order = sorted(range(len(self.requests)), key=lambda place: repr(self._part(place)))
        fit_together(
            [self.surrogates[place] for place in order],
            [partial(self._training, place) for place in order],
            same=[(self.dataset.identity, *self._part(place)) for place in order],
            progress=self.progress,
            finished=lambda position: write(order[position]),
            failed=failed and (lambda position, error: failed(order[position], error)),
            checkpoints=self.checkpoints,
        )

    def _part(self, place: int) -> tuple[int, int | None]:
        """Return what decides the split of a request."""
        return self.requests[place].seed, self.requests[place].training_samples

    def _pairs(self, place: int) -> list[Pair]:
        """Return the fields of the three parts of a split; the last ones asked for are kept."""
        part = self._part(place)
        if self.loaded[0] != part:
            self.loaded = (None, [])
            split = self.splits[place]
            pairs = (
                stored_pairs(self.dataset, split)
                if self.stored
                else loaded_pairs(self.dataset, split, self.progress)
            )
            self.loaded = (part, pairs)
            self.tests[part[0]] = pairs[2]
        return self.loaded[1]

    def _training(self, place: int) -> Data:
        training, validation, _ = self._pairs(place)
        return *training, validation

    def write(self, place: int, folder: Path, illustrate: Illustrate | None) -> Run:
        """Write a fitted run into an open folder."""
        surrogate, split = self.surrogates[place], self.splits[place]
        config = run_config(self.dataset, surrogate, len(split.training))
        write_run(
            folder, surrogate, self.tests[surrogate.seed], split, config, self.progress, illustrate
        )
        return Run(self.requests[place].out, surrogate, config)
