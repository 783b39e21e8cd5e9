import re

import pytest

from twoscale import METHODS
from twoscale.methods.traits import traits_of
from twoscale.representation import known_stages


def test_every_method_has_a_title_colour_and_marker_of_its_own():
    for trait in ("title", "colour", "marker"):
        assert len({getattr(method, trait) for method in METHODS.values()}) == len(METHODS)
    assert all(re.fullmatch("#[0-9A-F]{6}", method.colour) for method in METHODS.values())


@pytest.mark.parametrize(
    ("method", "settings", "true"),
    [
        ("local", {}, "trains_epochs trains_together"),
        ("local", {"predictor": "affine"}, "closed_form"),
        ("local", {"predictor": "kernel", "symmetries": "problem"}, "closed_form"),
        ("local", {"predictor": "affine-mlp"}, "trains_epochs trains_together"),
        ("local", {"predictor": "encoder"}, "reads_fields trains_on_fields trains_epochs"),
        ("fno", {}, "reads_fields trains_on_fields trains_epochs"),
        ("fno", {"predictor": "affine"}, "closed_form"),
        ("whole-field", {"predictor": "filter"}, "closed_form reads_fields trains_on_fields"),
        ("refinement", {}, "trains_on_fields trains_epochs trains_together"),
        ("refinement", {"predictor": "affine"}, "trains_on_fields"),
    ],
)
def test_traits_follow_from_the_parts(method, settings, true):
    traits = vars(traits_of(method, settings))
    assert {name for name, value in traits.items() if value is True} == set(true.split())
    assert traits["title"] == METHODS[method].title


def test_stages_are_those_of_the_output_representation():
    stages = {name: tuple(traits_of(name).stages) for name in METHODS}
    assert stages == {
        "global": (),
        "local": (),
        "overlap": (),
        "refinement": (),
        "fno": (),
        "two-scale": ("coarse", "residual"),
        "three-scale": ("coarse", "middle", "residual"),
        "conforming": ("skeleton", "bubbles"),
        "whole-field": (),
    }
    assert tuple(traits_of("refinement", {"base": "conforming"}).stages) == ("skeleton", "bubbles")
    assert list(known_stages()) == ["coarse", "middle", "residual", "skeleton", "bubbles"]
    assert all(known_stages().values())
