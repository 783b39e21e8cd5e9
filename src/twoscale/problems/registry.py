"""The problems that are known by name: ours, and those that installed packages offer."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from typing import Any, TypeVar

from twoscale.errors import TwoscaleError, TwoscaleWarning, unknown_name
from twoscale.parts import Registry
from twoscale.problems.base import Problem
from twoscale.problems.parameters import with_settings

PROBLEMS: Registry[Problem] = Registry("problems")
"""All problems by name, with default parameters."""

P = TypeVar("P", bound="Problem | type[Problem]")

_NUMBERS: dict[int, str] = {}  # the problem that draws its samples with each number


def register(problem: P) -> P:
    """Make a problem (an instance, or a class that needs no arguments) known; return it.

    A problem registered again replaces the earlier one of its name, but never one of ours.
    """
    instance = _instance(problem)
    other = _NUMBERS.setdefault(instance.number, instance.name)
    if other != instance.name:
        raise TwoscaleError(
            f"{instance.name} has the number {instance.number} of {other}, so that both would draw "
            "the same samples: leave the number out, and it follows from the name"
        )
    PROBLEMS[instance.name] = instance
    return problem


def get_problem(name: str) -> Problem:
    """Return the problem of that name, with default parameters."""
    found = PROBLEMS.get(name)
    if found is None:
        raise unknown_name("problem", name, PROBLEMS)
    return found


def make_problem(name: str, settings: Mapping[str, Any] | None = None) -> Problem:
    """Return the problem of that name with some parameters set; texts are read as values.

    >>> from twoscale.problems import make_problem
    >>> problem = make_problem("darcy", {"high": "100", "low": 1, "medium.alpha": "3"})
    >>> problem.high, problem.low, problem.medium.alpha
    (100.0, 1.0, 3.0)
    """
    problem = get_problem(name)
    if not settings:
        return problem
    return problem.from_parameters(with_settings(problem.parameters(), settings, name))


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Return the problem's name and parameters in plain values, for `problem_from`."""
    return {"name": problem.name, "parameters": problem.parameters()}


def problem_from(description: Any) -> Problem | None:
    """Return the problem that `describe_problem` described; None if its name is not known.

    None describes no problem, and gives None.
    """
    if description is None:
        return None
    fits = isinstance(description, Mapping) and set(description) == {"name", "parameters"}
    if not fits or not isinstance(description["name"], str):
        raise TwoscaleError(
            f"a problem is described by its name and its parameters, got {description!r}"
        )
    known, parameters = PROBLEMS.get(description["name"]), description["parameters"]
    if known is None:
        warnings.warn(
            f"the problem '{description['name']}' is not known here, so there are no residuals: "
            "install the package that defines it",
            TwoscaleWarning,
            stacklevel=2,
        )
        return None
    if not isinstance(parameters, Mapping):
        raise TwoscaleError(f"{known.name} needs a dictionary of parameters, got {parameters!r}")
    return type(known).from_parameters(parameters)


def _instance(problem: Any) -> Problem:
    """Return the problem, made if it is a class, once it says all that a problem must say."""
    kind = problem if isinstance(problem, type) else type(problem)
    if not issubclass(kind, Problem):
        raise TwoscaleError(f"a problem is a subclass of Problem or an instance, got {problem!r}")
    for attribute in ("name", "boundary", "solver"):
        if not isinstance(getattr(kind, attribute, None), str):
            raise TwoscaleError(f"the problem {kind.__name__} needs a text `{attribute}`")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]*", kind.name):
        raise TwoscaleError(
            f"the name of a problem has letters, digits, - and _ only, got '{kind.name}'"
        )
    if not isinstance(problem, type):
        return problem
    try:
        return kind()
    except TypeError as error:
        raise TwoscaleError(
            f"the problem {kind.__name__} cannot be made without arguments ({error}): give all "
            "parameters defaults and write all methods, or register an instance"
        ) from error
