"""One run: a surrogate fitted on a dataset's training split, tested and written to a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twoscale.data import Dataset, Shares, Split
from twoscale.errors import TwoscaleError
from twoscale.fields.workers import Workers
from twoscale.files import claimed, new_folder
from twoscale.run.folder import Fitted, Illustrate, Run, run_config, write_run
from twoscale.run.pairs import (
    own_scratch,
    reads_on_each_pass,
    scratch_in,
    split_dataset,
    split_pairs,
)
from twoscale.runtime import processes
from twoscale.runtime.progress import Progress
from twoscale.surrogate import Surrogate
from twoscale.surrogate.artifact import is_replaceable
from twoscale.surrogate.fitting import kept_checkpoints
from twoscale.surrogate.options import shared_device


@dataclass(frozen=True)
class Request:
    """A run that is wanted: its folder, method, seed and settings.

    `training_samples` is the number of training samples to use, by default all of the split's.
    `shares` are those of training, validation and test. `calibrates` says whether half of the
    validation samples are set apart to calibrate bands.
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

    def split(self, dataset: Dataset, test: Dataset | None = None) -> Split:
        """Return the training, validation and test samples of the request.

        Test samples are those of the dataset `test`, if there is one.
        """
        return split_dataset(
            dataset,
            test,
            seed=self.seed,
            training=self.training_samples,
            shares=self.shares,
            chooses=self.surrogate(dataset, "cpu").parts.uses_validation,
            calibrates=self.calibrates,
        )


def fit_run(
    dataset: Dataset,
    out: str | Path,
    *,
    method: str,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    training_samples: int | None = None,
    shares: Shares | None = None,
    test: Dataset | None = None,
    device: str = "auto",
    memory: int | None = None,
    workers: Workers | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
) -> Run:
    """Fit a method on a dataset's training split and write the run folder.

    `shares` are those of training, validation and test samples, 0.8/0.1/0.1 by default. With a
    dataset `test` all of its samples are the test samples, and the shares are 0.9/0.1/0.
    `memory` is the memory to stay within, in bytes, by default the machine's free memory. Fields
    that would take more than half of it are read from disk on every pass. What a fit makes of them
    is then kept in scratch files where it is large. With `workers` these read the fields, fit the
    representations, encode and predict; results are the same. `illustrate` is called with the
    unfinished folder and what was fitted, to add a page before the run appears. A fit that was
    stopped goes on from its last checkpoint, unless `resume` is false. Of several processes the
    first one writes the folder; the others get a run whose folder may not be there yet.
    """
    request = Request(Path(out), method, seed, settings or {}, training_samples, shares)
    device = shared_device(workers, device)
    surrogate, split = request.surrogate(dataset, device), request.split(dataset, test)
    held = memory and memory * processes.count()  # each process holds its part of the fields
    large = reads_on_each_pass(dataset, held, test=test)
    stored = large or workers is not None
    if processes.count() > 1:
        _check_shared(surrogate, dataset, test)
        stored = True  # no process holds all fields
    if not processes.is_first():
        pairs = split_pairs(dataset, split, stored=stored, test=test)
        with own_scratch(request.out, memory, stored=large) as scratch:
            surrogate.fit(
                *pairs.training, validation=pairs.validation, calibration=False, scratch=scratch
            )
        return Run(request.out, surrogate, run_config(dataset, surrogate, len(split.training)))
    spooled = dataset if surrogate.parts.trains_on_fields else None
    with (
        claimed(request.out, overwrite=overwrite, may_replace=is_replaceable) as output,
        scratch_in(output.work, memory, stored=large, fields=spooled) as scratch,
    ):
        asked = fits_asked(dataset, [surrogate], [split], shares=[shares], test=test)
        kept = kept_checkpoints(output.work, asked, device=surrogate.device, resume=resume)
        pairs = split_pairs(
            dataset, split, stored=stored, test=test, workers=workers, progress=progress
        )
        surrogate.fit(
            *pairs.training,
            validation=pairs.validation,
            calibration=pairs.calibration,
            progress=progress,
            checkpoint=kept,
            scratch=scratch,
        )
        new_folder(output.content)
        config = run_config(dataset, surrogate, len(split.training), shares=shares, test=test)
        fitted = Fitted(request.out, surrogate, config, split, pairs)
        write_run(output.content, fitted, progress, illustrate)
        output.commit()
    return Run(request.out, surrogate, config)


def _check_shared(surrogate: Surrogate, dataset: Dataset, test: Dataset | None) -> None:
    """Raise if several processes cannot train a surrogate together, or have different data."""
    if not surrogate.parts.data_parallel:
        raise TwoscaleError(
            f"{processes.count()} processes were started, and only networks on fields are trained "
            f"by several: {surrogate.parts.predictor!r} is not. Use the method fno or the "
            "predictor encoder, or start one process, without torchrun"
        )
    processes.check_same(f"data {dataset.identity}, test data {test and test.identity}")


def fits_asked(
    dataset: Dataset,
    surrogates: list[Surrogate],
    splits: list[Split],
    *,
    shares: Sequence[Shares | None],
    test: Dataset | None,
) -> dict[str, Any]:
    """Return what identifies some fits, so that only the same ones take over checkpoints."""
    return {
        "splits": [None if one is None else str(one) for one in shares],
        "test_dataset": None if test is None else test.identity,
        "dataset": dataset.identity,
        "fits": [(one.method, one.seed, one.settings) for one in surrogates],
        "training_samples": [len(split.training) for split in splits],
    }
