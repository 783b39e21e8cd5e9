import pytest
import torch

from tests.representation.contract import RepresentationContract, relative
from tests.spaces import poisson_fields
from twoscale import GlobalPCA, PatchPCA, RankRule
from twoscale.fields.source import as_source
from twoscale.runtime.progress import Clock


class TestNotStandardised(RepresentationContract):
    spaces = ("plain", "channels")
    projects = True

    @classmethod
    def make(cls, variance=0.99):
        return PatchPCA(RankRule(variance=variance), standardised=False)

    def test_all_features_have_one_scale(self, fitted):
        assert len(fitted.scale.unique()) == 1


@pytest.fixture(scope="module")
def fields():
    return poisson_fields((32, 32), 160)


def test_without_standardising_no_subspace_has_a_smaller_training_error(fields):
    plain = GlobalPCA(RankRule(components=8), standardised=False).fit(fields)
    standardised = GlobalPCA(RankRule(components=8)).fit(fields)
    centred = fields - fields.mean(0)
    values = torch.linalg.svdvals(centred.flatten(1).double())
    optimal = values[8:].square().sum().sqrt() / fields.double().norm()
    errors = [relative(r(fields) - fields, fields) for r in (plain, standardised)]
    assert errors[0] == pytest.approx(float(optimal), rel=1e-3)
    assert errors[0] < errors[1]


def test_the_scale_of_the_fields_does_not_matter(fields):
    """Not even where squares of single precision would vanish."""
    rule = RankRule(variance=0.99)
    here, there = (GlobalPCA(rule, standardised=False).fit(s * fields) for s in (1.0, 1e-25))
    assert here.ranks == there.ranks
    torch.testing.assert_close(there.variances, here.variances, rtol=1e-3, atol=1e-3)
    assert relative(1e25 * there(1e-25 * fields) - here(fields), fields) < 1e-4


@pytest.mark.parametrize("standardised", [True, False])
def test_explained_variance_is_that_of_the_rule(fields, standardised):
    fitted = GlobalPCA(RankRule(variance=0.9), standardised=standardised).fit(fields)
    one_less = GlobalPCA(RankRule(components=fitted.code_size - 1), standardised=standardised).fit(
        fields
    )
    assert one_less.explained_variance["pca"] < 0.9 <= fitted.explained_variance["pca"] <= 1


@pytest.mark.parametrize("standardised", [True, False])
def test_fields_that_never_vary(standardised):
    fields = torch.full((5, 1, 8, 8), 0.1)
    fitted = GlobalPCA(RankRule(variance=0.9), standardised=standardised).fit(fields)
    assert torch.equal(fitted(fields), fields)
    assert fitted.explained_variance == {"pca": 0.0}


def test_truncating_keeps_the_leading_modes(fields):
    fitted = PatchPCA(RankRule(components=5), patches=(2, 2)).fit(fields)
    codes = fitted.encode(fields[:3]).reshape(3, 4, 5)
    assert fitted.truncate([2, 3, 1, 3])
    assert fitted.ranks == {"pca": [2, 3, 1, 3]}
    assert fitted.vectors.shape[2] == 3
    kept = [codes[:, k, :rank] for k, rank in enumerate([2, 3, 1, 3])]
    torch.testing.assert_close(fitted.encode(fields[:3]), torch.cat(kept, 1))
    assert not fitted.truncate([2, 3, 1, 3])
    again = PatchPCA(RankRule(components=5), patches=(2, 2))
    again.restore(fitted.state_dict(), fitted.space)
    assert again.ranks == fitted.ranks


def test_it_may_be_fitted_by_another_rule_than_its_own(fields):
    pca = GlobalPCA(RankRule(components=5)).fit(fields)
    other, source = RankRule(components=2), as_source(fields)
    pca.fit_by(other, source, space=pca.space, seed=0, clock=Clock(), name="output")
    assert pca.code_size == 2
    assert pca.rule == RankRule(components=5)


def test_mean_and_spread_are_those_of_the_channel_that_varies_least(fields):
    """Beside its mean; a channel that never varies has nothing to lose."""
    large, small = 1e6 * fields / fields.std(), 7 + 1e-3 * fields / fields.std()
    constant = torch.full_like(fields, 5.0)
    fitted = GlobalPCA(3).fit(torch.cat([large, small, constant], 1))
    mean, spread = fitted.mean_and_spread
    assert mean == pytest.approx(7, rel=1e-2)
    assert 1e-4 < spread < 1e-2
    alone = GlobalPCA(3).fit(small).mean_and_spread
    assert (mean, spread) == pytest.approx(alone, rel=1e-2)
    assert GlobalPCA(3).fit(constant).mean_and_spread == (5.0, 0.0)


@pytest.mark.parametrize("solver", ["full", "randomized"])
@pytest.mark.parametrize("standardised", [True, False])
def test_what_varies_by_rounding_beside_the_fields_of_a_chain_has_no_part(
    solver, standardised, fields, generator
):
    """A channel of rounding errors that are large beside another channel's variation."""
    first = 1e-6 * fields / fields.std()
    noise = 0.5 * torch.randn(fields.shape, generator=generator)
    options = {"patches": (2, 2), "solver": solver, "standardised": standardised}
    fitted, alone = PatchPCA(6, **options), PatchPCA(6, **options)
    fitted.noise_units = torch.tensor([1e-6, 1e6], dtype=torch.float64)
    fitted.fit(torch.cat([first, noise], 1))
    alone.fit(first)
    assert not fitted.vectors[:, 256:].any()
    torch.testing.assert_close(fitted.variances, alone.variances, rtol=1e-4, atol=1e-4)
    kept = fitted.vectors[0]
    torch.testing.assert_close(kept.T @ kept, torch.eye(6), rtol=0, atol=1e-5)
    decoded = fitted(torch.cat([first, noise], 1))[:, :1]
    assert relative(decoded - alone(first), first) < 1e-4


def test_a_node_that_varies_by_rounding_only_keeps_its_mean(fields, generator):
    """Standardised, it would count as much as others, and another value would be a huge code."""
    noisy = fields.clone()
    noisy[..., 0] = 1 + 1e-7 * torch.randn(noisy[..., 0].shape, generator=generator)
    constant = noisy.clone()
    constant[..., 0] = 1
    fitted, alone = (PatchPCA(0.99).fit(one) for one in (noisy, constant))
    assert fitted.ranks == alone.ranks
    torch.testing.assert_close(fitted(noisy)[..., 0], constant[..., 0], rtol=1e-6, atol=0)
    other = noisy.clone()
    other[..., 0] = 2
    assert torch.equal(fitted.encode(other), fitted.encode(noisy))


def test_the_spread_of_codes_is_that_of_the_training_fields(fields):
    pca = PatchPCA(RankRule(variance=0.9)).fit(fields)
    assert len(set(pca.ranks["pca"])) > 1  # blocks are padded
    torch.testing.assert_close(pca.code_spread, pca.encode(fields).std(0), rtol=0.02, atol=1e-4)
