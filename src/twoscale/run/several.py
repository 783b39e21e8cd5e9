"""Several runs fitted at once: what they have in common is done once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from twoscale.data import Dataset, Shares
from twoscale.errors import TwoscaleError
from twoscale.fields.workers import Workers
from twoscale.files import (
    Checkpoints,
    WorkFolder,
    check_file,
    check_target,
    claimed,
    content_digest,
    new_folder,
    read_sums,
    resolve_target,
    working,
)
from twoscale.files.outputs import Output
from twoscale.files.work_folder import tidy
from twoscale.run.fitting import Request, fit_run, fits_asked
from twoscale.run.folder import Fitted, Illustrate, Run, first_pairs, run_config, write_run
from twoscale.run.pairs import (
    Pair,
    SplitPairs,
    reads_on_each_pass,
    scratch_in,
    split_pairs,
)
from twoscale.runtime import processes
from twoscale.runtime.progress import Progress
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.surrogate import fit_together
from twoscale.surrogate.artifact import is_replaceable, is_surrogate
from twoscale.surrogate.fitting import kept_checkpoints
from twoscale.surrogate.options import resolve_device, shared_device
from twoscale.surrogate.together import Data


def fit_runs(
    dataset: Dataset,
    outs: Mapping[int, str | Path],
    *,
    method: str,
    settings: Mapping[str, Any] | None = None,
    training_samples: int | None = None,
    shares: Shares | None = None,
    **options: Any,
) -> list[Run]:
    """Fit a method for several seeds at once; `outs` names each seed's run folder.

    Options are those of `fit_run`. All run folders appear, or none. If a kill let only some appear,
    those are not fitted again.
    """
    asked: dict[str, Any] = {
        "settings": settings,
        "training_samples": training_samples,
        "shares": shares,
    }
    if len(outs) == 1:
        ((seed, out),) = outs.items()
        return [fit_run(dataset, out, method=method, seed=seed, **asked, **options)]
    requests = [
        Request(Path(out), method, seed, settings or {}, training_samples, shares)
        for seed, out in outs.items()
    ]
    return _fit_missing(dataset, requests, **options)


def _fit_missing(
    dataset: Dataset,
    requests: Sequence[Request],
    *,
    device: str = "auto",
    test: Dataset | None = None,
    overwrite: bool = False,
    resume: bool = True,
    **options: Any,
) -> list[Run]:
    """Fit the requests whose runs are missing; checkpoints stay until all runs have appeared."""
    processes.refuse_several("several seeds are fitted", "give each seed a torchrun of its own")
    device = shared_device(options.get("workers"), device)
    known: dict[Path, Run] = {}
    if resume and not overwrite:
        known = _finished(dataset, requests, device, test)
    missing = [request for request in requests if request.out not in known]
    asked = {
        "dataset": dataset.identity,
        "test_dataset": None if test is None else test.identity,
        "requests": [repr(request) for request in requests],
    }
    first = resolve_target(requests[0].out)
    place = first.with_name(f"{first.name}-and-others-{content_digest(asked)[:8]}")
    if not missing:
        with suppress(TwoscaleError):  # left by a command that was killed at its very end
            WorkFolder(place).remove()
        raise TwoscaleError(
            f"{requests[0].out.parent} exists already, with all these runs: choose another "
            "path, or set overwrite"
        )
    for request in missing:
        check_target(request.out, overwrite=overwrite, may_replace=is_replaceable)
    with working(place, subject=f"fitting into {place.parent}") as work:
        kept = kept_checkpoints(work, asked, device=resolve_device(device), resume=resume)
        runs = fit_requests(
            dataset,
            missing,
            device=device,
            test=test,
            overwrite=overwrite,
            checkpoints=kept,
            **options,
        )
    known |= {run.path: run for run in runs if run is not None}
    return [known[request.out] for request in requests]


def _finished(
    dataset: Dataset, requests: Sequence[Request], device: str, test: Dataset | None
) -> dict[Path, Run]:
    """Return the runs that exist already and are what is asked for, by their folders."""
    found = {}
    for one in requests:
        if not is_surrogate(one.out):
            continue
        run = Run.open(one.out, device=device)
        for name in read_sums(one.out):
            check_file(one.out, name)
        asked = one.surrogate(dataset, device)
        count = len(one.split(dataset, test).training)
        config = run_config(dataset, asked, count, shares=one.shares, test=test)
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
    test: Dataset | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
    on_error: Callable[[Request, Exception], None] | None = None,
    checkpoints: Checkpoints | None = None,
    workers: Workers | None = None,
) -> list[Run | None]:
    """Fit any methods, seeds and variants on a dataset at once, and write their run folders.

    What they have in common is done once: fields are read once per split, equal representations are
    fitted once, networks on codes are trained side by side.

    With `on_error` each run appears as soon as it is ready; a run that fails is reported there and
    returned as None. Without it all run folders appear, or none. `checkpoints` are kept beside the
    first run by default. Other options are those of `fit_run`.
    """
    device = shared_device(workers, device)
    fits = _RequestedFits(dataset, requests, device, memory, progress, test, workers)
    runs: list[Run | None] = [None] * len(requests)
    with ExitStack() as stack:
        outputs = [
            stack.enter_context(claimed(one.out, overwrite=overwrite, may_replace=is_replaceable))
            for one in requests
        ]
        fits.scratch = stack.enter_context(fits.scratch_beside(outputs[0]))
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
        test: Dataset | None,
        workers: Workers | None,
    ) -> None:
        self.dataset = dataset
        self.workers = workers
        self.test = test
        self.requests = requests
        self.progress = progress
        self.surrogates = [one.surrogate(dataset, device) for one in requests]
        self.splits = [one.split(dataset, test) for one in requests]
        self.memory = memory
        self.large = reads_on_each_pass(dataset, memory, test=test)
        self.stored = self.large or workers is not None
        self.scratch = IN_MEMORY
        self.checkpoints: Checkpoints | None = None
        self.loaded: tuple[Any, SplitPairs | None] = (None, None)
        self.tests: dict[Hashable, Pair] = {}  # those that metrics are measured on
        self.kept: dict[Hashable, SplitPairs] = {}  # of each split, with some training pairs

    def own_checkpoints(self, output: Output, *, resume: bool) -> Checkpoints:
        """Return the checkpoints beside an output: those of the same fits, or none yet."""
        shares = [one.shares for one in self.requests]
        asked = fits_asked(
            self.dataset, self.surrogates, self.splits, shares=shares, test=self.test
        )
        device = self.surrogates[0].device
        return kept_checkpoints(output.work, asked, device=device, resume=resume)

    def scratch_beside(self, output: Output) -> AbstractContextManager[Scratch]:
        """Return what gives the scratch of all fits, whose files lie beside an output."""
        spooled = any(one.parts.trains_on_fields for one in self.surrogates)
        fields = self.dataset if spooled else None
        return scratch_in(output.work, self.memory, stored=self.large, fields=fields)

    def fit(
        self, write: Callable[[int], None], failed: Callable[[int, Exception], None] | None
    ) -> None:
        """Fit all, those of the same split one after the other; `write` each that is ready."""
        order = sorted(range(len(self.requests)), key=lambda place: repr(self._part(place)))
        fit_together(
            [self.surrogates[place] for place in order],
            [partial(self._training, place) for place in order],
            same=[(self.dataset.identity, *self._part(place)) for place in order],
            trusted=[self.requests[place].calibrates for place in order],
            progress=self.progress,
            finished=lambda position: write(order[position]),
            failed=failed and (lambda position, error: failed(order[position], error)),
            checkpoints=self.checkpoints,
            scratch=self.scratch,
        )

    def _part(self, place: int) -> tuple[Hashable, ...]:
        """Return what decides the split of a request."""
        one, split = self.requests[place], self.splits[place]
        sizes = len(split.validation), len(split.calibration)
        return one.seed, one.training_samples, one.shares, *sizes

    def _measured(self, place: int) -> tuple[Hashable, ...]:
        """Return what decides the samples that a request's metrics are measured on."""
        one, split = self.requests[place], self.splits[place]
        return one.seed, one.shares, split.measured, len(split.as_dict()[split.measured])

    def _pairs(self, place: int) -> SplitPairs:
        """Return the pairs of all parts of a split; the latest ones are kept."""
        part, (known, pairs) = self._part(place), self.loaded
        if pairs is None or known != part:
            self.loaded = (None, None)  # frees them before others are read
            pairs = split_pairs(
                self.dataset,
                self.splits[place],
                stored=self.stored,
                test=self.test,
                workers=self.workers,
                progress=self.progress,
            )
            self.loaded = (part, pairs)
            judging = self.tests.setdefault(self._measured(place), pairs.test)
            self.kept[part] = replace(pairs, training=first_pairs(pairs.training), test=judging)
        return pairs

    def _training(self, place: int) -> Data:
        pairs = self._pairs(place)
        return *pairs.training, pairs.validation

    def write(self, place: int, folder: Path, illustrate: Illustrate | None) -> Run:
        """Write a fitted run into an open folder."""
        surrogate, split = self.surrogates[place], self.splits[place]
        config = run_config(
            self.dataset,
            surrogate,
            len(split.training),
            shares=self.requests[place].shares,
            test=self.test,
        )
        request, pairs = self.requests[place], self.kept[self._part(place)]
        out = request.out
        fitted = Fitted(out, surrogate, config, split, pairs, trusted=request.calibrates)
        write_run(folder, fitted, self.progress, illustrate)
        return Run(out, surrogate, config)
