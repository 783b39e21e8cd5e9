"""What a search may try: candidates, all that fields of two spaces allow, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any

from twoscale.domain.space import Space
from twoscale.domain.symmetries import symmetry_group
from twoscale.errors import TwoscaleError
from twoscale.methods.recipes import METHODS, defaults, resolve
from twoscale.methods.roles import PROPOSED
from twoscale.networks.field_encoder import coarse_cut
from twoscale.predictors import MLP, Affine, SpectralFilter, get_predictor, predictors
from twoscale.predictors.base import PredictorCost
from twoscale.predictors.field_predictor import FieldPredictor
from twoscale.representation.as_method import CodeGrowth

FIRST_PREDICTOR = Affine.name
"""The predictor a search starts with."""

FIRST_CHAIN = PROPOSED
"""The method a search starts with, if it has all given settings."""

INPUT_VARIANCES = (0.9, 0.95, 0.97, 0.99, 0.999, 0.9999)
VARIANCES = ("output_variance", "middle_variance", "residual_variance", "variance")
"""Settings that decide by a share of variance how long a code is."""

_FIRST_VARIANCE = 0.95

_PATCH_SIDE = 32  # nodes: a PCA of larger patches by covariance takes long
_PATCHES = 4
_MOST_FEATURES = 2048  # of a block whose covariance is decomposed
_MOST_IMAGE_VALUES = 2**29  # of all images of all outputs, which are in memory: 2 GiB
_MOST_ON_GPU = 2**31  # the same on a GPU

_DECLARED = "symmetries"  # the setting that is declared, not imposed
_LENGTHS = {"code_size", "variance", "output_variance"}  # settings that decide the code's length


def chains() -> dict[str, CodeGrowth]:
    """Return how the codes of the methods grow that are searched, the first one first."""
    known = {name: method.growth for name, method in METHODS.items() if method.growth is not None}
    return {FIRST_CHAIN: known.pop(FIRST_CHAIN), **known}


def growth_of(chain: str) -> CodeGrowth:
    """Return how the code of a method grows that is searched."""
    growth = METHODS[chain].growth
    assert growth is not None
    return growth


def searched_predictors() -> dict[str, PredictorCost]:
    """Return what the predictors cost that are searched: those that say it themselves."""
    return {name: cost_of(name) for name, one in predictors().items() if "cost" in vars(one)}


def cost_of(predictor: str) -> PredictorCost:
    """Return what a predictor costs; one that does not say it itself is judged by its traits."""
    kind = get_predictor(predictor)
    if "cost" in vars(kind) and kind.cost is not None:
        return kind.cost
    if kind.reads_fields and kind.trains_epochs:
        return FieldPredictor.cost
    if kind.reads_fields:
        return PredictorCost(SpectralFilter.cost.work)
    return PredictorCost((MLP if kind.trains_epochs else Affine).cost.work)


@dataclass(frozen=True)
class Candidate:
    """A surrogate that could be fitted; `SearchSpace.settings` returns its settings."""

    chain: str = FIRST_CHAIN
    input_variance: float = _FIRST_VARIANCE
    code: int = 0  # place in `CODES`, from short to long
    size: int | None = None  # modes of a sized chain
    predictor: str = FIRST_PREDICTOR
    symmetries: str = "none"
    transform: str = "none"  # of the input
    samples: int | None = None  # the predictor learns from at most; None: from all
    epochs: int | None = None  # of a predictor that is probed, or before a deadline
    members: int = 1  # networks whose predictions are averaged
    tuned: tuple[tuple[str, Any], ...] = ()  # settings that an earlier fit chose

    @property
    def growth(self) -> CodeGrowth:
        """Return how the code of its method grows."""
        return growth_of(self.chain)

    @property
    def cost(self) -> PredictorCost:
        """Return what its predictor costs."""
        return cost_of(self.predictor)

    @property
    def reads_fields(self) -> bool:
        """Say whether its predictor reads fields; otherwise it reads codes."""
        return get_predictor(self.predictor).reads_fields

    @property
    def probed(self) -> bool:
        """Say whether a short training comes before a long one."""
        return self.cost.probe is not None

    @property
    def input_part(self) -> tuple[Any, ...]:
        """Return what decides the input's representation."""
        if self.reads_fields:
            return "field", self.transform
        return self.growth.one_block, self.input_variance, self.symmetries, self.transform

    @property
    def output_part(self) -> tuple[Any, ...]:
        """Return what decides the output's representation."""
        return self.chain, self.size or self.code, self.symmetries

    @property
    def family(self) -> tuple[Any, ...]:
        """Return what it has in common with candidates that differ in numbers only."""
        return self.chain, self.predictor, self.symmetries, self.transform

    @property
    def label(self) -> str:
        """Return the candidate in a few words."""
        limit = self.samples or self.epochs
        few = "" if limit is None else f"({limit})"
        few += "" if self.members == 1 else f" x{self.members}"
        turned = "" if self.symmetries == "none" else " sym"
        transformed = "" if self.transform == "none" else f" {self.transform}"
        return f"{self.chain} {self.predictor}{few}{turned}{transformed}"


@dataclass(frozen=True)
class SearchSpace:
    """All candidates for fields of two spaces: what the grids, the user and the problem allow.

    `given` settings are the same in all candidates that have them. Symmetries are not: they are
    `declared`, and tried where they may help, unless the data speak against them.
    """

    inputs: Space
    outputs: Space
    samples: int
    declared: str = "none"
    given: Mapping[str, Any] = field(default_factory=dict)
    accelerated: bool = False  # on a GPU
    stored: bool = False  # fields are read on each pass, and nothing holds a copy of them
    transforms: tuple[str, ...] = ()  # of the input, that may help
    refused: str = ""  # why declared symmetries are not used: the data speak against them

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Return the height and width of the outputs."""
        return self.outputs.grid.plane.shape

    @cached_property
    def values(self) -> int:
        """Return how many numbers an output field is."""
        return prod(self.outputs.shape)

    @cached_property
    def input_values(self) -> int:
        """Return how many numbers an input field is, parameters left out."""
        return self.inputs.channels * self.inputs.grid.nodes

    @cached_property
    def chains(self) -> list[str]:
        """Return the chains with a code that have all given settings, the first one first."""
        wanted = self.given.keys() - {_DECLARED}
        names = {chain: self._known(chain) for chain, kind in chains().items() if not kind.whole}
        known = [chain for chain in names if wanted <= names[chain]]
        if not known:
            self._refuse(wanted, names)
        values = max(self.values, self.input_values)
        small = [chain for chain in known if values <= (growth_of(chain).most_values or values)]
        return small or known

    def _known(self, chain: str) -> set[str]:
        """Return the settings of a chain with the predictors that may be tried on its codes."""
        if "predictor" in self.given:
            return set(defaults(chain, self._own("predictor")))
        return set().union(
            *(
                self._settings_of(chain, name)
                for name in searched_predictors()
                if not get_predictor(name).reads_fields
            )
        )

    def _refuse(self, wanted: set[str], names: Mapping[str, set[str]]) -> None:
        for name in sorted(wanted - set().union(*names.values())):
            resolve(FIRST_CHAIN, self._own("predictor", name))  # raises, and says what there is
        raise TwoscaleError(
            f"no method that is searched has all of {', '.join(sorted(wanted))}: "
            "name a method, or give fewer settings"
        )

    @property
    def first(self) -> Candidate:
        """Return the cheapest candidate worth fitting."""
        predictor = str(self.given.get("predictor", FIRST_PREDICTOR))
        first = Candidate(chain=self.chains[0], predictor=predictor)
        return self.reading_fields(first, predictor) if first.reads_fields else first

    def reading_fields(self, candidate: Candidate, predictor: str) -> Candidate:
        """Return a candidate with a predictor that reads fields.

        It learns whole fields, unless a given setting is that of a code. A network is trained
        shortly, with the declared symmetries at once: images cost as much time as the fields
        themselves.
        """
        reading = replace(
            candidate,
            predictor=predictor,
            symmetries="none",
            samples=None,
            tuned=(),
            epochs=self.probe_settings(predictor).get("epochs"),
        )
        if chain := self._whole_chain(predictor):
            reading = replace(reading, chain=chain, code=0, size=None)
        return self.with_images(reading) if reading.probed else reading

    def with_images(self, candidate: Candidate) -> Candidate:
        """Return a candidate with the declared symmetries, if it has room for all images."""
        most = _MOST_ON_GPU if self.accelerated else _MOST_IMAGE_VALUES
        few = self.images * self.samples * self.values <= most
        if candidate.growth.whole and not few:
            return candidate
        return replace(candidate, symmetries=self.symmetries)

    def _whole_chain(self, predictor: str) -> str | None:
        """Return the chain of whole fields, if it has all given settings."""
        wanted = self.given.keys() - {_DECLARED}
        whole = [chain for chain, kind in chains().items() if kind.whole]
        known = (chain for chain in whole if wanted <= self._settings_of(chain, predictor))
        return next(known, None)

    def _settings_of(self, chain: str, predictor: str) -> set[str]:
        return set(defaults(chain, {"predictor": predictor}))

    def probe_settings(self, predictor: str) -> dict[str, Any]:
        """Return the settings of a short training: of a small network on a CPU."""
        probe = cost_of(predictor).probe
        if probe is None:
            return {}
        timed = probe.epochs_alone if "predictor" in self.given else probe.epochs
        cut = {"cut": coarse_cut(min(self.shape))} if probe.larger_cells else {}
        chosen: dict[str, Any] = {"epochs": timed, **probe.small, **cut}
        if self.accelerated:
            chosen = {"epochs": max(timed, round(probe.fields / self.samples)), **probe.large}
        names = ("epochs", *probe.small, *probe.large, *cut)
        settings = resolve(FIRST_CHAIN, {"predictor": predictor} | chosen | self._own(*names))
        return {name: settings[name] for name in names}

    @property
    def code_given(self) -> bool:
        """Say whether a given setting decides the length of the code."""
        return not self.given.keys().isdisjoint(_LENGTHS)

    def takes(self, predictor: str, chain: str) -> bool:
        """Say whether a predictor may be tried, as to the settings and fields that are given.

        Predictors of codes ignore settings they do not have; a closed form has no epochs. One that
        reads fields must have all, needs the fields at hand, and may refuse their spaces.
        """
        if not get_predictor(predictor).reads_fields:
            return True
        known = self._settings_of(chain, predictor)
        if self.stored or not self.given.keys() - {_DECLARED} <= known:
            return False
        try:
            get_predictor(predictor)().check(self.inputs, self.outputs)
        except TwoscaleError:
            return False
        return True

    def _own(self, *names: str) -> dict[str, Any]:
        return {name: self.given[name] for name in names if name in self.given}

    @cached_property
    def images(self) -> int:
        """Return how many training fields the symmetries make of one."""
        return len(symmetry_group(self.symmetries, self.inputs.grid, self.outputs.grid))

    @property
    def symmetries(self) -> str:
        """Return the declared symmetries, if the data do not speak against them."""
        return "none" if self.refused else self.declared

    @cached_property
    def patches(self) -> tuple[int, int]:
        """Return the number of patches per axis: four, or more on a fine grid."""
        if "patches" in self.given:
            return resolve(FIRST_CHAIN, {"patches": self.given["patches"]})["patches"]
        rows, columns = zip(self.shape, self.inputs.grid.shape, strict=True)
        return _patch_count(*rows), _patch_count(*columns)

    @cached_property
    def patch_nodes(self) -> int:
        """Return the numbers of the largest patch of an output."""
        return self.outputs.channels * self._patch(self.shape)

    @cached_property
    def input_patch_nodes(self) -> int:
        """Return the numbers of the largest patch of an input, parameters left out."""
        return self.inputs.channels * self._patch(self.inputs.grid.plane.shape)

    def _patch(self, shape: tuple[int, int]) -> int:
        sides = zip(shape, self.patches, strict=True)
        return prod(-(-side // count) if side > 1 else 1 for side, count in sides)

    def settings(self, candidate: Candidate) -> dict[str, Any]:
        """Return the settings of a candidate's method that are not left at their defaults."""
        kind = candidate.cost
        chosen: dict[str, Any] = {
            "patches": self.patches,
            "input_transform": candidate.transform,
            "input_variance": candidate.input_variance,
            "predictor": candidate.predictor,
            "objective": "field",
            "symmetries": candidate.symmetries,
            "solver": self.solver(candidate.chain),
            **kind.settings,
            **self._code(candidate),
            **dict(candidate.tuned),
        }
        if candidate.samples is not None:
            chosen[kind.samples_setting] = candidate.samples
        chosen |= self.probe_settings(candidate.predictor)
        if candidate.epochs is not None:
            chosen["epochs"] = candidate.epochs
        if candidate.members > 1:
            chosen["members"] = candidate.members
        if candidate.probed and candidate.symmetries != "none":
            chosen["average_symmetries"] = True  # a smaller error in every case that was measured
        given = {name: value for name, value in self.given.items() if name != _DECLARED}
        if candidate.symmetries == "none":
            given.pop("average_symmetries", None)  # there is nothing to average over
        known = self._settings_of(candidate.chain, candidate.predictor)
        return {name: value for name, value in (chosen | given).items() if name in known}

    def averages_members(self, candidate: Candidate) -> bool:
        """Say whether a candidate may have several networks whose predictions are averaged."""
        known = self._settings_of(candidate.chain, candidate.predictor)
        return "members" in known and "members" not in self.given

    def identity(self, candidate: Candidate) -> str:
        """Return a text that two candidates share if they are fitted alike."""
        settings = resolve(candidate.chain, self.settings(candidate))
        return f"{candidate.chain} {sorted(settings.items(), key=lambda item: item[0])}"

    def _code(self, candidate: Candidate) -> dict[str, Any]:
        kind = candidate.growth
        settings = kind.settings(candidate.code, self.outputs, self.patches)
        own = self.code_given or not self.given.keys().isdisjoint(VARIANCES)
        if kind.sized and candidate.size is not None and not own:
            settings["code_size"] = candidate.size
        return settings

    def solver(self, chain: str) -> str:
        """Return the solver: by covariance codes turn with their fields, if it is affordable."""
        if "solver" in self.given:
            return str(self.given["solver"])
        growth = growth_of(chain)
        largest = growth.patch_factor * self.patch_nodes
        features = [largest, self.input_patch_nodes, growth.first_values(self.outputs)]
        if growth.one_block:
            features = [self.values, self.input_values]
        return "covariance" if max(features) <= _MOST_FEATURES else "randomized"


def _patch_count(side: int, input_side: int) -> int:
    """Return the patches along an axis: near four, a divisor if it can, of sides of 4 to 32.

    An odd number of nodes has an odd number of patches, which can be mirrored. The input is cut
    alike, into patches of at least two nodes. An axis of one node is not cut.
    """
    least = max(1, min(_PATCHES, side // 4), -(-side // _PATCH_SIDE))
    near = [k for k in range(least, min(least + least // 4, side // 4) + 1) if side % k == 0]
    odd = least + 1 if side % 2 and least % 2 == 0 and side > 4 * least else least
    count = near[0] if near else odd
    return min(count, input_side // 2) if input_side > 1 else count
