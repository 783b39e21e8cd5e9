"""A method's recipe, with some of its parts replaced by objects of the user's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from twoscale.errors import TwoscaleError
from twoscale.methods.recipes import assemble, resolve
from twoscale.operators.assembly import Assembly
from twoscale.parts import Part
from twoscale.problems import Problem
from twoscale.representation import WholeField
from twoscale.surrogate.options import problem_symmetries

_SHARED = {"symmetries", "average_symmetries", "patches", "evaluation_batch", "base"}


class Composed(NamedTuple):
    """The method whose recipe was followed, its settings, and the parts."""

    method: str
    settings: dict[str, Any]
    parts: Assembly


def compose(
    method: str, settings: Mapping[str, Any], own: Mapping[str, Part], problem: Problem | None
) -> Composed:
    """Return the parts of a surrogate: a method's recipe, with `own` parts in their places."""
    resolved = resolve(method, settings)
    if resolved.get("symmetries") == "problem":
        resolved["symmetries"] = problem_symmetries(problem)
    parts = assemble(method, resolved)
    if not own:
        return Composed(method, resolved, parts)
    places: dict[str, Any] = dict(own)
    predictor = own.get("predictor")
    if "inputs" not in own and getattr(predictor, "reads_fields", False):
        places["inputs"] = WholeField()
    composed = replace(parts, **places)
    _check_effect(method, settings, places)
    return Composed(method, resolved, composed)


def _check_effect(method: str, settings: Mapping[str, Any], places: Mapping[str, Part]) -> None:
    """Raise if a setting only concerns parts that came as objects."""
    for name in settings.keys() - _SHARED:
        without = {key: value for key, value in settings.items() if key != name}
        two = [assemble(method, resolve(method, given)) for given in (settings, without)]
        trees = [
            {key: part for key, part in one.describe().items() if key not in places} for one in two
        ]
        if trees[0] == trees[1] and two[0].describe() != two[1].describe():
            raise TwoscaleError(
                f"{name} would be without effect: {', '.join(places)} came as an object, whose "
                "arguments decide"
            )
