"""Runs of surrogates fitted on a dataset: one, or several whose common work is done once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from twoscale.data import Dataset, Shares, Split
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.workers import Workers
from twoscale.files import (
    Checkpoints,
    WorkFolder,
    check_file,
    check_target,
    claimed,
    content_digest,
    read_sums,
    resolve_target,
    working,
)
from twoscale.files.work_folder import tidy
from twoscale.operators.fitting import FitOptions, FittedRepresentations
from twoscale.run.folder import (
    TRAINING_SAMPLES,
    Fitted,
    Illustrate,
    Run,
    run_config,
    write_run,
)
from twoscale.run.pairs import (
    own_scratch,
    reads_on_each_pass,
    scratch_in,
    split_dataset,
    split_pairs,
)
from twoscale.runtime import processes
from twoscale.runtime.progress import Progress
from twoscale.runtime.scratch import Scratch
from twoscale.surrogate import Surrogate
from twoscale.surrogate.artifact import is_replaceable, is_surrogate
from twoscale.surrogate.driver import (
    FittedState,
    kept_checkpoints,
    run_fit,
    run_fits,
    warn_of_symmetries,
)
from twoscale.surrogate.options import resolve_device, shared_device


@dataclass(frozen=True)
class RunRequest:
    """A run that is wanted: its folder, method, seed and settings.

    `training_samples` is the number of training samples to use, by default all of the split's.
    `shares` are those of training, validation and test samples, 0.8/0.1/0.1 by default, and
    0.9/0.1/0 beside a dataset of test samples. `calibrates` says whether half of the validation
    samples are set apart to calibrate bands.
    """

    out: Path
    method: str
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    training_samples: int | None = None
    shares: Shares | None = None
    calibrates: bool = True

    def surrogate(self, dataset: Dataset, device: str) -> Surrogate:
        """Return the surrogate of the request, to be fitted."""
        return Surrogate(
            self.method, seed=self.seed, device=device, problem=dataset.problem, **self.settings
        )

    def split(self, dataset: Dataset, test: Dataset | None, surrogate: Surrogate) -> Split:
        """Return the training, validation and test samples of the request.

        Test samples are those of the dataset `test`, if there is one.
        """
        return split_dataset(
            dataset,
            test,
            seed=self.seed,
            training=self.training_samples,
            shares=self.shares,
            chooses=surrogate.parts.uses_validation,
            calibrates=self.calibrates,
        )


def fit_run(dataset: Dataset, out: str | Path, *, method: str, **options: Any) -> Run:
    """Fit a method on a dataset's training split and write the run folder.

    Options are those of `RunRequest` and of `fit_runs`.
    """
    names = ("seed", "settings", "training_samples", "shares")
    given = {name: options.pop(name, None) for name in names}
    asked = {name: value for name, value in given.items() if value is not None}
    return fit_runs(dataset, [RunRequest(Path(out), method, **asked)], **options)[0]


def fit_runs(
    dataset: Dataset,
    requests: Sequence[RunRequest],
    *,
    device: str = "auto",
    memory: int | None = None,
    test: Dataset | None = None,
    workers: Workers | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
    on_error: Callable[[RunRequest, Exception], None] | None = None,
    checkpoints: Checkpoints | None = None,
) -> list[Run]:
    """Fit any methods, seeds and variants on a dataset, and write their run folders.

    What they have in common is done once: fields are read once per split, equal representations are
    fitted once, networks on codes are trained side by side. All run folders appear, or none. If a
    kill let only some appear, the same call fits the others.

    Parameters
    ----------
    dataset, requests
        The data, and the runs that are wanted.
    device
        As for `Surrogate`.
    memory
        The memory to stay within, in bytes; by default the machine's free memory. Fields that would
        take more than half of it are read from disk on every pass. What a fit makes of them is then
        kept in scratch files where it is large.
    test
        A dataset all of whose samples are the test samples.
    workers
        Read the fields, fit the representations, encode and predict; results are the same.
    overwrite, resume
        Whether to replace folders that are there already, false by default; and whether fits that
        were stopped go on from their last checkpoint, true by default.
    progress
        Called as progress(stage, done, total, remark).
    illustrate
        Called with each unfinished folder and what was fitted, to add a page before it appears.
    on_error
        Called with a request that failed, and its error. Each run then appears as soon as it is
        ready, and the others go on. By default the error is raised.
    checkpoints
        Where states are kept; beside the first run by default.

    Returns
    -------
    list
        The runs, without those that failed. Of several processes that train together the first one
        writes the folder; the others get a run whose folder may not be there yet.
    """
    if len(requests) > 1:
        processes.refuse_several("several seeds are fitted", "give each seed a torchrun of its own")
    device = shared_device(workers, device)
    fits = _RunFits(dataset, requests, device, memory, test, workers, progress)
    if not processes.is_first():
        return [fits.share()]
    known: dict[Path, Run] = {}
    at_once = on_error is not None
    keep = partial(kept_checkpoints, device=resolve_device(device), resume=resume)
    with ExitStack() as stack:
        if len(requests) > 1 and not at_once:
            if resume and not overwrite:
                known = fits.finished()
            asked = fits.asked | {"requests": [repr(request) for request in requests]}
            work = fits.common_work(content_digest(asked)[:8], overwrite=overwrite)
            checkpoints = keep(stack.enter_context(work), asked)
        outputs = {
            place: stack.enter_context(
                claimed(requests[place].out, overwrite=overwrite, may_replace=is_replaceable)
            )
            for place in fits.places
        }
        first = outputs[fits.places[0]].work
        spooled = any(one.parts.trains_on_fields for one in fits.surrogates)
        fields = dataset if spooled else None
        scratch = stack.enter_context(scratch_in(first, memory, stored=fits.large, fields=fields))

        def write(place: int, state: FittedState) -> None:
            fitted = fits.fitted(place, state)
            run = write_run(outputs[place], fitted, progress, illustrate, commit=at_once)
            known[run.path] = run

        def fail(place: int, error: Exception) -> None:
            assert on_error is not None
            on_error(requests[place], error)

        kept = checkpoints or keep(first, fits.asked_in_full)
        fits.fit(write, fail if at_once else None, kept, scratch)
        if not at_once:
            for output in outputs.values():
                output.commit()
    return [known[request.out] for request in requests if request.out in known]


class _RunFits:
    """The fits of some requests, and the fields they are fitted and tested on."""

    def __init__(
        self,
        dataset: Dataset,
        requests: Sequence[RunRequest],
        device: str,
        memory: int | None,
        test: Dataset | None,
        workers: Workers | None,
        progress: Progress | None,
    ) -> None:
        self.dataset, self.requests, self.device = dataset, requests, device
        self.memory, self.test, self.workers, self.progress = memory, test, workers, progress
        self.surrogates = [one.surrogate(dataset, device) for one in requests]
        self.splits = [
            one.split(dataset, test, surrogate)
            for one, surrogate in zip(requests, self.surrogates, strict=True)
        ]
        self.places = list(range(len(requests)))  # of those that are to be fitted
        count = processes.count()  # each process holds its part of the fields
        self.large = reads_on_each_pass(dataset, memory and memory * count, test=test)
        self.stored = self.large or workers is not None or count > 1
        if count > 1:
            _check_shared(self.surrogates[0], dataset, test)
        self.loaded: tuple[Hashable, SplitData | None] = (None, None)
        self.tests: dict[Hashable, Pairs | None] = {}  # those that metrics are measured on
        self.kept: dict[Hashable, SplitData] = {}  # of each split, with some training pairs
        self.asked: dict[str, Any] = {
            "dataset": dataset.identity,
            "test_dataset": None if test is None else test.identity,
        }

    @property
    def asked_in_full(self) -> dict[str, Any]:
        """Return what identifies the fits, so that only the same ones take over checkpoints."""
        return self.asked | {
            "splits": [None if one.shares is None else str(one.shares) for one in self.requests],
            "fits": [(one.method, one.seed, one.settings) for one in self.surrogates],
            "training_samples": [len(split.training) for split in self.splits],
        }

    def finished(self) -> dict[Path, Run]:
        """Return the runs that exist already and are what is asked for; leave them out."""
        found = {}
        for place, request in enumerate(self.requests):
            if not is_surrogate(request.out):
                continue
            run = Run.open(request.out, device=self.device)
            for name in read_sums(request.out):
                check_file(request.out, name)
            if run.config["hash"] == self._config(place)["hash"]:
                found[request.out] = run
                self.places.remove(place)
                tidy(request.out.resolve())
        return found

    @contextmanager
    def common_work(self, digest: str, *, overwrite: bool) -> Iterator[WorkFolder]:
        """Give the work folder of all requests, whose checkpoints stay until all runs appeared."""
        first = resolve_target(self.requests[0].out)
        place = first.with_name(f"{first.name}-and-others-{digest}")
        if not self.places:
            with suppress(TwoscaleError):  # left by a command that was killed at its very end
                WorkFolder(place).remove()
            raise TwoscaleError(
                f"{first.parent} exists already, with all these runs: choose another path, or set "
                "overwrite"
            )
        for number in self.places:
            out = self.requests[number].out
            check_target(out, overwrite=overwrite, may_replace=is_replaceable)
        with working(place, subject=f"fitting into {place.parent}") as work:
            yield work

    def share(self) -> Run:
        """Train with the process that writes the run."""
        (request,), (surrogate,) = self.requests, self.surrogates
        data = split_pairs(self.dataset, self.splits[0], stored=True, test=self.test)
        with own_scratch(request.out, self.memory, stored=self.large) as scratch:
            fit = surrogate.wanted_fit(
                lambda: data, FitOptions(scratch=scratch), learns_trust=False
            )
            surrogate.state_ = run_fit(fit)
        return Run(request.out, surrogate, self._config(0))

    def fit(
        self,
        write: Callable[[int, FittedState], None],
        failed: Callable[[int, Exception], None] | None,
        checkpoints: Checkpoints,
        scratch: Scratch,
    ) -> None:
        """Fit all, those of the same split one after the other; `write` each that is ready."""
        order = sorted(self.places, key=lambda place: repr(self._part(place)))
        fitted: FittedRepresentations = {}
        fits = []
        for place in order:
            surrogate = self.surrogates[place]
            data = repr((self.dataset.identity, *self._part(place)))
            options = FitOptions(
                progress=self.progress,
                checkpoints=checkpoints,
                data=data,
                name=repr((data, surrogate.parts.describe(), surrogate.seed)),
                scratch=scratch,
                fitted=fitted,
            )
            trusted = self.requests[place].calibrates
            read = partial(self._data, place)
            fits.append(surrogate.wanted_fit(read, options, learns_trust=trusted))
        run_fits(
            fits,
            lambda position, state: write(order[position], state),
            failed and (lambda position, error: failed(order[position], error)),
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

    def _data(self, place: int) -> SplitData:
        """Return the pairs of all parts of a split; the latest ones are kept."""
        part, (known, data) = self._part(place), self.loaded
        if data is None or known != part:
            self.loaded = (None, None)  # frees them before others are read
            data = split_pairs(
                self.dataset,
                self.splits[place],
                stored=self.stored,
                test=self.test,
                workers=self.workers,
                progress=self.progress,
            )
            self.loaded = (part, data)
            judging = self.tests.setdefault(self._measured(place), data.test)
            self.kept[part] = replace(
                data, training=data.training.first(TRAINING_SAMPLES).loaded(), test=judging
            )
            if self.requests[place].calibrates:
                warn_of_symmetries(self.surrogates[place].parts.symmetries, data.training)
        return data

    def _config(self, place: int) -> dict[str, Any]:
        return run_config(
            self.dataset,
            self.surrogates[place],
            len(self.splits[place].training),
            shares=self.requests[place].shares,
            test=self.test,
        )

    def fitted(self, place: int, state: FittedState) -> Fitted:
        """Return what becomes a run once a fit is done."""
        request, surrogate = self.requests[place], self.surrogates[place]
        surrogate.state_ = state
        return Fitted(
            request.out,
            surrogate,
            self._config(place),
            self.splits[place],
            self.kept[self._part(place)],
            trusted=request.calibrates,
        )


def _check_shared(surrogate: Surrogate, dataset: Dataset, test: Dataset | None) -> None:
    """Raise if several processes cannot train a surrogate together, or have different data."""
    if not surrogate.parts.data_parallel:
        raise TwoscaleError(
            f"{processes.count()} processes were started, and only networks on fields are trained "
            f"by several: {surrogate.parts.predictor!r} is not. Use the method fno or the "
            "predictor encoder, or start one process, without torchrun"
        )
    processes.check_same(f"data {dataset.identity}, test data {test and test.identity}")
