import re

import numpy as np
import pytest
import torch

from tests.representation.contract import RepresentationContract, relative
from tests.spaces import poisson_fields
from twoscale import GlobalPCA, PatchPCA, RankRule, RestrictedPCA, TwoscaleError
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.math.pca import SOLVERS

SPACE = Space(Grid((32, 32)))


class TestGlobal(RepresentationContract):
    projects = True

    @classmethod
    def make(cls, variance=0.99):
        return GlobalPCA(RankRule(variance=variance))

    def test_the_zero_code_is_the_mean_field(self, fitted, fields):
        mean = fitted.decode(torch.zeros(1, fitted.code_size))[0]
        torch.testing.assert_close(mean, fields.mean(0), rtol=1e-4, atol=1e-7)

    def test_it_has_no_seams(self, fitted):
        assert fitted.layout is None


class TestTiling(RepresentationContract):
    projects = True

    @classmethod
    def make(cls, variance=0.99):
        return PatchPCA(RankRule(variance=variance), patches=(4, 4))

    def test_there_is_a_rank_for_each_patch(self, fitted):
        assert len(fitted.ranks["pca"]) == 16
        assert fitted.layout == Grid((32, 32)).partition((4, 4))


class TestFullSolver(RepresentationContract):
    projects = True
    spaces = ("plain", "channels")

    @classmethod
    def make(cls, variance=0.99):
        return PatchPCA(RankRule(variance=variance), patches=(4, 4), solver="full")


class TestCovarianceSolver(RepresentationContract):
    projects = True
    spaces = ("plain", "channels")

    @classmethod
    def make(cls, variance=0.99):
        return PatchPCA(RankRule(variance=variance), patches=(4, 4), solver="covariance")


class TestHannOverlap(RepresentationContract):
    @classmethod
    def make(cls, variance=0.99):
        return PatchPCA(RankRule(variance=variance), patches=(4, 4), overlap=True)

    def test_there_are_49_patches_and_a_hann_window(self, fitted):
        assert len(fitted.ranks["pca"]) == 49
        assert fitted.window == "hann"


class TestUniformOverlap(RepresentationContract):
    spaces = ("plain", "periodic")

    @classmethod
    def make(cls, variance=0.99):
        return PatchPCA(variance, patches=(3, 2), overlap=True, window="uniform")

    def test_the_window_is_uniform(self, fitted):
        assert fitted.layout == Grid((32, 32)).partition((3, 2), overlap=True)
        expected = fitted.layout.weights("uniform").float()
        torch.testing.assert_close(fitted.weights, expected)


class TestRectangularTiling(RepresentationContract):
    shape = (16, 32)
    spaces = ("plain",)
    projects = True

    @classmethod
    def make(cls, variance=0.99):
        return PatchPCA(RankRule(variance=variance), patches=(2, 4))


class TestRectangularOverlap(RepresentationContract):
    shape = (16, 32)
    spaces = ("plain",)

    @classmethod
    def make(cls, variance=0.99):
        return PatchPCA(RankRule(variance=variance), patches=(2, 4), overlap=True)


class TestRestricted(RepresentationContract):
    spaces = ("plain", "channels", "line", "row", "periodic")  # a box has few cells

    @classmethod
    def make(cls, variance=0.99):
        return RestrictedPCA(RankRule(variance=variance), factor=4)

    def test_more_variance_never_gives_a_larger_training_error(self, fields):
        """Here the error has a floor: what block means and interpolation cannot express."""
        errors = [
            relative(self.make(variance).fit(fields).reconstruct(fields) - fields, fields)
            for variance in (0.7, 0.9, 0.99, 0.999)
        ]
        assert errors == sorted(errors, reverse=True)


class TestRestrictedRectangle(TestRestricted):
    shape = (16, 32)
    spaces = ("plain",)
    error_on_new_fields = 0.4


@pytest.fixture(scope="module")
def fields():
    return poisson_fields((32, 32), 160)


# Formulas


def test_overlapping_patches_are_averaged_with_the_window(fields):
    """Decoding is the weighted sum of what each patch's own PCA makes of it."""
    fitted = PatchPCA(RankRule(components=3), patches=(2, 2), overlap=True).fit(fields)
    layout = fitted.layout
    codes = fitted.encode(fields[:4])
    profile = np.maximum(np.outer(np.hanning(16), np.hanning(16)), 1e-6)
    total, weight = np.zeros((4, 32, 32)), np.zeros((32, 32))
    corners = [(i, j) for i in range(0, 17, 8) for j in range(0, 17, 8)]
    assert len(corners) == layout.count
    for k, (i, j) in enumerate(corners):
        z = codes[:, 3 * k : 3 * k + 3].numpy()
        decoded = fitted.mean[k].numpy() + fitted.scale[k].numpy() * (
            z @ fitted.vectors[k].numpy().T
        )
        total[:, i : i + 16, j : j + 16] += profile * decoded.reshape(4, 16, 16)
        weight[i : i + 16, j : j + 16] += profile
    found = fitted.decode(codes)[:, 0].numpy()
    np.testing.assert_allclose(found, total / weight, rtol=1e-4, atol=1e-7)


def test_the_code_of_a_patch_is_its_standardised_projection(fields):
    fitted = PatchPCA(RankRule(variance=0.99), patches=(2, 4)).fit(fields)
    ranks = fitted.ranks["pca"]
    codes = fitted.encode(fields[:3]).numpy()
    start = 0
    for k, rank in enumerate(ranks):
        i, j = 16 * (k // 4), 8 * (k % 4)
        patch = fields[..., i : i + 16, j : j + 8].reshape(len(fields), -1).double().numpy()
        deviation = patch.std(0)
        scale = np.where(deviation > 0, deviation, 1.0)
        z = ((patch[:3] - patch.mean(0)) / scale) @ fitted.vectors[k, :, :rank].double().numpy()
        np.testing.assert_allclose(codes[:, start : start + rank], z, atol=1e-3)
        start += rank
    assert start == fitted.code_size


def half_pixel_matrix(coarse, factor):
    """Linear interpolation from cell centres to the centres of `factor` times finer cells."""
    matrix = np.zeros((coarse * factor, coarse))
    for i in range(coarse * factor):
        place = min(max((i + 0.5) / factor - 0.5, 0.0), coarse - 1.0)
        left = min(int(place), coarse - 2)
        matrix[i, left] += 1 - (place - left)
        matrix[i, left + 1] += place - left
    return matrix


@pytest.mark.parametrize(("shape", "factor"), [((32, 32), 4), ((16, 32), 4), ((18, 24), 3)])
def test_restriction_is_the_block_mean_and_prolongation_bilinear(shape, factor):
    """With every coarse mode kept nothing else is left of the representation."""
    fields = poisson_fields(shape, 150)
    nodes = (shape[0] // factor, shape[1] // factor)
    rule = RankRule(components=nodes[0] * nodes[1])
    fitted = RestrictedPCA(rule, factor=factor, solver="full").fit(fields)
    means = fields.double().numpy().reshape(-1, nodes[0], factor, nodes[1], factor).mean((2, 4))
    rows, columns = (half_pixel_matrix(size, factor) for size in nodes)
    expected = rows @ means @ columns.T
    error = fitted.reconstruct(fields)[:, 0].numpy() - expected
    assert np.linalg.norm(error) < 1e-5 * np.linalg.norm(expected)


@pytest.mark.parametrize("solver", SOLVERS)
def test_all_solvers_find_the_same_representation(solver, fields):
    rule = RankRule(variance=0.99)
    expected = PatchPCA(rule, solver="full").fit(fields)
    found = PatchPCA(rule, solver=solver).fit(fields)
    assert found.ranks == expected.ranks
    reference = expected.reconstruct(fields)
    assert relative(found.reconstruct(fields) - reference, reference) < 1e-3


@pytest.mark.parametrize("solver", SOLVERS)
def test_constant_pixels_come_back_exactly(solver, fields):
    """The boundary of a Poisson solution never varies; neither does a column of 0.1."""
    framed = fields.clone()
    framed[..., 5] = 0.1
    rule = RankRule(variance=0.9)
    for representation in (GlobalPCA(rule, solver=solver), PatchPCA(rule, solver=solver)):
        back = representation.fit(framed).reconstruct(framed)
        assert torch.equal(back[:, :, 0], framed[:, :, 0])
        assert torch.equal(back[..., -1], framed[..., -1])
        assert torch.equal(back[..., 5], framed[..., 5])


# Errors


def test_a_single_field_is_too_few(fields):
    with pytest.raises(TwoscaleError, match="a PCA needs at least 2 training fields, got 1"):
        GlobalPCA(RankRule(variance=0.9)).fit(fields[:1])


def test_an_unknown_window_is_refused():
    with pytest.raises(TwoscaleError, match=r"no window is called 'box': known are uniform"):
        PatchPCA(RankRule(variance=0.9), window="box")


@pytest.mark.parametrize("factor", [-1, 0, 17, 32])
def test_a_factor_beyond_half_the_grid_is_refused(fields, factor):
    message = f"must lie between 1 and 16 on a grid of 32x32, got {factor}"
    with pytest.raises(TwoscaleError, match=message):
        RestrictedPCA(RankRule(variance=0.9), factor=factor).fit(fields)


@pytest.mark.parametrize("samples", [63, 64])
def test_as_many_coarse_nodes_as_fields_are_refused(samples):
    message = f"factor 4 gives 64 values for {samples} fields; use a factor of at least 5, "
    with pytest.raises(TwoscaleError, match=re.escape(message)):
        RestrictedPCA(RankRule(variance=0.9), factor=4).check(SPACE, samples)


def test_too_few_fields_for_any_factor_are_told_so():
    with pytest.raises(TwoscaleError, match=r"; use more samples, or .* few_features off"):
        RestrictedPCA(RankRule(variance=0.9), factor=4).check(SPACE, 3)


def test_a_failed_check_comes_before_any_pass_over_the_fields():
    class Untouchable:
        shape = (50, 1, 32, 32)

        def chunks(self):
            raise AssertionError("looked at the fields")

    with pytest.raises(TwoscaleError, match="fewer values than there are training fields"):
        RestrictedPCA(RankRule(variance=0.9), factor=4).fit(Untouchable())


@pytest.mark.parametrize("kind", [GlobalPCA, PatchPCA, RestrictedPCA])
def test_an_unfitted_representation_says_so(kind, fields):
    unfitted = kind(RankRule(variance=0.9))
    for use in (unfitted.encode, unfitted.decode, lambda _: unfitted.code_size):
        with pytest.raises(TwoscaleError, match="not fitted yet: call fit first"):
            use(fields)


@pytest.mark.gpu
@pytest.mark.parametrize("solver", SOLVERS)
def test_cuda_agrees_with_the_cpu(solver, fields):
    rule = RankRule(variance=0.99)
    here = PatchPCA(rule, overlap=True, solver=solver).fit(fields)
    there = PatchPCA(rule, overlap=True, solver=solver).fit(fields.cuda())
    assert there.ranks == here.ranks
    expected = here.reconstruct(fields)
    assert relative(there.reconstruct(fields.cuda()).cpu() - expected, expected) < 1e-3
