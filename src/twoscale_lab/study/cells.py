"""A cell: a case with a seed and everything resolved, known by the hash of its content."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from twoscale.data.split import largest_training
from twoscale.errors import TwoscaleError
from twoscale.finetuning.finetune import OBJECTIVES, FinetunePlan
from twoscale.methods.recipes import assemble, changed_settings, every_setting, get_method, resolve
from twoscale.methods.roles import SEARCH
from twoscale.methods.settings import parse_assignments, setting_text
from twoscale.operators.spec import SurrogateSpec
from twoscale.problems import Problem, get_problem, make_problem
from twoscale.runtime.progress import parse_duration
from twoscale.search import DEFAULT_BUDGET

SAMPLES = 10_000
"""The paper's size of a dataset, training and test fields together. Case names do not have it."""


_NAME = re.compile(
    r"(?P<problem>[a-z-]+)-(?P<resolution>\d+) (?P<method>[a-z-]+)(\+(?P<tuned>\w+))?"
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is fitted, and on which data. Settings that equal a default are dropped.

    `samples` is the size of the whole dataset, and `training` the number of training fields, None
    for all of the training split. A case with an `objective` is the case without it, fine-tuned.
    """

    problem: str
    resolution: int
    samples: int = SAMPLES
    training: int | None = None
    method: str
    objective: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        get_problem(self.problem)
        if self.objective is not None and self.objective not in OBJECTIVES:
            raise TwoscaleError(
                f"no objective is called '{self.objective}': known are {', '.join(OBJECTIVES)}"
            )
        object.__setattr__(self, "settings", self._changed())
        if self.training == largest_training(self.samples):
            object.__setattr__(self, "training", None)

    def _changed(self) -> dict[str, Any]:
        """Return the settings that differ from the method's defaults."""
        if self.method != SEARCH:
            return changed_settings(self.method, self.settings)
        usual = resolve_search({})
        found = resolve_search(self.settings).items()
        return {name: value for name, value in found if value != usual[name]}

    @property
    def id(self) -> str:
        """Return the name: `poisson-128 two-scale+A3 coarse_components=20 training=1250`."""
        tuned = "" if self.objective is None else f"+{self.objective}"
        words = [f"{self.problem}-{self.resolution}", self.method + tuned]
        words += [f"{name}={setting_text(value)}" for name, value in self.settings.items()]
        if self.training is not None:
            words.append(f"training={self.training}")
        return " ".join(words)

    @property
    def base(self) -> Case:
        """Return the case that is fine-tuned; a case without an objective is its own."""
        return replace(self, objective=None)

    @property
    def resolved(self) -> dict[str, Any]:
        """Return all settings of the method, defaults included."""
        return self.resolve()

    def resolve(self, under: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return all settings of the method; those `under` the case's own replace defaults."""
        given = {**(under or {}), **self.settings}
        return resolve_search(given) if self.method == SEARCH else resolve(self.method, given)

    @property
    def title(self) -> str:
        """Return the method's title."""
        return SEARCH.capitalize() if self.method == SEARCH else get_method(self.method).title


def resolve_search(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a search: its budget in seconds.

    >>> resolve_search({"budget": "2min"})
    {'budget': 120.0}
    """
    if unknown := sorted(given.keys() - {"budget"}):
        raise TwoscaleError(f"a search has the setting budget only, got '{unknown[0]}'")
    return {"budget": parse_duration(given.get("budget", DEFAULT_BUDGET))}


def parse_case(name: str, *, samples: int = SAMPLES) -> Case:
    """Return the case of a name; the size of the whole dataset is not part of it.

    >>> parse_case("poisson-128 two-scale+A3 coarse_components=10 residual_variance=0.99").id
    'poisson-128 two-scale+A3 residual_variance=0.99'
    """
    head, *rest = re.split(r" (?=\w+=)", name)
    found = _NAME.fullmatch(head)
    if found is None:
        raise TwoscaleError(
            "a case is named like 'poisson-128 two-scale+A3 coarse_components=20 training=1250', "
            f"got '{name}'"
        )
    settings = parse_assignments(rest)
    training = settings.pop("training", None)
    if training is not None and not training.isdecimal():
        raise TwoscaleError(f"training must be a number of fields, got '{training}' in '{name}'")
    return Case(
        problem=found["problem"],
        resolution=int(found["resolution"]),
        method=found["method"],
        objective=found["tuned"],
        settings=settings,
        training=None if training is None else int(training),
        samples=samples,
    )


FORMAT = 1
"""Part of every cell's hash. Raise it when the same settings come to mean something else."""

DATA_SEED = 0

_WITHOUT_EFFECT = {"input_transform": "none", "cycles": 1, "members": 1}
"""Settings that are no part of a hash at these values: cells that are older than they are stay."""

_TUNING_PASSES = ("epochs", "warm_up", "ramp")  # of a fine-tuning, counted over the training set


class Data(NamedTuple):
    """Which dataset a cell is fitted or tested on.

    `settings` are parameters of the problem that are not its defaults.
    """

    problem: str
    resolution: int
    samples: int
    seed: int = DATA_SEED
    settings: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        given = [f"{name}={value}" for name, value in self.settings]
        return "-".join([*map(str, self[:4]), *given])

    @property
    def sizes(self) -> dict[str, Any]:
        """Return resolution, samples and seed by name."""
        return {"resolution": self.resolution, "samples": self.samples, "seed": self.seed}

    def make_problem(self) -> Problem:
        return make_problem(self.problem, dict(self.settings))

    def as_dict(self) -> dict[str, Any]:
        """Return what decides the fields, for a hash."""
        content = self._asdict()
        given = dict(content.pop("settings"))
        return content | ({"settings": given} if given else {})


@dataclass(frozen=True)
class Cell:
    """A case, a seed, all settings of the fit, and those of the fine-tuning if there is one.

    `problem` are parameters of the problem. A cell with `tests` is fitted on all samples of its
    dataset, and tested on other datasets: the first is of the same distribution, a second one of
    another.
    """

    case: Case
    seed: int
    settings: Mapping[str, Any]
    finetuning: Mapping[str, Any] | None = None
    problem: Mapping[str, Any] = field(default_factory=dict)
    tests: tuple[Data, ...] = ()

    @property
    def data(self) -> Data:
        case = self.case
        given = tuple(sorted(self.problem.items()))
        return Data(case.problem, case.resolution, case.samples, settings=given)

    @property
    def training(self) -> int:
        """Return the number of training fields."""
        return _training(self.case)

    @cached_property
    def key(self) -> str:
        """Return the hash of everything that determines the result."""
        content = {
            "format": FORMAT,
            "data": self.data.as_dict(),
            "training": self.training,
            "method": self.case.method,
            "settings": {
                name: value
                for name, value in self.settings.items()
                if name not in _WITHOUT_EFFECT or value != _WITHOUT_EFFECT[name]
            },
            "seed": self.seed,
            "finetuning": self.finetuning and dict(self.finetuning),
        }
        if self.tests:
            content["tests"] = [data.as_dict() for data in self.tests]
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def base(self) -> Cell | None:
        """Return the cell that this one is fine-tuned from, if it is."""
        if self.finetuning is None:
            return None
        return replace(self, case=self.case.base, finetuning=None)

    @cached_property
    def parts(self) -> SurrogateSpec:
        """Return the parts that are fitted; symmetries of the problem are not resolved in them."""
        plain = {"symmetries": "none", "average_symmetries": False}
        known = {name: value for name, value in plain.items() if name in self.settings}
        return assemble(self.case.method, {**self.settings, **known})

    @property
    def searches(self) -> bool:
        """Say whether the surrogate is searched for."""
        return self.case.method == SEARCH

    @property
    def on_codes(self) -> bool:
        """Say whether the predictor works on codes; many of them can be fitted at once."""
        return not self.searches and not self.parts.predictor.reads_fields

    @property
    def name(self) -> str:
        return f"{self.case.id} seed {self.seed}"


def make_cell(
    case: Case,
    seed: int,
    *,
    settings: Mapping[str, Any] | None = None,
    finetuning: Mapping[str, Any] | None = None,
    fixed_steps: int | None = None,
) -> Cell:
    """Return the cell of a case and a seed.

    `settings` and `finetuning` replace the library's defaults; the case's own settings replace
    both. With `fixed_steps`, a case takes as many gradient steps as one with that many training
    fields: the passes over its training set are multiplied by fixed_steps / training.
    """
    factor = 1.0 if fixed_steps is None else fixed_steps / _training(case)
    resolved = case.resolve(settings)
    plan = None
    if case.objective is not None:
        options = {**(finetuning or {}), "objective": case.objective}
        plan = _more_passes(asdict(FinetunePlan.of(options)), factor, _TUNING_PASSES)
    counted = [name for name, setting in every_setting().items() if setting.passes]
    return Cell(case, seed, _more_passes(resolved, factor, counted), plan)


def _training(case: Case) -> int:
    return case.training or largest_training(case.samples)


def _more_passes(
    settings: Mapping[str, Any], factor: float, counted: Collection[str]
) -> dict[str, Any]:
    return {
        name: max(1, round(value * factor)) if name in counted and passes(value) else value
        for name, value in settings.items()
    }


def passes(value: Any) -> int:
    """Return `value` if it is a whole number, else 0.

    Other predictors may use the name for something else.
    """
    return value if isinstance(value, int) else 0
