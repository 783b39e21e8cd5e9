import numpy as np
import pytest
import torch

from tests.representation.contract import RepresentationContract, relative
from tests.spaces import poisson_fields
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.errors import TwoscaleError
from twoscale.math.pca import SOLVERS, RankRule
from twoscale.representation import BubblePCA, Chain, Conforming, SkeletonPCA
from twoscale.representation.skeleton import Skeleton


class ConformingContract(RepresentationContract):
    """All that is asked of a representation, and no seams."""

    projects = True

    def test_it_is_continuous_for_any_code(self, fitted, generator):
        """The lines between patches are the skeleton's own values: bubbles never touch them."""
        codes = 1e3 * torch.randn(20, fitted.code_size, generator=generator)
        part, _ = codes.split(fitted.block_sizes, 1)
        field, global_part = fitted.decode(codes), fitted.stages["skeleton"].decode(part)
        rows, columns = fitted.layout.seams.rows, fitted.layout.seams.columns
        assert len(rows) * len(columns) > 0
        assert torch.equal(field[:, :, rows], global_part[:, :, rows])
        assert torch.equal(field[..., columns], global_part[..., columns])

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
        edges = (field[:, :, 0], field[:, :, -1], field[..., 0], field[..., -1])
        assert not any(bool(edge.any()) for edge in edges)


class TestByVariance(ConformingContract):
    @classmethod
    def make(cls, variance=0.99):
        return Conforming(code_size=None, variance=variance)

    def test_ranks_are_named_after_the_parts(self, fitted):
        assert list(fitted.ranks) == ["skeleton", "bubbles"]
        assert len(fitted.ranks["skeleton"]) == 1
        assert len(fitted.ranks["bubbles"]) == 16
        assert fitted.layout == Grid((32, 32)).partition((4, 4))


class TestByCodeSize(ConformingContract):
    spaces = ("plain", "channels")

    @classmethod
    def make(cls, variance=0.99):
        sizes = {0.7: 20, 0.9: 40, 0.99: 80, 0.999: 120}
        return Conforming(code_size=sizes[variance])

    def test_the_code_has_the_size_asked_for(self, fitted):
        assert fitted.code_size == 80


class TestPlainNorm(ConformingContract):
    spaces = ("plain", "channels")

    @classmethod
    def make(cls, variance=0.99):
        return Conforming(code_size=None, variance=variance, seam_width=0.0, solver="covariance")


class TestRectangle(ConformingContract):
    shape = (16, 32)
    spaces = ("plain",)

    @classmethod
    def make(cls, variance=0.99):
        return Conforming(patches=(2, 4), code_size=None, variance=variance)


class TestUnequalPatches(ConformingContract):
    shape = (17, 23)
    spaces = ("plain",)

    @classmethod
    def make(cls, variance=0.99):
        return Conforming(code_size=None, variance=variance)


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
    return poisson_fields((32, 32), 200)


@pytest.fixture(scope="module")
def new_fields():
    return poisson_fields((32, 32), 30, 1)


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
    bubbles = skeleton.bubbles(fields.double())[:, 0, 8:16, 24:].reshape(len(fields), -1).numpy()
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


# What it is for


def beside_seams(fields, order):
    """The mean first or second difference across the seams of 4 x 4 patches of 32 x 32 nodes."""
    lines = torch.tensor([8, 16, 24]) - 1
    across = [fields.diff(order, dim=axis).index_select(axis, lines) for axis in (2, 3)]
    return float(sum(one.abs().mean() for one in across)) / 2


def test_a_seam_width_lowers_the_errors_beside_seams(fields, new_fields):
    plain, wide = (Conforming(code_size=60, seam_width=w).fit(fields) for w in (0.0, 0.1))
    traces = [beside_seams(r(new_fields) - new_fields, 1) for r in (plain, wide)]
    assert traces[1] < 0.9 * traces[0]


def test_bubbles_need_no_second_fit_after_the_skeleton_is_cut(fields, monkeypatch):
    fitted = []
    fit = BubblePCA.fit_by
    monkeypatch.setattr(
        BubblePCA, "fit_by", lambda self, *a, **k: fitted.append(1) or fit(self, *a, **k)
    )
    Conforming(code_size=60).fit(fields)
    assert len(fitted) == 1


# Any grid, any channels

ANY_GRID = [
    (Grid((17, 23)), (4, 4)),
    (Grid((1, 64)), (4, 4)),
    (Grid((1, 65), periodic=(False, True)), (1, 4)),
    (Grid.square(32, periodic=True), (4, 4)),
    (Grid((17, 16), periodic=(True, True)), (4, 4)),
    (Grid((17, 16), periodic=(True, False)), (1, 3)),
]


@pytest.mark.parametrize(("grid", "patches"), ANY_GRID, ids=str)
def test_all_modes_express_channels_of_any_grid(grid, patches, generator):
    """Random fields, of two channels whose sizes are 1e6 apart."""
    sizes = torch.tensor([1.0, 1e-6])[:, None, None]
    fields = sizes * torch.randn(40, 2, *grid.shape, generator=generator)
    rule = RankRule(components=1000)
    stages = {
        "skeleton": SkeletonPCA(rule, patches=patches, solver="full"),
        "bubbles": BubblePCA(rule, patches=patches, solver="full"),
    }
    fitted = Chain(stages).fit(fields, space=Space(grid, 2))
    difference = fitted.reconstruct(fields) - fields
    for channel in range(2):
        assert relative(difference[:, channel], fields[:, channel]) < 2e-6


@pytest.mark.parametrize(("grid", "patches"), ANY_GRID, ids=str)
def test_any_code_is_continuous_on_any_grid(grid, patches, generator):
    fields = torch.randn(30, 2, *grid.shape, generator=generator)
    fitted = Conforming(patches=patches, code_size=60).fit(fields, space=Space(grid, 2))
    codes = torch.randn(4, 60, generator=generator)
    part, other = codes.split(fitted.block_sizes, 1)
    skeleton, bubbles = fitted.stages["skeleton"], fitted.stages["bubbles"]
    assert not bubbles.skeleton.trace(bubbles.decode(other)).any()
    traces = bubbles.skeleton.trace(fitted.decode(codes))
    assert torch.equal(traces, bubbles.skeleton.trace(skeleton.decode(part)))


def test_a_channel_in_another_unit_changes_nothing(fields, new_fields):
    """Of two channels that say the same, each is as good as alone, with the same code size."""
    alone = Conforming(code_size=60, solver="full").fit(fields)
    unit = torch.tensor([1.0, 1e6])[:, None, None]
    both = Conforming(code_size=60, solver="full").fit(fields * unit)
    assert both.ranks == alone.ranks
    expected = alone(new_fields)
    found = both(new_fields * unit) / unit
    assert relative(found - expected, expected.expand_as(found)) < 1e-3


def test_a_channel_without_bubbles_takes_no_modes_of_the_patches(fields, new_fields, generator):
    """What rounding leaves of its bubbles counts next to nothing."""
    ramp = torch.linspace(0, 1, 32)[:, None] + torch.linspace(0, 1, 32)
    old, new = (
        torch.cat([u, torch.randn(len(u), 1, 1, 1, generator=generator) * ramp], 1)
        for u in (fields, new_fields)
    )
    alone, both = Conforming(code_size=80).fit(fields), Conforming(code_size=81).fit(old)
    assert both.block_sizes[1] == alone.block_sizes[1]
    before = relative(alone(new_fields) - new_fields, new_fields)
    difference = both(new) - new
    assert relative(difference[:, :1], new[:, :1]) < 1.05 * before
    assert relative(difference[:, 1:], new[:, 1:]) < 1e-3


def test_energies_are_those_of_the_decoded_fields(fields):
    """Two channels, plain norm: a mode's variance times the square of what a unit decodes to."""
    both = torch.cat([fields, 1e3 * fields.flip(3).roll(1, 0)], 1)
    unit = torch.tensor([1.0, 256.0])[:, None, None]
    for part in (SkeletonPCA, BubblePCA):
        fitted = part(RankRule(components=3), seam_width=0.0, solver="full").fit(both)
        codes = torch.cat([torch.zeros(1, fitted.code_size), torch.eye(fitted.code_size)])
        decoded = fitted.decode(codes)
        squares = ((decoded[1:] - decoded[0]) / unit).double().square().sum((1, 2, 3))
        expected = fitted.variances.double() * squares.reshape(fitted.variances.shape)
        torch.testing.assert_close(fitted.energies(unit), expected, rtol=1e-3, atol=1e-9)


# Errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patches": (17, 4)}, "a height of 32 nodes can be cut into 1 to 10 patches, got 17"),
        ({"patches": (4, 11)}, "a width of 32 nodes can be cut into 1 to 10 patches, got 11"),
        ({"code_size": 16}, "a code of 16 is too short for 17 blocks, .* at least 17 or fewer"),
    ],
)
def test_what_cannot_be_fitted_is_told_before_any_pass(options, message):
    class Untouchable:
        shape = (50, 1, 32, 32)

        def chunks(self):
            raise AssertionError("looked at the fields")

    with pytest.raises(TwoscaleError, match=message):
        Conforming(**options).fit(Untouchable())


@pytest.mark.parametrize("width", [-0.1, 1.5, float("nan")])
def test_a_seam_width_outside_the_domain_is_refused(width):
    with pytest.raises(TwoscaleError, match=f"0 to 1, got '{width}'"):
        SkeletonPCA(RankRule(components=3), seam_width=width)


@pytest.mark.gpu
def test_cuda_agrees_with_the_cpu(fields):
    here = Conforming(code_size=60).fit(fields)
    there = Conforming(code_size=60).fit(fields.cuda())
    assert there.ranks == here.ranks
    assert all(buffer.is_cuda for buffer in there.buffers())
    expected = here.reconstruct(fields)
    assert relative(there.reconstruct(fields.cuda()).cpu() - expected, expected) < 1e-3
