"""What a search may try on a grid: candidates and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.fields.grid import Space
from twoscale.fields.symmetries import symmetry_group
from twoscale.methods.recipes import resolve
from twoscale.search.kinds import KINDS

INPUT_VARIANCES = (0.9, 0.95, 0.97, 0.99, 0.999, 0.9999)
_FIRST_VARIANCE = 0.95

CODES = ((40, 0.99), (40, 0.999), (80, 0.9999), (160, 0.99999))
"""Of two scales: coarse modes and variance of the residual, from short codes to long ones."""
_CHAINS = ("two-scale", "conforming", "global")
SIZED = ("conforming", "global")
"""Chains that are given the number of their modes."""

_PROBE = 16_000  # fields that an encoder sees in its first, short training
_TIMED = 3  # epochs at least, to tell how long one takes and how far it may lead
_TIMED_ALONE = 2  # where no other predictor is tried, to tell how long one takes
_SMALL_ENCODER = {"width": 24, "batch_size": 16}

_PATCH_SIDE = 32  # nodes: a PCA of larger patches by covariance takes long
_COARSE_SIDE = 32
_PATCHES = 4
_MOST_FEATURES = 2048  # of a block whose covariance is decomposed
_MOST_NODES_GLOBAL = 64 * 64


@dataclass(frozen=True)
class Candidate:
    """A surrogate that could be fitted; `SearchSpace.settings` says with which settings."""

    chain: str = "two-scale"
    input_variance: float = _FIRST_VARIANCE
    code: int = 0  # how long a code, from short to long
    size: int | None = None  # modes of a chain that is given their number
    predictor: str = "affine"
    symmetries: str = "none"
    samples: int | None = None  # of a kernel, or all
    epochs: int | None = None  # of an encoder
    tuned: tuple[tuple[str, Any], ...] = ()  # what an earlier fit of the predictor found out

    @property
    def input_part(self) -> tuple[Any, ...]:
        """Return what decides the input's representation."""
        if self.epochs is not None:
            return ("field",)
        return self.chain == "global", self.input_variance, self.symmetries

    @property
    def output_part(self) -> tuple[Any, ...]:
        """Return what decides the output's representation."""
        return self.chain, self.size or self.code, self.symmetries

    @property
    def kind(self) -> tuple[Any, ...]:
        """Return what it has in common with candidates that differ in numbers only."""
        return self.chain, self.predictor, self.symmetries

    @property
    def label(self) -> str:
        """Return the candidate in a few words."""
        limit = self.samples or self.epochs
        few = "" if limit is None else f"({limit})"
        turned = "" if self.symmetries == "none" else " sym"
        return f"{self.chain} {self.predictor}{few}{turned}"


@dataclass(frozen=True)
class SearchSpace:
    """All candidates for fields of two spaces: what the grid, the user and the problem allow.

    Settings that are `given` are the same in all candidates, but `symmetries`: they are declared,
    and tried where they may help.
    """

    inputs: Space
    outputs: Space
    samples: int
    declared: str = "none"
    given: Mapping[str, Any] = field(default_factory=dict)
    accelerated: bool = False  # on a GPU
    stored: bool = False  # fields are read on each pass: an encoder would hold them in memory

    @property
    def shape(self) -> tuple[int, int]:
        """Return the height and width of the outputs."""
        return self.outputs.grid.shape

    @property
    def values(self) -> int:
        """Return how many numbers an output field is."""
        return prod(self.outputs.shape)

    @cached_property
    def chains(self) -> list[str]:
        """Return the chains that have all given settings, the usual one first."""
        wanted = set(self.given) - {"symmetries"}
        names = {chain: resolve(chain, self._own("predictor")).keys() for chain in _CHAINS}
        known = [chain for chain in _CHAINS if wanted <= names[chain]]
        if not known:
            if any(all(name not in names[one] for one in _CHAINS) for name in wanted):
                resolve(_CHAINS[0], dict(self.given))  # raises, and tells what there is
            raise TwoscaleError(
                f"no method that is searched has all of {', '.join(sorted(wanted))}: "
                "name a --method, or give fewer settings"
            )
        large = self.values > _MOST_NODES_GLOBAL
        return [chain for chain in known if chain != "global" or not large or len(known) == 1]

    @property
    def first(self) -> Candidate:
        """Return the cheapest candidate worth fitting."""
        predictor = str(self.given.get("predictor", "affine"))
        if predictor not in KINDS:
            raise TwoscaleError(
                f"a search knows the predictors {', '.join(KINDS)}, got '{predictor}': "
                "name a --method to use another"
            )
        first = Candidate(chain=self.chains[0], predictor=predictor)
        return self.encoded(first) if predictor == "encoder" else first

    def encoded(self, candidate: Candidate) -> Candidate:
        """Return a candidate with an encoder, trained as shortly as tells how fast that is.

        Images under symmetries are as fast as the fields themselves.
        """
        return replace(
            candidate,
            predictor="encoder",
            symmetries=self.declared,
            samples=None,
            tuned=(),
            epochs=self.encoder["epochs"],
        )

    @cached_property
    def encoder(self) -> dict[str, Any]:
        """Return the settings of an encoder's first, short training: on a CPU it is a small one."""
        timed = _TIMED_ALONE if "predictor" in self.given else _TIMED
        chosen: dict[str, Any] = {"epochs": timed, **_SMALL_ENCODER}
        if self.accelerated:
            chosen = {"epochs": max(timed, round(_PROBE / self.samples))}
        own = self._own("epochs", "width", "batch_size")
        return resolve("two-scale", {"predictor": "encoder"} | chosen | own)

    @property
    def code_given(self) -> bool:
        """Say whether the length of the code is given, or what decides it in a sized chain."""
        return not self.given.keys().isdisjoint({"code_size", "variance", "output_variance"})

    def takes(self, predictor: str, chain: str) -> bool:
        """Say whether a predictor has all settings that are given."""
        names = resolve(chain, {"predictor": predictor}).keys()
        return set(self.given) - {"symmetries"} <= names

    def _own(self, *names: str) -> dict[str, Any]:
        return {name: self.given[name] for name in names if name in self.given}

    @property
    def images(self) -> int:
        """Return how many training fields the declared symmetries make of one."""
        return len(symmetry_group(self.declared, self.inputs.grid, self.outputs.grid))

    @cached_property
    def patches(self) -> tuple[int, int]:
        """Return the number of patches per axis: four, or more on a fine grid."""
        if "patches" in self.given:
            return resolve("two-scale", {"patches": self.given["patches"]})["patches"]
        height, width = (_patch_count(side) for side in self.shape)
        return height, width

    @cached_property
    def coarse_factor(self) -> int:
        """Return the least coarsening to a grid whose PCA is cheap; one that divides, if it can."""
        height, width = self.shape
        least = -(-max(self.shape) // _COARSE_SIDE)
        near = range(least, min(least + least // 2, max(self.shape) // 4) + 1)
        return next((c for c in near if not (height % c or width % c)), least)

    @property
    def coarse_nodes(self) -> int:
        rows, columns = (-(-side // self.coarse_factor) for side in self.shape)
        return self.outputs.channels * rows * columns

    @property
    def patch_nodes(self) -> int:
        rows, columns = (
            -(-side // count) for side, count in zip(self.shape, self.patches, strict=True)
        )
        return self.outputs.channels * rows * columns

    def settings(self, candidate: Candidate) -> dict[str, Any]:
        """Return the settings of a candidate's method that are not left at their defaults."""
        chosen: dict[str, Any] = {
            "patches": self.patches,
            "input_variance": candidate.input_variance,
            "predictor": candidate.predictor,
            "objective": "field",
            "symmetries": candidate.symmetries,
            "solver": self.solver(candidate.chain),
            **KINDS[candidate.predictor].settings,
            **self._code(candidate),
            **dict(candidate.tuned),
        }
        if candidate.samples is not None:
            chosen["kernel_samples"] = candidate.samples
        if candidate.epochs is not None:
            size = {name: self.encoder[name] for name in _SMALL_ENCODER}
            chosen |= {"epochs": candidate.epochs, **size}
            del chosen["input_variance"]  # all of the input is seen
        given = {name: value for name, value in self.given.items() if name != "symmetries"}
        if candidate.symmetries == "none":
            given.pop("average_symmetries", None)  # there is nothing to average over
        return chosen | given

    def identity(self, candidate: Candidate) -> str:
        """Return what two candidates that are fitted alike have in common."""
        settings = resolve(candidate.chain, self.settings(candidate))
        return f"{candidate.chain} {sorted(settings.items(), key=lambda item: item[0])}"

    def _code(self, candidate: Candidate) -> dict[str, Any]:
        if candidate.chain in SIZED:
            own = self.code_given or candidate.size is None
            return {} if own else {"code_size": candidate.size}
        components, variance = CODES[candidate.code]
        return {
            "coarse_factor": self.coarse_factor,
            "coarse_components": components,
            "residual_variance": variance,
            "few_features": False,
        }

    def solver(self, chain: str) -> str:
        """Return the solver: by covariance codes turn with their fields, if it is affordable."""
        if "solver" in self.given:
            return str(self.given["solver"])
        features = [self.patch_nodes, self.coarse_nodes]
        if chain == "global":
            features = [self.values]
        return "covariance" if max(features) <= _MOST_FEATURES else "randomized"


def _patch_count(side: int) -> int:
    """Return the patches along an axis: near four, a divisor if it can, of sides of 4 to 32."""
    least = max(1, min(_PATCHES, side // 4), -(-side // _PATCH_SIDE))
    near = [k for k in range(least, min(least + least // 4, side // 4) + 1) if side % k == 0]
    return near[0] if near else least
