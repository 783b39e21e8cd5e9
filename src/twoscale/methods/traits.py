"""The traits of a method with some settings: what studies, searches and reports ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from twoscale.methods.recipes import assemble, get_method, resolve


@dataclass(frozen=True)
class Traits:
    """What a method is, once its settings are known.

    The traits of the predictor are explained in `CodePredictor`; a correction counts too.
    """

    title: str
    """The method's title."""
    closed_form: bool
    """Whether nothing is trained: no network, and no correction."""
    reads_fields: bool
    """Whether its predictor works on fields; otherwise on codes."""
    trains_on_fields: bool
    """Whether a network is trained on fields: in memory, or in a scratch file."""
    trains_epochs: bool
    """Whether the setting `epochs` exists."""
    trains_together: bool
    """Whether networks of several seeds or settings are trained at once."""
    stages: Mapping[str, str]
    """Stages of the output representation by name, with their titles; empty if it has none."""


def traits_of(name: str, settings: Mapping[str, Any] | None = None) -> Traits:
    """Return the traits of a method; settings that are not given have their defaults.

    >>> traits_of("two-scale", {"predictor": "affine"}).closed_form
    True
    >>> list(traits_of("three-scale").stages)
    ['coarse', 'middle', 'residual']
    """
    resolved = resolve(name, settings or {})
    symmetric = ("symmetries", "average_symmetries")  # which change none of the traits
    parts = assemble(name, {key: one for key, one in resolved.items() if key not in symmetric})
    predictor = parts.predictor
    return Traits(
        title=get_method(name).title,
        closed_form=predictor.closed_form and parts.correction is None,
        reads_fields=predictor.reads_fields,
        trains_on_fields=parts.trains_on_fields,
        trains_epochs=predictor.trains_epochs,
        trains_together=predictor.trains_together,
        stages=parts.outputs.stage_titles,
    )
