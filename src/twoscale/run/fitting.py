"""One run: a surrogate fitted on a dataset's training split, tested and written to a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twoscale.data import Dataset, Split, split_samples
from twoscale.files import claimed, new_folder
from twoscale.run.folder import Fitted, Illustrate, Run, run_config, write_run
from twoscale.run.pairs import reads_on_each_pass, split_pairs
from twoscale.runtime.progress import Progress
from twoscale.surrogate import Surrogate
from twoscale.surrogate.artifact import is_replaceable
from twoscale.surrogate.fitting import kept_checkpoints


@dataclass(frozen=True)
class Request:
    """A run that is wanted: its folder, method, seed and settings.

    `training_samples` is the number of training samples to use, by default all of the split's.
    """

    out: Path
    method: str
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    training_samples: int | None = None

    def surrogate(self, dataset: Dataset, device: str) -> Surrogate:
        """Return the surrogate of the request, to be fitted."""
        return Surrogate(
            self.method, seed=self.seed, device=device, problem=dataset.problem, **self.settings
        )

    def split(self, dataset: Dataset) -> Split:
        """Return the training, validation and test samples of the request."""
        return split_samples(dataset.samples, seed=self.seed, training=self.training_samples)


def fit_run(
    dataset: Dataset,
    out: str | Path,
    *,
    method: str,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    training_samples: int | None = None,
    device: str = "auto",
    memory: int | None = None,
    overwrite: bool = False,
    resume: bool = True,
    progress: Progress | None = None,
    illustrate: Illustrate | None = None,
) -> Run:
    """Fit a method on a dataset's training split and write the run folder.

    `memory` is the memory to stay within, in bytes, by default the machine's free memory. Fields
    that would take more than half of it are read from disk on every pass. `illustrate` is called
    with the unfinished folder and what was fitted, to add a page before the run appears. A fit that
    was stopped goes on from its last checkpoint, unless `resume` is false.
    """
    request = Request(Path(out), method, seed, settings or {}, training_samples)
    surrogate, split = request.surrogate(dataset, device), request.split(dataset)
    stored = reads_on_each_pass(dataset, memory, [surrogate])
    with claimed(request.out, overwrite=overwrite, may_replace=is_replaceable) as output:
        asked = fits_asked(dataset, [surrogate], [split])
        kept = kept_checkpoints(output.work, asked, device=surrogate.device, resume=resume)
        training, validation, test = split_pairs(dataset, split, stored=stored, progress=progress)
        surrogate.fit(*training, validation=validation, progress=progress, checkpoint=kept)
        new_folder(output.content)
        config = run_config(dataset, surrogate, len(split.training))
        fitted = Fitted(request.out, surrogate, config, split, training, test)
        write_run(output.content, fitted, progress, illustrate)
        output.commit()
    return Run(request.out, surrogate, config)


def fits_asked(
    dataset: Dataset, surrogates: list[Surrogate], splits: list[Split]
) -> dict[str, Any]:
    """Return what identifies some fits, so that only the same ones take over checkpoints."""
    return {
        "dataset": dataset.identity,
        "fits": [(one.method, one.seed, one.settings) for one in surrogates],
        "training_samples": [len(split.training) for split in splits],
    }
