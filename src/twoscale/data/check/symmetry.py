"""Findings on symmetries: what means and variances of inputs and outputs say for or against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from twoscale.data.check.finding import Finding
from twoscale.data.check.statistics import Channel
from twoscale.data.store import Dataset
from twoscale.errors import TwoscaleError
from twoscale.fields.symmetries import Group, symmetry_group

_ENOUGH = 50  # samples that say something
_SURPRISING = 16.0  # squared difference beside its expectation from chance alone
_VISIBLE = 0.02  # difference beside the deviations of the fields: smaller ones do not matter
_GAUSSIAN, _HEAVY = 2.0, 20.0  # variance of a squared deviation beside its squared mean
_WORDS = {
    "square": "mirroring and quarter turns",
    "mirrors": "mirroring",
    "mirror-rows": "mirroring of the rows",
    "shifts": "shifts along the periodic axes",
}


def symmetry_findings(dataset: Dataset, channels: Sequence[Channel]) -> Iterator[Finding]:
    """Yield whether inputs and outputs look alike after turns, mirrorings and shifts.

    A symmetry of the equation and of the distribution of inputs leaves mean and variance of inputs
    and outputs unchanged. The reverse is not true: the data can speak against a symmetry, and
    never prove one.
    """
    fields = [one for one in channels if one.side != "parameters" and one.count > 1]
    if dataset.samples < _ENOUGH or {one.side for one in fields} != {"input", "output"}:
        return
    declared = dataset.problem.symmetric_under if dataset.problem is not None else "none"
    against = {name: _against(name, dataset, fields) for name in _WORDS}
    if declared in _WORDS and (evidence := against[declared]):
        yield Finding(
            "warning",
            "symmetries",
            f"the equation is symmetric under {_WORDS[declared]}, but the mean or the variance of "
            f"{evidence} is not",
            "fit with symmetries=none, or look for a mistake in the data",
        )
        return
    for names in (("square", "mirrors", "mirror-rows"), ("shifts",)):
        known = [name for name in names if against[name] is not None]
        holding = next((name for name in known if not against[name]), None)
        if holding is not None:
            yield _possible(holding, declared)
        elif known:
            last = known[-1]
            yield Finding(
                "ok",
                "symmetries",
                f"mean or variance of {against[last]} changes under {_WORDS[last]}: no such "
                "symmetry",
            )


def _possible(name: str, declared: str) -> Finding:
    message = f"means and variances of inputs and outputs stay the same under {_WORDS[name]}"
    if declared in (name, "square"):
        return Finding("ok", "symmetries", f"{message}, as the equation says")
    return Finding(
        "note",
        "symmetries",
        message,
        f"if your equation is symmetric too, fit with symmetries={name}: every sample then "
        "counts as several",
    )


def _against(name: str, dataset: Dataset, fields: Sequence[Channel]) -> str | None:
    """Return a channel that speaks against a symmetry, "" if none does, None if it does not apply.

    For a grid that is not square, the symmetries of a square are those of a rectangle.
    """
    grids = (dataset.input_space.grid, dataset.output_space.grid)
    try:
        group = symmetry_group(name, *grids)
    except TwoscaleError:  # no axis is periodic
        return None
    if name == "square" and not any(one.swaps_axes for one in group):
        return None
    return next((one.label for one in fields if _differs(one, group)), "")


def _differs(channel: Channel, group: Group) -> bool:
    """Say whether mean or variance of a channel change more than by chance."""
    mean, variance = (torch.from_numpy(one) for one in (channel.mean, channel.variance))
    spread = float(variance.mean())
    chance = variance / channel.count
    chance_of_variance = _tails(channel) * variance**2 / channel.count
    return any(
        _changes(mean, image(mean), chance + image(chance), spread)
        or _changes(
            variance, image(variance), chance_of_variance + image(chance_of_variance), spread**2
        )
        for image in group[1:]
    )


def _tails(channel: Channel) -> float:
    """Return the variance of squared deviations beside their squared mean: 2 for a Gaussian."""
    squares = np.square(np.concatenate(channel.values) - channel.mean.mean())
    size = float(squares.mean())
    return min(max(_GAUSSIAN, float(squares.var()) / size**2), _HEAVY) if size else _GAUSSIAN


def _changes(one: Tensor, other: Tensor, chance: Tensor, size: float) -> bool:
    """Say whether two fields differ by more than chance, and visibly beside a squared size."""
    difference = float((one - other).square().mean())
    return difference > _SURPRISING * float(chance.mean()) and difference > _VISIBLE**2 * size
