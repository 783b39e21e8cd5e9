"""A pointwise function of positive inputs, before any other representation of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Self

import torch
from torch import Tensor

from twoscale.domain.patches import PatchLayout
from twoscale.domain.space import Domain, Space
from twoscale.errors import TwoscaleError, unknown_name
from twoscale.fields.source import FieldSource, MappedSource
from twoscale.representation.base import Representation, subset
from twoscale.runtime.progress import Clock
from twoscale.settings import Setting, explained


@dataclass(frozen=True)
class Transform:
    """A function of positive numbers and its inverse; NaN for numbers that are not positive."""

    title: str
    apply: Callable[[Tensor], Tensor]
    undo: Callable[[Tensor], Tensor]

    def check(self, name: str, least: float) -> None:
        """Raise if values of an input, the least of which is given, cannot be transformed."""
        if self.apply is not _same and not least > 0:
            raise TwoscaleError(
                f"the input channel '{name}' has the value {least:.4g}, and its {self.title} is "
                "taken: give positive values, or fit without the transform"
            )


def _same(values: Tensor) -> Tensor:
    return values


def _positive(values: Tensor) -> Tensor:
    return values.masked_fill(values <= 0, torch.nan)


TRANSFORMS = {
    "none": Transform("the values themselves", _same, _same),
    "log": Transform("logarithm", lambda values: _positive(values).log(), torch.exp),
    "reciprocal": Transform(
        "reciprocal", lambda values: _positive(values).reciprocal(), torch.reciprocal
    ),
}
"""Functions of input values by name."""

NAMES = tuple(TRANSFORMS)


_WIDE = 10  # ratio of largest and smallest value from which on a logarithm may help
_SEEN = 1000  # samples that are looked at for that


def read_transform(value: str | Sequence[str]) -> str | tuple[str, ...]:
    """Return the name of a transform, or names of one per channel, also from text such as log,none.

    >>> read_transform("log,none")
    ('log', 'none')
    """
    parts = value.split(",") if isinstance(value, str) else list(value)
    names = tuple(str(part).strip() for part in parts)
    for name in names:
        if name not in TRANSFORMS:
            raise unknown_name("transform", name, TRANSFORMS)
    return names[0] if len(names) == 1 else names


Transforms = Annotated[
    str | Sequence[str],
    Setting(
        "function of positive input channels: log, reciprocal or none; or one each: log,none",
        explained(
            read_transform, f"one of {', '.join(NAMES)}, or one for each channel such as log,none"
        ),
    ),
]


class Transformed(Representation):
    """A representation of fields after a logarithm or a reciprocal of their values.

    Coefficients such as conductivities are positive and spread over orders of magnitude. The
    solution often depends on their logarithm nearly linearly. Everything outside sees the values
    themselves: predictions, residuals, symmetries.

    Parameters
    ----------
    transform
        "log", "reciprocal" or "none", for every channel whose training values are all positive,
        parameters included. Or one for each channel, such as ("log", "none"); scalar parameters
        come last and may be left out.
    fields
        The representation of the transformed fields, such as `PatchPCA(0.99)`.

    Attributes
    ----------
    kinds
        The transform of each channel, once fitted.
    space, code_size
        The space of the fields, and the length of their codes.

    Examples
    --------
    >>> from twoscale.representation import GlobalPCA
    >>> inputs = Transformed("log", GlobalPCA(5)).fit(torch.randn(20, 1, 8, 8).exp())
    >>> inputs.kinds, inputs.code_size
    (('log',), 5)
    """

    name = "transformed"
    title = "a function of the values, and a representation of that"

    applied: Tensor  # (channels,): places in `NAMES`

    def __init__(self, transform: Transforms, fields: Representation) -> None:
        super().__init__()
        self.transform = read_transform(transform)
        self.fields = fields
        self.compresses = fields.compresses
        self.register_buffer("applied", None)
        self.kinds: tuple[str, ...] = ()

    def supports(self, domain: Domain) -> bool:
        return self.fields.supports(domain)

    def check(self, space: Space, samples: int) -> None:
        self.check_count(space)
        self.fields.check(space, samples)

    def check_count(self, space: Space) -> None:
        """Raise unless there is a transform for each channel, or for each channel and parameter."""
        lengths = {space.channels, space.channels + space.parameters}
        if not isinstance(self.transform, str) and len(self.transform) not in lengths:
            raise TwoscaleError(
                f"one transform per channel was expected, for {space.contents}: got "
                f"{len(self.transform)} ({', '.join(self.transform)})"
            )

    def _fit(self, source: FieldSource, *, seed: int, clock: Clock, name: str) -> None:
        least = torch.stack([_least(chunk) for chunk in source.chunks()]).amin(0).tolist()
        self._take(self._kinds_for(least), next(source.chunks()).device)
        self._refuse_values(least)
        seen = MappedSource(source, self._transformed)
        self.fields.fit(seen, space=self.space, seed=seed, clock=clock, name=name)

    def _kinds_for(self, least: Sequence[float]) -> tuple[str, ...]:
        """Return the transform of each channel, whose least values are known."""
        if not isinstance(self.transform, str):
            return self.transform[: len(least)]
        kinds = tuple(self.transform if value > 0 else "none" for value in least)
        if not self.space.parameters:  # of which the transform may be, too
            self._require_positive(kinds, self.space.channel_names, least)
        return kinds

    def _require_positive(
        self, kinds: Sequence[str], names: Sequence[str], least: Sequence[float]
    ) -> None:
        """Raise if a transform is wanted, and no channel or parameter has positive values only."""
        if self.transform == "none" or set(kinds) != {"none"}:
            return
        seen = zip(names, least, strict=True)
        values = ", ".join(f"'{name}' from {value:.4g} on" for name, value in seen)
        raise TwoscaleError(
            f"the {TRANSFORMS[str(self.transform)].title} is taken of positive values only, and "
            f"there are none: {values}; leave the transform out"
        )

    def _take(self, kinds: tuple[str, ...], device: torch.device) -> None:
        self.kinds = kinds
        places = [NAMES.index(kind) for kind in kinds]
        self.applied = torch.tensor(places, dtype=torch.uint8, device=device)

    def check_values(self, fields: Tensor) -> None:
        """Raise if a value of fields (batch, channels, *shape) cannot be transformed."""
        self._refuse_values(_least(fields.detach()).tolist())

    def _refuse_values(self, least: Sequence[float]) -> None:
        for channel, kind, value in zip(self.space.channel_names, self.kinds, least, strict=True):
            TRANSFORMS[kind].check(channel, value)

    def _transformed(self, fields: Tensor) -> Tensor:
        return by_channel(fields, [TRANSFORMS[kind].apply for kind in self.kinds])

    def encode(self, fields: Tensor) -> Tensor:
        self._check_fields(fields)
        if not (
            torch.compiler.is_compiling()
            or (fields.is_cuda and torch.cuda.is_current_stream_capturing())
        ):
            self.check_values(fields)
        return self.fields.encode(self._transformed(fields.to(self.dtype)))

    def decode(self, codes: Tensor) -> Tensor:
        self._check_codes(codes)
        undo = [TRANSFORMS[kind].undo for kind in self.kinds]
        return by_channel(self.fields.decode(codes), undo)

    def restore(self, tensors: Mapping[str, Tensor], space: Space) -> Self:
        applied = tensors.get("applied")
        if (
            applied is None
            or applied.shape != (space.channels,)
            or int(applied.max()) >= len(NAMES)
        ):
            raise TwoscaleError(
                "the transforms of the channels are missing: the artifact is damaged"
            )
        self.space = space
        self._take(tuple(NAMES[place] for place in applied.tolist()), applied.device)
        self.fields.restore(subset(tensors, "fields"), space)
        return self

    def parameter_kinds(self, parameters: Tensor, space: Space) -> tuple[str, ...]:
        """Return the transforms of parameters (samples, P) of a space, once those of fields are.

        Of parameters alone there are none of fields.
        """
        if isinstance(self.transform, str):
            least = parameters.amin(0).tolist()
            kinds = tuple(self.transform if value > 0 else "none" for value in least)
            self._require_positive((*self.kinds, *kinds), space.parameter_names, least)
            return kinds
        missing = space.channels + space.parameters - len(self.transform)
        return (*self.transform[space.channels :], *["none"] * missing)

    @property
    def affine(self) -> Representation:
        return self.fields

    @property
    def layout(self) -> PatchLayout | None:
        return self.fields.layout

    @property
    def mean_and_spread(self) -> tuple[float, float] | None:
        return self.fields.mean_and_spread

    @property
    def block_sizes(self) -> list[int]:
        return self.fields.block_sizes

    @property
    def code_spread(self) -> Tensor:
        return self.fields.code_spread

    @property
    def ranks(self) -> dict[str, list[int]]:
        return self.fields.ranks

    @property
    def explained_variance(self) -> dict[str, float]:
        return self.fields.explained_variance


def worthwhile(fields: FieldSource) -> tuple[str, ...]:
    """Return the transforms that may help: of positive values that differ by a factor of ten.

    Only the first thousand samples are looked at.
    """
    low, high, seen = torch.tensor(torch.inf), torch.tensor(0.0), 0
    for chunk in fields.chunks():
        low = torch.minimum(_least(chunk), low.to(chunk))
        high = torch.maximum(-_least(-chunk), high.to(chunk))
        seen += len(chunk)
        if seen >= _SEEN:
            break
    return ("log",) if bool(((low > 0) & (high > _WIDE * low)).any()) else ()


def by_channel(values: Tensor, functions: Sequence[Callable[[Tensor], Tensor]]) -> Tensor:
    """Return values (batch, channels, ...), a function of its own applied to each channel."""
    if len(set(functions)) == 1:
        return functions[0](values)
    parts = zip(functions, values.split(1, dim=1), strict=True)
    return torch.cat([function(part) for function, part in parts], 1)


def _least(fields: Tensor) -> Tensor:
    """Return the least value of each channel."""
    if not len(fields):
        return fields.new_full(fields.shape[1:2], torch.inf)
    return fields.flatten(2).amin((0, 2))
