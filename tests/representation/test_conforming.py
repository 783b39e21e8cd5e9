import numpy as np
import pytest
import torch

from tests.conftest import make_poisson
from tests.representation.contract import RepresentationContract, relative
from twoscale import (
    BubblePCA,
    Chain,
    Conforming,
    PatchLayout,
    RankRule,
    SkeletonPCA,
    TwoScale,
    TwoscaleError,
)
from twoscale.fields.measures import normal_derivative_trace, value_trace
from twoscale.linalg.pca import SOLVERS
from twoscale.representation.skeleton import Skeleton


class ConformingContract(RepresentationContract):
    """All that is asked of a representation, and no seams."""

    projects = True
    patches = (4, 4)

    def test_it_is_continuous_for_any_code(self, fitted, generator):
        """The lines between patches are the skeleton's own values: bubbles never touch them."""
        codes = 1e3 * torch.randn(20, fitted.code_size, generator=generator)
        part, _ = codes.split(fitted.block_sizes, 1)
        field, global_part = fitted.decode(codes), fitted.stages["skeleton"].decode(part)
        for k in range(1, self.patches[0]):
            line = k * self.shape[0] // self.patches[0]
            assert torch.equal(field[:, line], global_part[:, line])
        for k in range(1, self.patches[1]):
            line = k * self.shape[1] // self.patches[1]
            assert torch.equal(field[:, :, line], global_part[:, :, line])

    def test_bubbles_vanish_on_the_skeleton_for_any_code(self, fitted, generator):
        bubbles = fitted.stages["bubbles"]
        codes = torch.randn(20, bubbles.code_size, generator=generator)
        assert not bubbles.skeleton.trace(bubbles.decode(codes)).any()

    def test_bubbles_say_nothing_about_harmonic_extensions(self, fitted, generator):
        skeleton, bubbles = fitted.stages["skeleton"], fitted.stages["bubbles"]
        codes = torch.randn(5, skeleton.code_size, generator=generator)
        field = skeleton.decode(codes)
        alone = bubbles.encode(torch.zeros_like(field))
        torch.testing.assert_close(bubbles.encode(field), alone, rtol=0, atol=1e-3)

    def test_a_boundary_that_is_zero_comes_back_as_zero(self, fitted, generator):
        field = fitted.decode(torch.randn(5, fitted.code_size, generator=generator))
        edges = (field[:, 0], field[:, -1], field[:, :, 0], field[:, :, -1])
        assert not any(bool(edge.any()) for edge in edges)


class TestByVariance(ConformingContract):
    @classmethod
    def make(cls, variance=0.99):
        return Conforming(code_size=None, variance=variance)

    def test_ranks_are_named_after_the_parts(self, fitted):
        assert list(fitted.ranks) == ["skeleton", "bubbles"]
        assert len(fitted.ranks["skeleton"]) == 1
        assert len(fitted.ranks["bubbles"]) == 16
        assert fitted.layout == PatchLayout.tiling((32, 32), (4, 4))


class TestByCodeSize(ConformingContract):
    @classmethod
    def make(cls, variance=0.99):
        sizes = {0.7: 20, 0.9: 40, 0.99: 80, 0.999: 120}
        return Conforming(code_size=sizes[variance])

    def test_the_code_has_the_size_asked_for(self, fitted):
        assert fitted.code_size == 80


class TestPlainNorm(ConformingContract):
    @classmethod
    def make(cls, variance=0.99):
        return Conforming(code_size=None, variance=variance, seam_width=0.0, solver="covariance")


class TestRectangle(ConformingContract):
    shape = (16, 32)
    patches = (2, 4)

    @classmethod
    def make(cls, variance=0.99):
        return Conforming(patches=(2, 4), code_size=None, variance=variance)


class TestSkeletonAlone(RepresentationContract):
    projects = True
    error_on_new_fields = 0.5

    @classmethod
    def make(cls, variance=0.99):
        return SkeletonPCA(RankRule(variance=variance))

    def test_more_variance_never_gives_a_larger_training_error(self, fields):
        """Here the error has a floor: the bubbles."""
        errors = [
            relative(self.make(variance).fit(fields).reconstruct(fields) - fields, fields)
            for variance in (0.7, 0.9, 0.99)
        ]
        assert errors == sorted(errors, reverse=True)


@pytest.fixture(scope="module")
def fields():
    return make_poisson((32, 32), 200).outputs


@pytest.fixture(scope="module")
def new_fields():
    return make_poisson((32, 32), 30, seed=1).outputs


# Formulas


def test_the_global_modes_are_those_of_the_extensions(fields):
    """PCA of the traces in the metric of their extensions is plain PCA of the extensions."""
    fitted = SkeletonPCA(RankRule(components=5), seam_width=0.0, solver="full").fit(fields)
    skeleton = Skeleton.of_grid(fitted.layout)
    extended = skeleton.extend(skeleton.trace(fields.double())).flatten(1).numpy()
    _, values, right = np.linalg.svd(extended - extended.mean(0), full_matrices=False)
    scale = float(fitted.scale[0, 0])
    variances = values[:5] ** 2 / len(fields) / scale**2
    np.testing.assert_allclose(fitted.variances[0].numpy(), variances, rtol=1e-4)
    codes = fitted.encode(fields[:4]).numpy()
    expected = (extended[:4] - extended.mean(0)) @ right[:5].T / scale
    np.testing.assert_allclose(np.abs(codes), np.abs(expected), atol=1e-3)


def test_the_local_modes_are_those_of_the_bubbles(fields):
    fitted = BubblePCA(RankRule(components=2), seam_width=0.0, solver="full").fit(fields)
    skeleton = Skeleton.of_grid(fitted.layout)
    bubbles = skeleton.bubbles(fields.double())[:, 8:16, 24:].reshape(len(fields), -1).numpy()
    centred = bubbles - bubbles.mean(0)
    _, values, right = np.linalg.svd(centred, full_matrices=False)
    scale = float(fitted.scale[0, 0])
    np.testing.assert_allclose(
        fitted.variances[7].numpy(), values[:2] ** 2 / len(fields) / scale**2, rtol=1e-4
    )
    codes = fitted.encode(fields[:4])[:, 14:16].numpy()
    np.testing.assert_allclose(np.abs(codes), np.abs(centred[:4] @ right[:2].T) / scale, atol=1e-3)


def test_all_modes_express_every_field(fields, new_fields):
    """With nothing left out the two parts make up any field."""
    rule = RankRule(components=1000)
    stages = {
        "skeleton": SkeletonPCA(rule, solver="full"),
        "bubbles": BubblePCA(rule, solver="full"),
    }
    fitted = Chain(stages).fit(torch.cat([fields, new_fields]))
    assert relative(fitted(new_fields) - new_fields, new_fields) < 1e-6


@pytest.mark.parametrize("solver", [*SOLVERS, "hybrid"])
def test_all_solvers_find_the_same_representation(solver, fields, new_fields):
    expected = Conforming(code_size=60, solver="full").fit(fields)
    found = Conforming(code_size=60, solver=solver).fit(fields)
    assert found.ranks == expected.ranks
    reference = expected.reconstruct(new_fields)
    assert relative(found.reconstruct(new_fields) - reference, reference) < 1e-3


def test_explained_variance_is_a_share(fields):
    shares = Conforming(code_size=None, variance=0.99).fit(fields).explained_variance
    assert all(0.99 <= share <= 1 for share in shares.values())


# What it is for


def test_it_beats_two_scale_of_the_same_size(fields, new_fields):
    two_scale = TwoScale(residual_variance=0.99).fit(fields)
    conforming = Conforming(code_size=two_scale.code_size).fit(fields)
    seams = conforming.layout.seams
    errors, values, slopes = [], [], []
    for representation in (conforming, two_scale):
        difference = representation(new_fields) - new_fields
        errors.append(float(difference.norm()))
        values.append(float(value_trace(difference, seams).abs().mean()))
        slopes.append(float(normal_derivative_trace(difference, seams).abs().mean()))
    assert errors[0] < 0.6 * errors[1]
    assert values[0] < 0.3 * values[1]
    assert slopes[0] < 0.3 * slopes[1]


def test_a_seam_width_lowers_the_errors_beside_seams(fields, new_fields):
    plain, wide = (Conforming(code_size=60, seam_width=w).fit(fields) for w in (0.0, 0.1))
    traces = [
        float(value_trace(r(new_fields) - new_fields, r.layout.seams).abs().mean())
        for r in (plain, wide)
    ]
    assert traces[1] < 0.9 * traces[0]


def test_bubbles_need_no_second_fit_after_the_skeleton_is_cut(fields, monkeypatch):
    fitted = []
    fit = BubblePCA.fit
    monkeypatch.setattr(
        BubblePCA, "fit", lambda self, *a, **k: fitted.append(1) or fit(self, *a, **k)
    )
    Conforming(code_size=60).fit(fields)
    assert len(fitted) == 1


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patches": (5, 4)}, "5 patches do not divide a height of 32: use one of"),
        ({"patches": (16, 4)}, "at least 3 nodes per side, these have 2x8: use fewer patches"),
        ({"code_size": 16}, "a code of 16 is too short for 17 blocks, .* at least 17 or fewer"),
    ],
)
def test_what_cannot_be_fitted_is_told_before_any_pass(options, message):
    class Untouchable:
        shape = (50, 32, 32)

        def chunks(self):
            raise AssertionError("looked at the fields")

    with pytest.raises(TwoscaleError, match=message):
        Conforming(**options).fit(Untouchable())


@pytest.mark.parametrize("width", [-0.1, 1.5, float("nan")])
def test_a_seam_width_outside_the_domain_is_refused(width):
    with pytest.raises(TwoscaleError, match=f"0 to 1, got {width}"):
        SkeletonPCA(RankRule(components=3), seam_width=width)


def test_missing_tensors_are_told(fields):
    state = Conforming(code_size=40).fit(fields).state_dict()
    del state["stages.bubbles.total"]
    with pytest.raises(TwoscaleError, match=r"the weights lack \['total'\]: .* damaged"):
        Conforming(code_size=40).restore(state)


def test_equal_ones_look_alike_and_others_do_not():
    assert repr(Conforming()) == repr(Conforming())
    others = [
        Conforming(code_size=50),
        Conforming(seam_width=0.0),
        Conforming(patches=(2, 2)),
        Conforming(code_size=None),
    ]
    assert len({repr(one) for one in [Conforming(), *others]}) == 5
    assert repr(Chain({})) != repr(Chain({}, code_size=3))


@pytest.mark.gpu
def test_cuda_agrees_with_the_cpu(fields):
    here = Conforming(code_size=60).fit(fields)
    there = Conforming(code_size=60).fit(fields.cuda())
    assert there.ranks == here.ranks
    assert all(buffer.is_cuda for buffer in there.buffers())
    expected = here.reconstruct(fields)
    assert relative(there.reconstruct(fields.cuda()).cpu() - expected, expected) < 1e-3
