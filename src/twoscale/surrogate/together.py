"""Several surrogates fitted at once, on arrays."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from twoscale.fields.pairs import SplitData
from twoscale.files import Checkpoints
from twoscale.operators.fitting import FitOptions, FittedRepresentations
from twoscale.runtime.progress import ShowProgress, reporting
from twoscale.runtime.scratch import IN_MEMORY, Scratch
from twoscale.surrogate.driver import Failed, FittedState, run_fits
from twoscale.surrogate.inputs import InputReader
from twoscale.surrogate.surrogate import Surrogate

Data = tuple[Any, ...]
"""Inputs, outputs and validation (or None) of one surrogate; parameters may follow."""
GivenData = Data | Callable[[], Data]


def fit_together(
    surrogates: Sequence[Surrogate],
    data: Iterable[GivenData],
    *,
    same: Sequence[Hashable] | None = None,
    trusted: Sequence[bool] | None = None,
    progress: ShowProgress = None,
    finished: Callable[[int], None] | None = None,
    failed: Failed | None = None,
    checkpoints: Checkpoints | None = None,
    scratch: Scratch = IN_MEMORY,
) -> None:
    """Fit several surrogates, each on its own data and as its `fit` would.

    Networks with the same hidden layers, batches and number of samples are trained as one batched
    network; any other is trained alone.

    Parameters
    ----------
    surrogates
        Surrogates to be fitted: seeds and variants of any methods.
    data
        (inputs, outputs, validation) of each surrogate, where validation is None or as for `fit`;
        parameters may follow. Or functions that return them: then only one surrogate's fields are
        in memory at a time. With validation pairs a surrogate is not calibrated; it knows the range
        of its inputs.
    same
        A name for the data of each surrogate. Neighbours with the same data share equal
        representations. By default all data differ.
    trusted
        Whether each surrogate learns the range of its inputs and, if pairs are held out for that,
        is calibrated. By default all do.
    progress
        True shows a bar; a function is called as progress(stage, done, total, remark). By default
        nothing is shown.
    finished
        Called with the place of each surrogate that is ready.
    failed
        Called with the place and the error of a surrogate that failed; the others go on. By default
        the error is raised.
    checkpoints
        Where the state is kept. A later call goes on with surrogates of the same parts, seed and
        data (by their name in `same`). By default nothing is kept.
    scratch
        As for `Surrogate.fit`.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).standard_normal((40, 8, 8))
    >>> seeds = [Surrogate("global", seed=seed, epochs=2) for seed in (0, 1)]
    >>> fit_together(seeds, [(x, x.cumsum(axis=2), None)] * 2, same=["x", "x"])
    >>> seeds[1].predict(x[:3]).shape
    (3, 8, 8)
    """
    names = [repr(one) for one in same or range(len(surrogates))]
    fitted: FittedRepresentations = {}

    def finish(place: int, state: FittedState) -> None:
        surrogates[place].state_ = state
        if finished:
            finished(place)

    with reporting(progress) as report:
        fits = [
            surrogate.wanted_fit(
                partial(_split, given, surrogate),
                FitOptions(
                    progress=report,
                    checkpoints=checkpoints,
                    data=name,
                    name=repr((name, surrogate.parts.describe(), surrogate.seed)),
                    scratch=scratch,
                    fitted=fitted,
                ),
                learns_trust=learns,
            )
            for surrogate, given, name, learns in zip(
                surrogates, data, names, trusted or [True] * len(surrogates), strict=True
            )
        ]
        run_fits(fits, finish, failed)


def _split(given: GivenData, surrogate: Surrogate) -> SplitData:
    """Return the pairs of one surrogate, with calibration pairs if some are held out for that."""
    inputs, outputs, validation, *rest = given() if callable(given) else given
    parameters = rest[0] if rest else None
    reader = InputReader(surrogate.periodic)
    return reader.split(inputs, outputs, parameters, validation, seed=surrogate.seed)
