"""Parts: shown, described, built again, and registered."""

import copy
import json
import pickle

import pytest

from twoscale import (
    Chain,
    GlobalPCA,
    PatchPCA,
    RankRule,
    Representation,
    RestrictedPCA,
    TwoScale,
    TwoscaleError,
)
from twoscale.parts import PARTS, Part, build, check_registered, describe
from twoscale.predictors.base import CodePredictor
from twoscale.representation import WholeField

NESTED = Chain(
    {
        "outer": TwoScale(patches=(2, 3), solver="hybrid"),
        "inner": Chain({"one": GlobalPCA(3), "two": PatchPCA(0.9, overlap=True)}, code_size=20),
    }
)
EXAMPLES = {
    "GlobalPCA(0.99)": GlobalPCA(0.99),
    "GlobalPCA(8, solver='full')": GlobalPCA(RankRule(components=8), solver="full"),
    "PatchPCA(0.9, patches=(2, 2), overlap=True)": PatchPCA(0.9, patches=(2, 2), overlap=True),
    "RestrictedPCA(RankRule(variance=0.9, components=5))": RestrictedPCA(
        RankRule(variance=0.9, components=5)
    ),
    "TwoScale()": TwoScale(),
    "TwoScale(code_size=50)": TwoScale(code_size=50),
    "WholeField()": WholeField(),
    "Chain({'outer': TwoScale(patches=(2, 3), solver='hybrid'), 'inner': "
    "Chain({'one': GlobalPCA(3), 'two': PatchPCA(0.9, overlap=True)}, code_size=20)})": NESTED,
    "Chain({'part': GlobalPCA(3)})": Chain({"part": GlobalPCA(3)}),
}
any_example = pytest.mark.parametrize(("shown", "part"), EXAMPLES.items(), ids=list(EXAMPLES))


@any_example
def test_a_part_is_shown_as_it_is_made(shown, part):
    assert repr(part) == shown


@any_example
def test_its_description_is_plain_and_builds_an_equal_one(shown, part):
    description = describe(part)
    again = build(json.loads(json.dumps(description)), Representation)
    assert type(again) is type(part)
    assert repr(again) == shown
    assert describe(again) == description


@any_example
def test_copies_are_equal(shown, part):
    for again in (copy.deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert repr(again) == shown
        assert describe(again) == describe(part)


def test_a_description_by_hand():
    assert describe(PatchPCA(0.9)) == {
        "part": "patch-pca",
        "rule": 0.9,
        "patches": [4, 4],
        "overlap": False,
        "window": None,
        "solver": "randomized",
        "standardised": True,
    }
    chain = describe(Chain({"only": GlobalPCA(RankRule(variance=0.9, components=5))}))
    assert chain["code_size"] is None
    assert list(chain["stages"]) == ["only"]
    assert chain["stages"]["only"]["rule"] == {"variance": 0.9, "components": 5}


def test_the_stages_of_a_chain_keep_their_order():
    stages = {"z": GlobalPCA(3), "a": PatchPCA(2), "m": GlobalPCA(1)}
    again = build(describe(Chain(stages)), Representation)
    assert list(again.stages) == ["z", "a", "m"]


def test_what_is_left_out_of_a_description_has_its_default():
    assert repr(build({"part": "patch-pca", "rule": 7}, Representation)) == "PatchPCA(7)"


def test_arguments_cannot_be_changed_from_outside():
    part = GlobalPCA(3)
    part.arguments["solver"] = "full"
    assert part.arguments["solver"] == "randomized"


@pytest.mark.parametrize("known", sorted(PARTS))
def test_every_part_is_known_by_its_own_name(known):
    assert PARTS[known].name == known


# What cannot be built


@pytest.mark.parametrize("wrong", [{}, {"rule": 3}, [], "chain", None, 3, {"part": 5}])
def test_a_description_without_a_name_is_refused(wrong):
    with pytest.raises(TwoscaleError, match="described by its name and arguments, got"):
        build(wrong, Representation)


def test_an_unknown_name_is_refused_with_those_of_its_kind():
    message = "no Representation is called 'magic': known are .*global-pca.*imported first"
    with pytest.raises(TwoscaleError, match=message) as caught:
        build({"part": "magic"}, Representation)
    assert "kernel" not in str(caught.value)


def test_a_part_of_another_kind_is_refused():
    with pytest.raises(TwoscaleError, match="no CodePredictor is called 'two-scale'"):
        build({"part": "two-scale"}, CodePredictor)


def test_an_unknown_name_inside_is_refused():
    description = describe(NESTED)
    description["stages"]["inner"]["stages"]["one"]["part"] = "magic"
    with pytest.raises(TwoscaleError, match="no Part is called 'magic'"):
        build(description, Representation)


@pytest.mark.parametrize("arguments", [{}, {"rule": 3, "colour": 1}, {"rule": 3, "self": 1}])
def test_wrong_arguments_are_told(arguments):
    with pytest.raises(TwoscaleError, match="'global-pca' cannot be made with"):
        build({"part": "global-pca", **arguments}, Representation)


def test_an_argument_of_the_wrong_kind_is_told():
    with pytest.raises(TwoscaleError, match="got 'much'"):
        build({"part": "global-pca", "rule": "much"}, Representation)


# One's own


def test_a_part_of_ones_own_is_described_and_built(own_parts):
    class Halves(PatchPCA):
        """Two patches per axis, and a constructor of its own."""

        name = "halves"

        def __init__(self, share: float = 0.9) -> None:
            super().__init__(share, patches=(2, 2))

    assert describe(Halves()) == {"part": "halves", "share": 0.9}
    again = build({"part": "halves", "share": 0.5}, Representation)
    assert repr(again) == "Halves(0.5)"
    assert again.rule == RankRule(variance=0.5)
    nested = build(describe(Chain({"first": Halves(0.8)})), Representation)
    assert repr(nested) == "Chain({'first': Halves(0.8)})"


def test_a_class_that_is_defined_again_takes_its_own_place(own_parts):
    def define(default):
        class Again(Part):
            name = "again"

            def __init__(self, number: int = default) -> None:
                pass

        return Again

    define(1)
    second = define(2)
    assert PARTS["again"] is second


def test_a_name_of_twoscales_own_is_taken(own_parts):
    with pytest.raises(TwoscaleError, match="'two-scale' is one of twoscale's own"):
        type("TwoScale", (PatchPCA,), {"name": "two-scale", "__module__": "elsewhere"})
    assert PARTS["two-scale"] is TwoScale


def test_a_name_of_ones_own_may_be_taken_anew(own_parts):
    for kind in (PatchPCA, GlobalPCA):
        mine = type(kind.__name__, (kind,), {"name": "mine"})
        assert PARTS["mine"] is mine


def test_what_has_no_name_of_its_own_cannot_be_part_of_a_surrogate():
    class Own(PatchPCA):
        pass

    with pytest.raises(TwoscaleError, match="Own cannot be saved"):
        check_registered(Chain({"own": Own(0.9)}))
