"""The pairs of fields that a run is fitted and tested on: in memory, or read on every pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from twoscale.data import Dataset, Shares, Split, split_samples
from twoscale.data.description import SIDES
from twoscale.data.split import TESTED_ELSEWHERE
from twoscale.data.store import Indices
from twoscale.errors import TwoscaleError
from twoscale.fields.pairs import Pairs, SplitData
from twoscale.fields.samples import Source
from twoscale.fields.source import FieldSource
from twoscale.fields.workers import Workers
from twoscale.files import WorkFolder, resolve_target, working
from twoscale.runtime import processes
from twoscale.runtime.memory import available_memory
from twoscale.runtime.progress import Progress
from twoscale.runtime.scratch import Scratch


def split_dataset(
    dataset: Dataset,
    test: Dataset | None = None,
    *,
    seed: int,
    training: int | None = None,
    shares: Shares | None = None,
    chooses: bool = True,
    calibrates: bool = False,
) -> Split:
    """Return the split of a dataset; with a dataset `test` all its samples are the test samples.

    Other options are those of `split_samples`.
    """
    if test is not None:
        _check_test_set(dataset, test)
        shares = shares or TESTED_ELSEWHERE
        if shares.test:
            raise TwoscaleError(
                f"the test samples come from {test.path}: the split {shares} must have none, such "
                f"as {TESTED_ELSEWHERE}"
            )
    split = split_samples(
        dataset.samples,
        seed=seed,
        training=training,
        shares=shares,
        chooses=chooses,
        calibrates=calibrates,
    )
    return split if test is None else replace(split, test=np.arange(test.samples))


def _check_test_set(dataset: Dataset, test: Dataset) -> None:
    """Raise if a test set has other channels or grids than the dataset that a fit is on."""
    for name in ("input", "output"):
        one, other = (getattr(each, f"{name}_space") for each in (dataset, test))
        same = one.shape == other.shape and one.parameters == other.parameters
        if not same or one.grid.periodic != other.grid.periodic:
            raise TwoscaleError(
                f"{dataset.path} has {name}s of {one.contents} and {test.path} of "
                f"{other.contents}: training and test data must agree"
            )
        if one.names and other.names and one.names != other.names:
            raise TwoscaleError(
                f"{dataset.path} has the {name} channels {', '.join(one.names)} and {test.path} "
                f"{', '.join(other.names)}: training and test data must agree"
            )


def reads_on_each_pass(
    dataset: Dataset,
    memory: int | None,
    *,
    test: Dataset | None = None,
) -> bool:
    """Say whether fields are read on every pass: they would take more than half of the memory.

    `memory` is in bytes, by default the machine's free memory.
    """
    needed = dataset.nbytes + (test.nbytes if test is not None else 0)
    return needed > (memory or available_memory()) // 2


@contextmanager
def scratch_in(
    work: WorkFolder,
    memory: int | None,
    *,
    stored: bool,
    fields: Dataset | None = None,
) -> Iterator[Scratch]:
    """Give what makes the large tensors of a fit; its files are in a work folder, until the end.

    They are all in memory if there is no limit to that and fields are not `stored` on disk. With
    stored `fields` that a network is trained on it raises if there is no room for a copy of them.
    """
    limited = memory is not None or stored
    scratch = Scratch(work.scratch, memory or available_memory()) if limited else Scratch()
    if fields is not None and stored:
        scratch.require([fields.nbytes])
    try:
        yield scratch
    finally:
        scratch.close()


@contextmanager
def own_scratch(out: Path, memory: int | None, *, stored: bool) -> Iterator[Scratch]:
    """Give what makes the large tensors of a fit, in a process that does not write the result.

    It is limited as in `scratch_in`. The files are in a work folder of this process beside the
    result. Nothing of that folder stays, not even after an error.
    """
    if memory is None and not stored:
        yield Scratch()
        return
    place = resolve_target(out)
    place = place.with_name(f"{place.name}.process-{processes.rank()}")
    with working(place) as work, scratch_in(work, memory, stored=stored) as scratch:
        yield scratch


def split_pairs(
    dataset: Dataset,
    split: Split,
    *,
    stored: bool,
    test: Dataset | None = None,
    workers: Workers | None = None,
    progress: Progress | None = None,
) -> SplitData:
    """Return the pairs of all parts: in memory, or `stored` on disk, where `workers` read them.

    Test samples are those of the dataset `test`, if there is one. A part without samples is
    represented by the one before: validation by training, test by validation.
    """
    wanted = {name: part for name, part in vars(split).items() if len(part)}
    others = {name: wanted.pop(name) for name in ("test",) if test is not None}
    loading = partial(_stored_pairs, workers=workers) if stored else partial(_loaded, progress)
    found = dict(zip(wanted, loading(dataset, list(wanted.values())), strict=True))
    if test is not None:
        (found["test"],) = loading(test, list(others.values()))
    validation = found.get("validation", found["training"])
    judging = found.get("test", validation)
    return SplitData(found["training"], validation, found.get("calibration"), judging)


def _stored_pairs(
    dataset: Dataset, parts: Sequence[np.ndarray], workers: Workers | None
) -> list[Pairs]:
    """Return the pairs of some parts of one dataset, which are read on each pass."""
    if workers is not None and not dataset.has_checksums:
        raise TwoscaleError(
            f"workers read datasets, and {dataset.path} is none: make one with 'twoscale import'"
        )
    options = {} if workers is None else {"workers": workers}
    sides = [[dataset.fields(side, part, **options) for part in parts] for side in SIDES]
    return _all_pairs(dataset, sides, parts)


def _loaded(
    progress: Progress | None, dataset: Dataset, parts: Sequence[np.ndarray]
) -> list[Pairs]:
    """Return the pairs of some parts of one dataset, in memory."""
    sides = []
    for done, side in enumerate(SIDES):
        if progress:
            progress("loading", done, 2, f"{side} fields")
        sides.append(dataset.load_fields(side, parts))
    if progress:
        progress("loading", 2, 2, "")
    return _all_pairs(dataset, sides, parts)


def loaded_pairs(dataset: Dataset, samples: Sequence[int], workers: Workers | None = None) -> Pairs:
    """Return the pairs of some samples: in memory, or on disk, where `workers` read them."""
    if workers is not None:
        return _stored_pairs(dataset, [np.asarray(samples)], workers)[0]
    sides = [dataset.load_fields(side, [samples]) for side in SIDES]
    return _all_pairs(dataset, sides, [samples])[0]


def _all_pairs(
    dataset: Dataset, sides: Sequence[Sequence[FieldSource]], parts: Sequence[Indices]
) -> list[Pairs]:
    """Return the pairs of parts of a dataset, whose fields of both sides are given."""
    ranks, spaces = dataset.ranks, (dataset.input_space, dataset.output_space)
    return [
        Pairs(
            Source(inputs, spaces[0], ranks[0], parameters=parameters),
            Source(outputs, spaces[1], ranks[1]),
        )
        for inputs, outputs, parameters in zip(*sides, dataset.parameters(parts), strict=True)
    ]
