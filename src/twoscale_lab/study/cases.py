"""A case: one row of a study's tables, everything but the seed, and its readable name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from twoscale.data.split import largest_training
from twoscale.errors import TwoscaleError
from twoscale.finetuning.finetune import OBJECTIVES
from twoscale.methods.recipes import changed_settings, get_method, resolve
from twoscale.methods.roles import SEARCH
from twoscale.methods.settings import parse_assignments, setting_text
from twoscale.problems import get_problem
from twoscale.runtime.timing import parse_duration
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
