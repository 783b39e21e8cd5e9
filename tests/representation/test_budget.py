import pytest
import torch

from tests.representation.contract import Chunks, RepresentationContract, relative
from tests.spaces import poisson_fields, smooth_fields
from twoscale import (
    Chain,
    Conforming,
    GlobalPCA,
    PatchPCA,
    RankRule,
    RestrictedPCA,
    ThreeScale,
    TwoScale,
    TwoscaleError,
)
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.representation import budget
from twoscale.representation.budget import pooled_ranks

SIZES = {0.7: 30, 0.9: 50, 0.99: 90, 0.999: 130}


class TestTwoScale(RepresentationContract):
    spaces = ("plain", "channels")

    @classmethod
    def make(cls, variance=0.99):
        return TwoScale(coarse_components=6, code_size=SIZES[variance])

    def test_the_coarse_bound_holds_and_the_patches_share_the_rest(self, fitted):
        assert fitted.ranks["coarse"] == [6]
        assert fitted.block_sizes == [6, 84]


class TestThreeScale(RepresentationContract):
    spaces = ("plain", "periodic")  # a line has fewer nodes than these codes

    @classmethod
    def make(cls, variance=0.99):
        return ThreeScale(coarse_components=4, code_size=SIZES[variance])

    def test_there_are_three_scales(self, fitted):
        assert {name: len(ranks) for name, ranks in fitted.ranks.items()} == {
            "coarse": 1,
            "middle": 4,
            "residual": 16,
        }
        assert fitted.layout == fitted.stages["residual"].layout


class TestPatches(RepresentationContract):
    projects = True
    spaces = ("plain", "channels", "periodic")

    @classmethod
    def make(cls, variance=0.99):
        rule = RankRule(components=SIZES[variance])
        return Chain({"only": PatchPCA(rule, standardised=False)}, code_size=SIZES[variance])


# The ranking


def tensors(*rows):
    return [torch.tensor(values) for values in rows]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (3, [[1], [1, 1]]),
        (4, [[2], [1, 1]]),
        (5, [[3], [1, 1]]),
        (6, [[3], [2, 1]]),
        (7, [[3], [2, 2]]),
        (99, [[3], [2, 2]]),
    ],
)
def test_ranks_by_hand(size, expected):
    energies = tensors([[9.0, 5.0, 4.0]], [[0.1, 0.05], [3.0, 0.01]])
    assert pooled_ranks(energies, size) == expected


def test_a_mode_counts_no_more_than_those_before_it():
    energies = tensors([[9.0, 0.5, 8.0]], [[4.0, 3.0, 2.0]])
    assert pooled_ranks(energies, 4) == [[1], [3]]
    assert pooled_ranks(energies, 5) == [[2], [3]]


def test_modes_without_energy_are_not_kept():
    assert pooled_ranks(tensors([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), 5) == [[1, 1]]


def test_modes_of_rounding_errors_are_not_kept():
    energies = tensors([[2.0, 1e-12, 1e-14]], [[1e-14, 1e-15]])
    assert pooled_ranks(energies, 5, least=1e-13) == [[2], [1]]


# The fit


@pytest.fixture(scope="module")
def fields():
    return poisson_fields((32, 32), 200)


@pytest.fixture(scope="module")
def new_fields():
    return poisson_fields((32, 32), 30, 1)


def test_patches_share_by_energy(fields):
    """The ranks are those of the largest energies, found without any candidate left out."""
    rule = RankRule(components=64)
    everything = PatchPCA(rule, solver="full").fit(fields)
    expected = pooled_ranks([everything.energies(everything.unit)], 100)
    fitted = Chain({"only": PatchPCA(rule, solver="full")}, code_size=100).fit(fields)
    assert list(fitted.ranks.values()) == expected
    assert len(set(fitted.ranks["only"])) > 1


def test_patches_that_differ_get_different_shares(fields, new_fields):
    """A corner that is a thousand times louder gets most of the code; others keep one mode."""

    def loud(values):
        values = values.clone()
        values[..., :8, :8] *= 1000
        return values

    fitted = Chain({"only": PatchPCA(RankRule(components=60))}, code_size=30).fit(loud(fields))
    assert fitted.ranks["only"] == [15] + [1] * 15
    by_variance = PatchPCA(RankRule(variance=0.99)).fit(loud(fields))
    test = loud(new_fields)
    assert by_variance.code_size > 30
    assert relative(fitted(test) - test, test) < relative(by_variance(test) - test, test)


def test_candidates_grow_as_far_as_they_are_wanted(fields, monkeypatch):
    expected = Conforming(code_size=90).fit(fields).ranks
    monkeypatch.setattr(budget, "_SPARE", -6)
    assert Conforming(code_size=90).fit(fields).ranks == expected
    assert max(expected["skeleton"]) > 2 * -(-90 // 17) - 6


def test_later_stages_are_fitted_on_what_cut_ones_leave(fields, new_fields):
    """As a chain of the ranks that were decided, fitted stage by stage."""
    rule = RankRule(components=60)
    stages = {"first": GlobalPCA(rule), "second": PatchPCA(rule, patches=(2, 2))}
    shared = Chain(stages, code_size=60).fit(fields)
    (first,) = shared.ranks["first"]
    assert 1 <= first < 60
    assert shared.code_size == 60
    left = fields - GlobalPCA(RankRule(components=first)).fit(fields)(fields)
    local = PatchPCA(rule, patches=(2, 2)).fit(left)
    (ranks,) = pooled_ranks([local.energies(local.unit)], 60 - first)
    assert shared.ranks["second"] == ranks


@pytest.mark.parametrize("make", [RestrictedPCA, PatchPCA])
def test_energies_are_those_of_decoded_unit_codes(make, fields):
    options = {"overlap": True} if make is PatchPCA else {}
    fitted = make(RankRule(variance=0.9), **options).fit(fields)
    units = torch.eye(fitted.code_size)
    modes = fitted.decode(units) - fitted.decode(torch.zeros_like(units))
    expected = fitted.variances.flatten()[fitted.places] * modes.square().sum((1, 2, 3))
    found = fitted.energies(torch.ones(1, 1, 1))
    torch.testing.assert_close(
        found.flatten()[fitted.places], expected.double(), rtol=1e-3, atol=1e-9
    )
    assert int((found > 0).sum()) == fitted.code_size


def test_a_source_on_disk_gives_the_same_ranks(fields):
    assert (
        ThreeScale(code_size=60).fit(Chunks(fields)).ranks
        == ThreeScale(code_size=60).fit(fields).ranks
    )


@pytest.mark.parametrize("make", [Conforming, TwoScale, ThreeScale])
def test_a_code_longer_than_a_line_is_cut_to_what_it_can_say(make):
    space = Space(Grid((1, 64)))
    fields = smooth_fields(space)
    fitted = make(code_size=160).fit(fields, space=space)
    assert fitted.code_size <= 80
    assert relative(fitted(fields) - fields, fields) < 1e-5


# Errors


def test_a_code_shorter_than_the_blocks_is_refused(fields):
    message = "a code of 20 is too short for 21 blocks, which keep at least one mode each: use"
    with pytest.raises(TwoscaleError, match=message):
        ThreeScale(code_size=20).fit(fields)


def test_only_pcas_share_a_code():
    inner = Chain({"only": GlobalPCA(RankRule(components=3))})
    with pytest.raises(TwoscaleError, match="shared among PCAs only: give each stage a rule"):
        Chain({"inner": inner}, code_size=20)
