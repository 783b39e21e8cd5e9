"""The habits of scikit-learn that `Surrogate` keeps: parameters by name, and tags.

scikit-learn itself is not needed. It looks for these functions through the methods of `Surrogate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twoscale.errors import TwoscaleError
from twoscale.parts import Part

_INSIDE = "__"  # between the name of a part and the name of its argument


def parameters_by_name(given: Mapping[str, Any], *, deep: bool) -> dict[str, Any]:
    """Return the arguments of a surrogate by name; with `deep`, those of its parts as well.

    The argument `patches` of the part `outputs` is called `outputs__patches`.
    """
    found = dict(given)
    if deep:
        for name, value in given.items():
            if isinstance(value, Part):
                inside = parameters_by_name(value.arguments, deep=True)
                found |= {f"{name}{_INSIDE}{key}": one for key, one in inside.items()}
    return found


def changed_parameters(given: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a surrogate with some changed, those of parts included.

    A whole part is replaced first, then its arguments. Nothing that is given is changed in place.
    """
    plain = {name: value for name, value in changes.items() if _INSIDE not in name}
    found = {**given, **plain}
    nested: dict[str, dict[str, Any]] = {}
    for name in changes.keys() - plain.keys():
        place, _, argument = name.partition(_INSIDE)
        nested.setdefault(place, {})[argument] = changes[name]
    for place, inside in nested.items():
        part = found.get(place)
        if not isinstance(part, Part):
            raise TwoscaleError(
                f"{place}{_INSIDE}{next(iter(inside))} is an argument of a part, and {place} is "
                f"{part!r}: give a part as {place}=..., or change a setting of the method"
            )
        found[place] = part.with_arguments(**_changed_arguments(part, inside))
    return found


def _changed_arguments(part: Part, inside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new arguments of a part, from names that may lead further inside."""
    after = changed_parameters(part.arguments, inside)
    return {name: after[name] for name in {name.partition(_INSIDE)[0] for name in inside}}


def regressor_tags() -> Any:
    """Return what scikit-learn should know: a regressor whose targets are fields, without NaN."""
    from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

    return Tags(
        estimator_type="regressor",
        target_tags=TargetTags(required=True, multi_output=True, single_output=False),
        transformer_tags=None,
        classifier_tags=None,
        regressor_tags=RegressorTags(),
        input_tags=InputTags(two_d_array=True, three_d_array=True),
    )
