import numpy as np
import pytest
import torch

from tests.representation.contract import RepresentationContract
from tests.representation.test_field_pca import half_pixel_matrix
from tests.spaces import poisson_fields
from twoscale import (
    Chain,
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


class TestGlobalThenPatches(RepresentationContract):
    @classmethod
    def make(cls, variance=0.99):
        first = GlobalPCA(RankRule(components=4))
        return Chain({"first": first, "second": PatchPCA(RankRule(variance=variance))})


class TestSingleStage(RepresentationContract):
    spaces = ("plain",)
    projects = True

    @classmethod
    def make(cls, variance=0.99):
        return Chain({"only": PatchPCA(RankRule(variance=variance))})


class TestTwoScale(RepresentationContract):
    @classmethod
    def make(cls, variance=0.99):
        return TwoScale(coarse_components=6, residual_variance=variance)

    def test_ranks_are_named_after_the_branches(self, fitted):
        assert list(fitted.ranks) == ["coarse", "residual"]
        assert fitted.ranks["coarse"] == [6]
        assert len(fitted.ranks["residual"]) == 16


class TestTwoScaleRectangle(RepresentationContract):
    shape = (16, 32)
    spaces = ("plain",)

    @classmethod
    def make(cls, variance=0.99):
        return TwoScale(patches=(2, 4), coarse_components=5, residual_variance=variance)


class TestThreeScale(RepresentationContract):
    spaces = ("plain", "channels", "periodic")  # on a line rounding errors are left of smooth waves

    @classmethod
    def make(cls, variance=0.99):
        return ThreeScale(coarse_components=6, residual_variance=variance)

    def test_the_middle_stage_has_larger_patches(self, fitted):
        assert {name: len(ranks) for name, ranks in fitted.ranks.items()} == {
            "coarse": 1,
            "middle": 4,
            "residual": 16,
        }
        assert fitted.layout == fitted.stages["residual"].layout


class TestThreeStages(RepresentationContract):
    """Coarse, patches of half the domain, patches of an eighth, overlapping."""

    spaces = ("plain", "channels")

    @classmethod
    def make(cls, variance=0.99):
        return Chain(
            {
                "coarse": RestrictedPCA(RankRule(components=4), factor=4),
                "middle": PatchPCA(RankRule(variance=0.7), patches=(2, 2)),
                "fine": PatchPCA(RankRule(variance=variance), patches=(4, 4), overlap=True),
            }
        )

    def test_the_seams_are_those_of_the_finest_stage(self, fitted):
        assert fitted.layout == fitted.stages["fine"].layout

    def test_there_are_three_code_blocks(self, fitted):
        assert len(fitted.block_sizes) == 3


@pytest.fixture(scope="module")
def fields():
    return poisson_fields((32, 32), 200)


@pytest.fixture(scope="module")
def new_fields():
    return poisson_fields((32, 32), 30, 1)


# The chain


def test_each_stage_represents_what_the_earlier_ones_left(fields, new_fields):
    stages = {
        "first": GlobalPCA(RankRule(components=3)),
        "second": PatchPCA(RankRule(components=2)),
        "third": PatchPCA(RankRule(components=1), patches=(2, 2)),
    }
    chain = Chain(stages).fit(fields, seed=5)
    left, left_new, codes = fields, new_fields, []
    parts = torch.zeros_like(new_fields)
    for position, make in enumerate(
        (
            lambda: GlobalPCA(RankRule(components=3)),
            lambda: PatchPCA(RankRule(components=2)),
            lambda: PatchPCA(RankRule(components=1), patches=(2, 2)),
        )
    ):
        stage = make().fit(left, seed=5 + position)
        codes.append(stage.encode(left_new))
        part = stage.reconstruct(left_new)
        left, left_new, parts = left - stage.reconstruct(left), left_new - part, parts + part
    torch.testing.assert_close(chain.encode(new_fields), torch.cat(codes, 1))
    torch.testing.assert_close(chain.reconstruct(new_fields), parts, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("solver", ["full", "covariance", "randomized"])
def test_rounding_errors_of_one_stage_are_not_fitted_by_the_next(solver, fields):
    """Pixels that never vary, as on the boundary, are left over as exact zeros."""
    chain = Chain(
        {
            "first": GlobalPCA(RankRule(components=4), solver=solver),
            "second": PatchPCA(RankRule(variance=0.99), solver=solver),
        }
    ).fit(fields)
    constant = (chain.stages["second"].scale == 1).sum()
    assert int(constant) == 4 * 31
    assert max(chain.ranks["second"]) <= 6


# Two-scale against an independent implementation


def numpy_pca(training, rank=None, variance=None):
    """Mean, scale and directions of standardised data by a full SVD."""
    mean, deviation = training.mean(0), training.std(0)
    constant = deviation < 1e-12 * np.abs(training).max()
    scale = np.where(constant, 1.0, deviation)
    standardised = (training - mean) / scale
    _, values, right = np.linalg.svd(standardised, full_matrices=False)
    if rank is None:
        ratios = np.cumsum(values**2) / np.sum(values**2)
        rank = int(np.argmax(ratios >= variance)) + 1
    return mean, scale, right[:rank].T


def numpy_reconstruction(pca, values):
    mean, scale, vectors = pca
    return mean + scale * (((values - mean) / scale) @ vectors @ vectors.T)


def numpy_two_scale(training, test, *, factor, components, variance, patches):
    """Ranks of the residual patches and the reconstruction of `test`."""
    side = training.shape[1]
    coarse_side, patch = side // factor, side // patches
    prolong = half_pixel_matrix(coarse_side, factor)

    def restrict(u):
        blocks = u.reshape(len(u), coarse_side, factor, coarse_side, factor)
        return blocks.mean((2, 4)).reshape(len(u), -1)

    coarse_pca = numpy_pca(restrict(training), rank=components)

    def global_field(u):
        decoded = numpy_reconstruction(coarse_pca, restrict(u))
        return prolong @ decoded.reshape(-1, coarse_side, coarse_side) @ prolong.T

    ranks, result = [], global_field(test)
    left, left_test = training - global_field(training), test - global_field(test)
    for i in range(0, side, patch):
        for j in range(0, side, patch):
            block = np.s_[:, i : i + patch, j : j + patch]
            pca = numpy_pca(left[block].reshape(len(training), -1), variance=variance)
            ranks.append(pca[2].shape[1])
            decoded = numpy_reconstruction(pca, left_test[block].reshape(len(test), -1))
            result[block] += decoded.reshape(-1, patch, patch)
    return ranks, result


@pytest.mark.parametrize(("variance", "patches"), [(0.995, 4), (0.9, 2)])
def test_two_scale_is_the_papers_construction(variance, patches, fields, new_fields):
    ranks, expected = numpy_two_scale(
        fields[:, 0].double().numpy(),
        new_fields[:, 0].double().numpy(),
        factor=4,
        components=10,
        variance=variance,
        patches=patches,
    )
    options = {"patches": (patches, patches), "residual_variance": variance}
    for solver in ("full", "covariance", "randomized", "hybrid"):
        fitted = TwoScale(**options, solver=solver).fit(fields)
        assert fitted.ranks == {"coarse": [10], "residual": ranks}, solver
        error = fitted.reconstruct(new_fields)[:, 0].double().numpy() - expected
        assert np.linalg.norm(error) < 2e-4 * np.linalg.norm(expected), solver


def test_the_coarse_rank_by_variance_and_at_most(fields):
    free = TwoScale(coarse_components=None, coarse_variance=0.99).fit(fields)
    capped = TwoScale(coarse_components=3, coarse_variance=0.99).fit(fields)
    assert free.block_sizes[0] > 3
    assert capped.block_sizes[0] == 3


# Errors


def test_a_chain_without_stages_is_refused(fields):
    with pytest.raises(TwoscaleError, match="a chain needs at least one stage, this one has none"):
        Chain({}).fit(fields)


@pytest.mark.parametrize(
    "stages", [{"a.b": GlobalPCA(3)}, {"": GlobalPCA(3)}, {"one": "pca"}, [GlobalPCA(3)]]
)
def test_what_cannot_be_stages_is_refused(stages):
    with pytest.raises(TwoscaleError, match="a chain is a dictionary of names and representations"):
        Chain(stages)


@pytest.mark.parametrize(
    ("options", "samples", "message"),
    [
        ({"coarse_factor": 17}, 200, "must lie between 1 and 16 on a grid of 32x32, got 17"),
        ({"coarse_factor": 2}, 200, "factor 2 gives 256 values for 200 fields"),
        ({}, 64, "factor 4 gives 64 values for 64 fields"),
        ({"patches": (17, 4)}, 200, "a height of 32 nodes can be cut into 1 to 16 patches, got 17"),
    ],
)
def test_illegal_designs_fail_before_anything_is_fitted(fields, options, samples, message):
    representation = TwoScale(**options)
    with pytest.raises(TwoscaleError, match=message):
        representation.fit(fields[:samples])
    assert representation.stages["coarse"].mean is None


def test_missing_tensors_of_a_stage_are_told(fields):
    state = TwoScale().fit(fields).state_dict()
    without = {name: value for name, value in state.items() if "residual.mean" not in name}
    with pytest.raises(TwoscaleError, match=r"the weights lack \['mean'\]"):
        TwoScale().restore(without, Space(Grid((32, 32))))
