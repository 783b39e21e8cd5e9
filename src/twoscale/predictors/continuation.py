"""The symbol of a filter at modes that training fields lack, from its values at known modes.

A symbol is a number s for each mode, or several. It is continued by a Gaussian process for
s |k|^power, where |k| is the length of the mode's wave vector. The process has a constant mean and
one of a few kernels. The modes next to the unknown ones are left out to choose among them: this is
the extrapolation that is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from scipy import ndimage
from torch import Tensor

from twoscale.runtime.threads import one_thread

POWERS = (0, 1, 2, 4)
LENGTHS = (0.2, 0.6, 2.0)  # of the kernels, in units of the largest known |k|
WAVE_LENGTHS = (0.6, 2.0, 6.0)  # of those that oscillate
_FREQUENCIES = 20  # tried within the resolution of the known modes
_LEFT_OUT = 0.25  # share of the known modes that judges the rules
_WORTH = 0.25  # of the squared error of zeros: more, and zeros are safer
_MOST_MODES = 300  # that a process learns from, and that judge it
_FEWEST = 4  # known modes that can be continued
_TILE = 2**15  # modes that are continued together
_NUGGET = 1e-9  # added to the kernel's variance of 1, so that it can be inverted


class Values(NamedTuple):
    """A symbol at some modes."""

    waves: Tensor  # (modes, 2): wave vectors k
    symbol: Tensor  # (modes, numbers), real
    variance: Tensor  # (modes, numbers): squared standard errors

    def at(self, places: Tensor) -> Values:
        return Values(*(one[places] for one in self))

    @property
    def radius(self) -> Tensor:
        return self.waves.norm(dim=1)

    def few(self) -> Values:
        """Return the symbol at few of the modes, evenly spread over the order of their |k|."""
        order = self.radius.argsort()
        count = min(_MOST_MODES, len(order))
        return self.at(order[torch.linspace(0, len(order) - 1, count).round().long()])


@dataclass(frozen=True)
class Rule:
    """How a symbol s continues: the kernel of a Gaussian process for s |k|^power.

    The kernel is exp(-d^2 / (2 length^2)) cos(frequency d). With `radial` d is the difference of
    |k|, else the distance of k.
    """

    power: int
    radial: bool
    length: float
    frequency: float = 0.0

    def __str__(self) -> str:
        product = f"s |k|^{self.power}" if self.power else "s"
        place = "|k|" if self.radial else "k"
        wave = f", cos({self.frequency:.3g} |k|)" if self.frequency else ""
        return f"{product} as a function of {place}, length {self.length:.3g}{wave}"

    def continued(self, known: Values, waves: Tensor) -> Tensor:
        """Return the symbol (modes, numbers) at wave vectors (modes, 2)."""
        known = known.few()
        weights = known.radius[:, None] ** self.power
        targets = known.symbol * weights
        noise = (known.variance * weights.square()).sum(1) / _total_variance(targets)
        matrix = self._kernel(known.waves, known.waves) + torch.diag(noise + _NUGGET)
        ones = torch.ones_like(targets[:, :1])
        solved = torch.linalg.solve(matrix, torch.cat([targets, ones], 1))
        mean = solved[:, :-1].sum(0) / solved[:, -1].sum()
        rest = solved[:, :-1] - mean * solved[:, -1:]
        parts = [self._kernel(part, known.waves) @ rest for part in waves.split(_TILE)]
        process = mean + torch.cat(parts)
        radius = waves.norm(dim=1, keepdim=True)
        return torch.where(radius > 0, process / radius**self.power, 0.0 if self.power else process)

    def _kernel(self, one: Tensor, other: Tensor) -> Tensor:
        if self.radial:
            one, other = (waves.norm(dim=1, keepdim=True) for waves in (one, other))
        distance = torch.cdist(one, other)
        kernel = torch.exp(-0.5 * (distance / self.length).square())
        return kernel * torch.cos(self.frequency * distance) if self.frequency else kernel


def continue_symbol(
    waves: Tensor, symbol: Tensor, variance: Tensor, known: Tensor
) -> tuple[Tensor, str]:
    """Return a symbol with its unknown modes filled in, and the rule that was used, in words.

    waves: wave vectors (rows, columns, 2) of all modes.
    symbol, variance: numbers of the symbol (rows, columns, numbers) and their squared standard
    errors; what they are at unknown modes does not matter.
    known: whether a mode is known (rows, columns).
    """
    filled = torch.where(known[..., None], symbol, 0.0)
    if bool(known.all()):
        return filled, "none"
    if int(known.sum()) < _FEWEST:
        return filled, "zero"
    values = Values(waves[known], symbol[known], variance[known])
    with one_thread():  # the matrices are small
        rule = _choose(values, _left_out(known, values.radius))
        if rule is None:
            return filled, "zero"
        filled[~known] = rule.continued(values, waves[~known])
    return filled, str(rule)


def _choose(known: Values, left_out: Tensor) -> Rule | None:
    """Return the rule that continues the symbol best to modes that are left out.

    Return none if no rule is clearly better there than zeros.
    """
    kept, judged = known.at(~left_out).few(), known.at(left_out).few()
    best, least = None, _WORTH * float(judged.symbol.square().sum())
    rounding = 2 * float(judged.variance.sum())  # smaller errors do not differ
    for rule in _rules(kept):
        error = float((rule.continued(kept, judged.waves) - judged.symbol).square().sum())
        if max(error, rounding) < least:
            best, least = rule, max(error, rounding)
    return best


def _rules(known: Values) -> Iterator[Rule]:
    """Yield the rules that are tried, smooth ones first."""
    extent = float(known.radius.max()) or 1.0
    for power in POWERS:
        for length in LENGTHS:
            yield from (Rule(power, radial, length * extent) for radial in (True, False))
    for power in POWERS:
        frequency = _frequency(known, power)
        for length in WAVE_LENGTHS:
            yield Rule(power, True, length * extent, frequency)


def _frequency(known: Values, power: int) -> float:
    """Return the frequency w of the sinusoid a + b cos(w |k|) + c sin(w |k|) nearest to s |k|^p."""
    known = known.few()
    radius = known.radius
    targets = known.symbol * radius[:, None] ** power
    step = torch.pi / (_FREQUENCIES * max(1.0, float(radius.max() - radius.min())))
    tried = torch.arange(step, torch.pi, step, dtype=radius.dtype, device=radius.device)
    angles = tried[:, None] * radius
    waves = torch.stack([torch.ones_like(angles), angles.cos(), angles.sin()], 2)
    explained = (torch.linalg.qr(waves).Q.mT @ (targets - targets.mean(0))).square().sum((1, 2))
    return float(tried[explained.argmax()])


def _left_out(known: Tensor, radius: Tensor) -> Tensor:
    """Return which of the known modes (modes,) judge the rules: the quarter next to unknown ones.

    Of equally near ones those of larger |k|.
    """
    distances = ndimage.distance_transform_edt(known.cpu().numpy())
    nearness = torch.from_numpy(distances).to(known.device)[known]
    order = (nearness - radius / (2 * radius.max())).argsort()
    left_out = torch.zeros_like(radius, dtype=torch.bool)
    left_out[order[: round(_LEFT_OUT * len(order))]] = True
    return left_out


def _total_variance(targets: Tensor) -> Tensor:
    """Return the variance of targets (modes, numbers), summed over the numbers; 1 if it is 0."""
    variance = (targets - targets.mean(0)).square().mean(0).sum()
    return torch.where(variance > 0, variance, 1.0)
