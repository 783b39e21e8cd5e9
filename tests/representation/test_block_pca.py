import pytest
import torch

from tests.representation.contract import RepresentationContract, relative
from tests.representation.spaces import poisson_fields
from twoscale import GlobalPCA, PatchPCA, RankRule


class TestNotStandardised(RepresentationContract):
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


def test_a_rule_given_to_fit_takes_the_place_of_its_own(fields):
    pca = GlobalPCA(RankRule(components=5))
    assert pca.fit(fields, rule=RankRule(components=2)).code_size == 2
    assert pca.rule == RankRule(components=5)
