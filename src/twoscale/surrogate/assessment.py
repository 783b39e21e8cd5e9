"""Predictions with how far each of them can be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleWarning
from twoscale.fields.source import Batch, slices
from twoscale.runtime.progress import Progress
from twoscale.trust import NODES, Certificate, Trust
from twoscale.trust.input_range import KINDS, Familiarity

_WORDS = {"roughness": "roughness", "code": "coarse shape", "values": "range of values"}
_FAR = 1000  # above this a distance is not told exactly
_CHANCE = 0.05  # share of usual inputs that may be just outside
_CLEARLY = 1.5  # distance from which on an input is clearly outside
_SAID = 3  # samples that a warning speaks of


@dataclass(frozen=True)
class Flags:
    """Which inputs are unlike the training inputs, and in what way.

    Distances are relative to those of fresh inputs of the training's kind: 97.5 % of these are
    below 1.

    Attributes
    ----------
    outside
        Of each sample, whether one of its distances is above 1.
    roughness, code, values
        Of each sample and channel, the distance of the differences between nodes, of the PCA code
        and of what it misses, and of the least and largest value.
    missed
        Of each sample and channel, the part of the coarse input that its code misses.
    channels
        Names of the channels.
    """

    outside: np.ndarray
    roughness: np.ndarray
    code: np.ndarray
    values: np.ndarray
    missed: np.ndarray
    channels: Sequence[str]

    @classmethod
    def of(cls, parts: Sequence[Familiarity], channels: Sequence[str]) -> Flags:
        """Return the flags of the samples of several parts."""
        named = [part.by_name for part in parts]
        found = {
            name: torch.cat([one[name] for one in named]).cpu().numpy()
            for name in (*KINDS, "missed")
        }
        outside = torch.cat([part.outside for part in parts]).cpu().numpy()
        return cls(outside, **found, channels=tuple(channels))

    @classmethod
    def joined(cls, parts: Sequence[Flags]) -> Flags:
        """Return the flags of the samples of several others."""
        names = [one.name for one in fields(cls) if one.name != "channels"]
        found = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        return cls(**found, channels=parts[0].channels)

    def as_dict(self) -> dict[str, Any]:
        """Return the arrays by name, and the channels' names."""
        return dict(vars(self))

    def sentence(self, sample: int) -> str:
        """Return in words which distance of a sample is largest."""
        distances = {name: getattr(self, name)[sample] for name in _WORDS}
        kind = max(distances, key=lambda name: float(distances[name].max()))
        channel = int(distances[kind].argmax())
        where = f" in channel '{self.channels[channel]}'" if len(self.channels) > 1 else ""
        far = float(distances[kind][channel])
        amount = f"{far:.3g}" if far < _FAR else f"above {_FAR}"
        return f"sample {sample}: {_WORDS[kind]} {amount} (limit 1){where}"

    @property
    def summary(self) -> str:
        """Return in words how many samples are outside, and why the farthest of them are."""
        found = np.flatnonzero(self.outside)
        found = found[np.argsort(-self._farthest[found], kind="stable")]
        reasons = "; ".join(self.sentence(int(sample)) for sample in found[:_SAID])
        more = f"; and {len(found) - _SAID} more" if len(found) > _SAID else ""
        verb = "is" if len(found) == 1 else "are"
        count = f"{len(found)} of {len(self.outside)} inputs {verb} unlike the training inputs"
        if not len(found):
            return count
        return f"{count}, so errors may be larger than known: {reasons}{more}"

    def reasons(self) -> list[dict[str, Any]]:
        """Return for each sample outside its number, the reason in words, and all its numbers."""
        return [
            {"sample": int(sample), "reason": self.sentence(int(sample))}
            | {name: getattr(self, name)[sample] for name in (*KINDS, "missed")}
            for sample in np.flatnonzero(self.outside)
        ]

    @property
    def _farthest(self) -> np.ndarray:
        """Return the largest distance of each sample."""
        return np.stack([getattr(self, name).max(axis=1) for name in _WORDS]).max(axis=0)

    def warn(self) -> None:
        """Warn of samples outside: if one is clearly so, or more than chance explains.

        The warning points at the line that called the caller.
        """
        if not len(self.outside):
            return
        if self.outside.mean() > _CHANCE or bool((self._farthest > _CLEARLY).any()):
            warnings.warn(self.summary, TwoscaleWarning, stacklevel=3)


@dataclass(frozen=True)
class Assessment:
    """Predicted fields, and how far each of them can be trusted.

    Attributes
    ----------
    fields
        The predictions, as `predict` returns them.
    radius
        Of each sample, a bound of ||prediction - truth|| / ||prediction||. It holds for a share
        `level` of fresh inputs of the training's kind. Of several channels it bounds the root mean
        square of theirs.
    lower, upper
        A band around the fields. For the same share of inputs, the truth is inside at 95 % of the
        nodes (`nodes`) or more.
    flags
        Which inputs are unlike the training inputs, and why. For those no radius or band holds.
    level, nodes
        The share of inputs, and the share of nodes.
    certificate
        Proven bounds of the errors, if the equation is known and elliptic; else None.

    Examples
    --------
    >>> import numpy as np
    >>> from twoscale import Surrogate
    >>> x = np.random.default_rng(0).standard_normal((400, 8, 8)).cumsum(axis=1)
    >>> surrogate = Surrogate(predictor="affine").fit(x, x.cumsum(axis=2))
    >>> found = surrogate.assess(x[:3], level=0.9)
    >>> found.radius.shape, found.outside.tolist()
    ((3,), [False, False, False])
    """

    fields: Any
    radius: np.ndarray
    lower: Any
    upper: Any
    flags: Flags
    level: float
    nodes: float = NODES
    certificate: Certificate | None = None

    @property
    def outside(self) -> np.ndarray:
        """Return, of each sample, whether its input is unlike the training inputs."""
        return self.flags.outside

    def handed_back(self, result: Callable[[Tensor], Any]) -> Assessment:
        """Return the same with fields as the user's kind of array."""
        made = (result(one) for one in (self.fields, self.lower, self.upper))
        return replace(self, **dict(zip(("fields", "lower", "upper"), made, strict=True)))


@torch.no_grad()
def assessed(
    surrogate: Any,
    trust: Trust,
    inputs: Batch,
    *,
    level: float,
    length: int,
    progress: Progress | None = None,
) -> Assessment:
    """Return the predictions of checked inputs, with how far they can be trusted.

    `length` samples are assessed at a time.
    """
    band = trust.calibrated()
    difficulty = trust.difficulty(surrogate.operator_, surrogate.problem)
    parts: list[tuple[Tensor, ...]] = []
    seen: list[Familiarity] = []
    for part in slices(len(inputs), length):
        given = inputs[part].to(surrogate.device)
        predicted = surrogate.predict_batch(given)
        scores = difficulty(given, predicted)
        width = band.half_width(scores, predicted, level)
        parts.append((predicted, predicted - width, predicted + width, band.radius(scores, level)))
        seen.append(trust.known(given))
        if progress:
            progress("fields", part.stop, len(inputs), "")
    predicted, lower, upper, radius = (
        torch.cat(one).to(inputs.fields.device) for one in zip(*parts, strict=True)
    )
    flags = Flags.of(seen, surrogate.input_space_.labels)
    return Assessment(predicted, radius.cpu().numpy(), lower, upper, flags, level)
