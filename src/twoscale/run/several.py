"""Several runs fitted at once: what they have in common is done once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

from twoscale.data import Dataset
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
from twoscale.run.fitting import Request, fit_run, fits_asked
from twoscale.run.folder import Fitted, Illustrate, Run, first_pairs, run_config, write_run
from twoscale.run.pairs import Pair, reads_on_each_pass, split_pairs
from twoscale.runtime.progress import Progress
from twoscale.surrogate import fit_together
from twoscale.surrogate.artifact import is_replaceable, is_surrogate
from twoscale.surrogate.fitting import kept_checkpoints
from twoscale.surrogate.options import resolve_device
from twoscale.surrogate.together import Data


def fit_runs(
    dataset: Dataset,
    outs: Mapping[int, str | Path],
    *,
    method: str,
    settings: Mapping[str, Any] | None = None,
    training_samples: int | None = None,
    **options: Any,
) -> list[Run]:
    """Fit a method for several seeds at once; `outs` names each seed's run folder.

    Options are those of `fit_run`. All run folders appear, or none. If a kill let only some appear,
    those are not fitted again.
    """
    asked: dict[str, Any] = {"settings": settings, "training_samples": training_samples}
    if len(outs) == 1:
        ((seed, out),) = outs.items()
        return [fit_run(dataset, out, method=method, seed=seed, **asked, **options)]
    requests = [
        Request(Path(out), method, seed, settings or {}, training_samples)
        for seed, out in outs.items()
    ]
    return _fit_missing(dataset, requests, **options)


def _fit_missing(
    dataset: Dataset,
    requests: Sequence[Request],
    *,
    device: str = "auto",
    overwrite: bool = False,
    resume: bool = True,
    **options: Any,
) -> list[Run]:
    """Fit the requests whose runs are missing; checkpoints stay until all runs have appeared."""
    known: dict[Path, Run] = {}
    if resume and not overwrite:
        known = _finished(dataset, requests, device)
    missing = [request for request in requests if request.out not in known]
    asked = {"dataset": dataset.identity, "requests": [repr(request) for request in requests]}
    first = resolve_target(requests[0].out)
    place = first.with_name(f"{first.name}-and-others-{content_digest(asked)[:8]}")
    if not missing:
        with suppress(TwoscaleError):  # left by a command that was killed at its very end
            WorkFolder(place).remove()
        raise TwoscaleError(
            f"{requests[0].out.parent} exists already, with all these runs: choose another "
            "path, or pass overwrite=True"
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
    """Return the runs that exist already and are what is asked for, by their folders."""
    found = {}
    for one in requests:
        if not is_surrogate(one.out):
            continue
        run = Run.open(one.out, device=device)
        for name in read_sums(one.out):
            check_file(one.out, name)
        asked = one.surrogate(dataset, device)
        config = run_config(dataset, asked, len(one.split(dataset).training))
        if run.config["hash"] == config["hash"]:
            found[one.out] = run
            tidy(one.out.resolve())
    return found


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

    With `on_error` each run appears as soon as it is ready; a run that fails is reported there and
    returned as None. Without it all run folders appear, or none. `checkpoints` are kept beside the
    first run by default. Other options are those of `fit_run`.
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
        self.surrogates = [one.surrogate(dataset, device) for one in requests]
        self.splits = [one.split(dataset) for one in requests]
        self.stored = reads_on_each_pass(dataset, memory, self.surrogates)
        self.checkpoints: Checkpoints | None = None
        self.loaded: tuple[Any, list[Pair]] = (None, [])
        self.tests: dict[int, Pair] = {}  # by seed
        self.learned: dict[tuple[int, int | None], Pair] = {}  # some training pairs of each split

    def own_checkpoints(self, output: Output, *, resume: bool) -> Checkpoints:
        """Return the checkpoints beside an output: those of the same fits, or none yet."""
        asked = fits_asked(self.dataset, self.surrogates, self.splits)
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
        """Return the pairs of the three parts of a split; the latest ones are kept."""
        part = self._part(place)
        if self.loaded[0] != part:
            self.loaded = (None, [])  # frees them before others are read
            pairs = split_pairs(
                self.dataset, self.splits[place], stored=self.stored, progress=self.progress
            )
            self.loaded = (part, pairs)
            self.tests[part[0]], self.learned[part] = pairs[2], first_pairs(pairs[0])
        return self.loaded[1]

    def _training(self, place: int) -> Data:
        training, validation, _ = self._pairs(place)
        return *training, validation

    def write(self, place: int, folder: Path, illustrate: Illustrate | None) -> Run:
        """Write a fitted run into an open folder."""
        surrogate, split = self.surrogates[place], self.splits[place]
        config = run_config(self.dataset, surrogate, len(split.training))
        out, learned = self.requests[place].out, self.learned[self._part(place)]
        fitted = Fitted(out, surrogate, config, split, learned, self.tests[surrogate.seed])
        write_run(folder, fitted, self.progress, illustrate)
        return Run(out, surrogate, config)
