"""The contract every representation keeps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Annotated, ClassVar, Self, TypeVar

import torch
from torch import Tensor, nn

from twoscale.domain.grid import Grid
from twoscale.domain.patches import PatchLayout
from twoscale.domain.space import Domain, Space
from twoscale.errors import TwoscaleError
from twoscale.fields.source import FieldSource, as_source
from twoscale.math.pca import SOLVERS, RankRule
from twoscale.parts import Part
from twoscale.representation.as_method import AsMethod
from twoscale.runtime.progress import Clock
from twoscale.settings import Setting, choice, pair, switch, whole

Patches = Annotated[
    tuple[int, int], pair("patches per axis, 4 or 4x2; their borders are the common seams")
]
Rule = Annotated[RankRule | float, Setting("what to keep, by variance or number", RankRule.of)]
Solver = Annotated[str, choice("PCA solver", (*SOLVERS, "hybrid"))]
CodeSize = Annotated[
    int | None,
    whole("output modes kept in all, those of largest energy; none: shares of variance decide"),
]
FewFeatures = Annotated[bool, switch("require fewer coarse nodes than training fields")]


Value = TypeVar("Value")


class Representation(Part, nn.Module, ABC):
    """A pair of maps, fitted on fields and then frozen; affine, but for `Transformed` inputs.

    `encode` takes fields (batch, channels, *shape) to codes (batch, code_size); `decode`
    takes codes to fields and is differentiable. Everything fitted is a buffer of the module,
    float32; both maps compute in the buffers' type, whatever comes in (`.double()` makes it
    float64). `space` says what the fields are made of, once it is fitted.
    """

    compresses: bool = True
    """Whether the code is shorter than the field; otherwise the code is the field itself."""
    as_method: ClassVar[AsMethod | None] = None
    """What makes it a method: it then can be named and searched; its arguments are settings."""
    stage_titles: ClassVar[Mapping[str, str]] = {}
    """Stages with a code and a PCA of their own, by name, with the word for them in tables."""

    space: Space

    def supports(self, domain: Domain) -> bool:
        """Say whether it works on fields that live there: on grids without masks by default."""
        return isinstance(domain, Grid) and domain.mask is None

    def check(self, space: Space, samples: int) -> None:
        """Raise if the representation cannot be fitted on this many fields of a space."""
        if not self.supports(space.domain):
            raise TwoscaleError(
                f"{self.name} does not work on {space.domain}: use a representation that does, "
                "such as global-pca on a grid without a mask"
            )
        if samples < 2:
            raise TwoscaleError(f"a PCA needs at least 2 training fields, got {samples}")

    def fit(
        self,
        fields: Tensor | FieldSource,
        *,
        space: Space | None = None,
        seed: int = 0,
        clock: Clock | None = None,
        name: str = "output",
    ) -> Self:
        """Fit on training fields (samples, channels, *shape), a tensor or a chunked source.

        Without a `space` the grid is an ordinary one, periodic nowhere. Time is kept on `clock` as
        `pca_<name>`; a chain uses its stages' names instead.
        """
        source = as_source(fields)
        self.space = space_of(source, space)
        self.check(self.space, source.shape[0])
        self._fit(source, seed=seed, clock=clock or Clock(), name=name)
        return self

    @abstractmethod
    def _fit(self, source: FieldSource, *, seed: int, clock: Clock, name: str) -> None:
        """Fit on training fields of `space`, which has been checked."""

    @abstractmethod
    def encode(self, fields: Tensor) -> Tensor:
        """Return the codes (batch, code_size) of `fields` (batch, channels, *shape)."""

    @abstractmethod
    def decode(self, codes: Tensor) -> Tensor:
        """Return the fields (batch, channels, *shape) of `codes` (batch, code_size)."""

    def check_values(self, fields: Tensor) -> None:
        """Raise if fields have values that cannot be encoded; most representations take any."""

    @property
    def affine(self) -> Representation:
        """Return the affine pair of maps inside: itself, unless values are transformed first."""
        return self

    @abstractmethod
    def restore(self, tensors: Mapping[str, Tensor], space: Space) -> Self:
        """Take the fitted state from `tensors`, named as in `state_dict`, for fields of a space."""

    @property
    @abstractmethod
    def block_sizes(self) -> list[int]:
        """Return the code size of each stage; they add up to `code_size`."""

    @property
    @abstractmethod
    def ranks(self) -> dict[str, list[int]]:
        """Return the retained ranks of each stage, block by block."""

    @property
    @abstractmethod
    def explained_variance(self) -> dict[str, float]:
        """Return the share of the training fields' variance each stage keeps, mean over blocks."""

    @property
    def layout(self) -> PatchLayout | None:
        """Return the patches whose borders are this representation's seams, if it has any."""
        return None

    @property
    def unit(self) -> Tensor:
        """Return each channel's unit (channels, 1, ...): the size of its deviations from the mean.

        Divide decoded fields by the unit before squaring them. Then every channel counts, whatever
        it is measured in. The unit of a single channel is a power of four, which changes no digit.
        """
        return torch.ones(self.space.channels, *self.space.ones)

    @property
    def mean_and_spread(self) -> tuple[float, float] | None:
        """Return the sizes of the training fields' mean and of what they vary by, if known."""
        return None

    @property
    def code_size(self) -> int:
        return sum(self.block_sizes)

    @property
    def code_spread(self) -> Tensor:
        """Return the standard deviations (code_size,) of the training fields' codes, or ones."""
        return torch.ones(self.code_size)

    @property
    def dtype(self) -> torch.dtype:
        """Return the type both maps compute in."""
        return next(b.dtype for b in self.buffers() if b.is_floating_point())

    def reconstruct(self, fields: Tensor) -> Tensor:
        """Return decode(encode(fields)): what the representation can express (the oracle)."""
        return self.decode(self.encode(fields))

    forward = reconstruct

    def _require_fit(self) -> None:
        if "space" not in self.__dict__:
            raise TwoscaleError("this representation is not fitted yet: call fit first")

    def _check_fields(self, fields: Tensor) -> None:
        self._require_fit()
        if fields.shape[1:] != self.space.shape:
            raise TwoscaleError(
                f"this representation was fitted on fields of shape {self.space.shape}, "
                f"these have shape {tuple(fields.shape)}"
            )

    def _check_codes(self, codes: Tensor) -> None:
        self._require_fit()
        size = self.code_size
        if codes.shape[1:] != (size,):
            raise TwoscaleError(
                f"codes of this representation have {size} entries, "
                f"these have shape {tuple(codes.shape)}"
            )


def subset(tensors: Mapping[str, Value], name: str) -> dict[str, Value]:
    """Return the tensors of the child module `name`, under their names inside it."""
    prefix = f"{name}."
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def space_of(fields: FieldSource, space: Space | None) -> Space:
    """Return the space of fields, which is an ordinary one if none is given."""
    _, channels, *sides = fields.shape
    if space is None:
        return Space(Grid(sides), channels)
    if space.shape != (channels, *sides):
        came = "x".join(map(str, (channels, *sides)))
        raise TwoscaleError(f"fields of {space} were expected, these are {came}")
    return space


def residual_map(stage: Representation) -> Callable[[Tensor], Tensor]:
    """Return the map from fields to what a fitted representation cannot express of them."""
    return lambda fields: fields - stage.reconstruct(fields)
