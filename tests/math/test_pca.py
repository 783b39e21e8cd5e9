from functools import partial

import numpy as np
import pytest
import torch

from tests.sources import ChunkSource
from twoscale import RankRule, TwoscaleError
from twoscale.fields.source import MappedSource
from twoscale.math import pca
from twoscale.math.pca import SOLVERS, Blocks, fit_statistics
from twoscale.runtime.threads import one_thread

any_solver = pytest.mark.parametrize("solver", SOLVERS)


def make_data(samples, blocks, features, *, decay, seed=0):
    """Correlated data (samples, blocks, features), float32, with scales and means all over."""
    rng = np.random.default_rng(seed)
    data = np.empty((samples, blocks, features))
    for k in range(blocks):
        mixing = np.linalg.qr(rng.standard_normal((features, features)))[0]
        scores = rng.standard_normal((samples, features)) * decay(np.arange(features))
        shift, scale = 3 * rng.standard_normal(features), rng.uniform(0.01, 10, features)
        data[:, k] = shift + scale * (scores @ mixing)
    return torch.from_numpy(data).float()


class Data(ChunkSource):
    """Raw data (samples, blocks, features) in chunks of a length, as a source of fields."""

    def __init__(self, data, length=10_000):
        self.data, self.length = data, length
        self.shape = tuple(data.shape)

    def chunks(self):
        yield from self.data.split(self.length)


def unchanged(data):
    return data


def statistics_of(data, length=10_000):
    return fit_statistics(Data(data, length), unchanged, data[:1])


def make_blocks(data, *, length=10_000):
    """The standardised blocks of raw data, as a representation hands them to a solver."""
    statistics = statistics_of(data, length)
    mean, scale = statistics.mean.float(), statistics.scale.float()

    def standardise(chunk, blocks):
        found = (chunk[:, blocks] - mean[blocks]) / scale[blocks]
        return found.transpose(0, 1).contiguous()

    def some(blocks):
        work = partial(standardise, blocks=blocks)
        return MappedSource(Data(data, length), work, (1, *mean[blocks].shape))

    return Blocks(some, samples=len(data), statistics=statistics)


def standardised(data, block):
    values = data[:, block].double().numpy()
    return (values - values.mean(0)) / values.std(0)


def reference(data, block):
    """Principal directions and variances by NumPy, in float64."""
    _, values, right = np.linalg.svd(standardised(data, block), full_matrices=False)
    return right.T, values**2 / len(data)


def projector(vectors):
    vectors = np.asarray(vectors, dtype=np.float64)
    return vectors @ vectors.T


@pytest.fixture(scope="module")
def data():
    return make_data(150, 3, 40, decay=lambda k: 0.6**k)


@pytest.fixture(scope="module")
def blocks(data):
    return make_blocks(data)


# Statistics


@pytest.mark.parametrize("length", [10_000, 1, 7, 149])
def test_statistics_are_the_population_mean_and_deviation(data, length):
    statistics = statistics_of(data, length)
    raw = data.double().numpy()
    np.testing.assert_allclose(statistics.mean.numpy(), raw.mean(0), rtol=1e-12)
    np.testing.assert_allclose(statistics.scale.numpy(), raw.std(0), rtol=1e-10)
    assert bool(statistics.varying.all())


@pytest.mark.parametrize("value", [0.0, 0.1, -1 / 3, 1e6 + 0.3, 1e-30])
@pytest.mark.parametrize("length", [1000, 7])
def test_a_constant_feature_has_scale_one_and_no_variance(value, length, generator):
    data = torch.randn(100, 2, 5, generator=generator)
    data[:, 1, 3] = value
    statistics = statistics_of(data, length)
    assert statistics.scale[1, 3] == 1.0
    assert (~statistics.varying).nonzero().tolist() == [[1, 3]]
    assert make_blocks(data, length=length).total.tolist() == [5.0, 4.0]
    for chunk in make_blocks(data, length=length).of(slice(None)).chunks():
        assert torch.equal(chunk[1, :, 3], torch.zeros(chunk.shape[1]))


def test_a_common_scale_leaves_plain_variances(data):
    own = statistics_of(data)
    common = own.with_common_scale()
    variances = data.double().numpy().var(0)
    np.testing.assert_allclose(common.scale.numpy(), np.sqrt(variances.mean()), rtol=1e-10)
    np.testing.assert_allclose(common.total.numpy(), variances.sum(1) / variances.mean())
    assert torch.equal(common.mean, own.mean)
    assert float(common.total.sum()) == pytest.approx(data[0].numel())


# Rank rules

VARIANCES = torch.tensor([[5.0, 3.0, 1.0, 1.0]], dtype=torch.float64)
TOTAL = torch.tensor([10.0], dtype=torch.float64)


RULES = {
    (0.3, None): 1,
    (0.5, None): 1,
    (0.51, None): 2,
    (0.81, None): 3,
    (1.0, None): 4,
    (None, 3): 3,
    (None, 9): 4,
    (0.9, 2): 2,
    (0.5, 3): 1,
}


@pytest.mark.parametrize(("rule", "rank"), RULES.items(), ids=str)
def test_rank_by_hand(rule, rank):
    variance, components = rule
    assert RankRule(variance=variance, components=components).ranks(VARIANCES, TOTAL) == [rank]


def test_each_block_has_its_own_rank():
    variances = torch.tensor([[5.0, 3.0, 2.0], [9.8, 0.1, 0.1], [0.0, 0.0, 0.0]])
    total = torch.tensor([10.0, 10.0, 0.0])
    assert RankRule(variance=0.95).ranks(variances, total) == [3, 1, 1]


@pytest.mark.parametrize("variance", [0.0, 1.5, float("nan")])
def test_shares_that_make_no_sense_are_refused(variance):
    with pytest.raises(TwoscaleError, match=str(variance)):
        RankRule(variance=variance)


@pytest.mark.parametrize("arguments", [{}, {"components": 0}])
def test_at_least_one_component_is_kept(arguments):
    with pytest.raises(TwoscaleError, match="component"):
        RankRule(**arguments)


# Solvers


@any_solver
def test_directions_and_variances_are_numpys(solver, data, blocks):
    found = SOLVERS[solver](blocks, RankRule(components=6), seed=0)
    assert found.ranks == [6, 6, 6]
    for k in range(3):
        vectors, variances = reference(data, k)
        np.testing.assert_allclose(found.variances[k].numpy(), variances[:6], rtol=1e-4)
        for rank in (1, 3, 6):
            expected = projector(vectors[:, :rank])
            np.testing.assert_allclose(projector(found.vectors[k, :, :rank]), expected, atol=2e-4)


@any_solver
@pytest.mark.parametrize("variance", [0.5, 0.9, 0.99, 0.999])
def test_rank_by_variance_is_the_smallest_that_suffices(solver, variance, data, blocks):
    found = SOLVERS[solver](blocks, RankRule(variance=variance), seed=0)
    for k, rank in enumerate(found.ranks):
        ratios = np.cumsum(reference(data, k)[1]) / 40
        assert rank == np.argmax(ratios >= variance) + 1


@any_solver
def test_columns_are_orthonormal_descending_and_padded_with_zeros(solver):
    """Blocks whose spectra fall at different speeds keep different ranks."""
    fast = make_data(150, 1, 40, decay=lambda k: 0.3**k)
    slow = make_data(150, 1, 40, decay=lambda k: 0.9**k, seed=1)
    found = SOLVERS[solver](
        make_blocks(torch.cat([fast, slow], 1)), RankRule(variance=0.99), seed=0
    )
    assert found.ranks[0] < found.ranks[1]
    assert found.vectors.shape == (2, 40, max(found.ranks))
    for k, rank in enumerate(found.ranks):
        vectors = found.vectors[k, :, :rank]
        torch.testing.assert_close(vectors.T @ vectors, torch.eye(rank), rtol=0, atol=5e-6)
        assert not found.vectors[k, :, rank:].any()
        assert not found.variances[k, rank:].any()
        assert bool((found.variances[k, :rank].diff() <= 0).all())


@any_solver
def test_signs_are_fixed(solver, blocks):
    found = SOLVERS[solver](blocks, RankRule(components=4), seed=0)
    largest = found.vectors.abs().argmax(1, keepdim=True)
    assert bool((found.vectors.gather(1, largest) > 0).all())


@any_solver
def test_fewer_samples_than_features(solver):
    data = make_data(12, 2, 40, decay=lambda k: 0.9**k)
    found = SOLVERS[solver](make_blocks(data), RankRule(variance=1.0), seed=0)
    for k, rank in enumerate(found.ranks):
        assert rank >= 11
        expected = projector(reference(data, k)[0][:, :11])
        np.testing.assert_allclose(projector(found.vectors[k, :, :11]), expected, atol=1e-3)


@any_solver
def test_a_block_that_never_varies_has_rank_one_and_no_direction(solver, data):
    data = data.clone()
    data[:, 1] = 0.1
    found = SOLVERS[solver](make_blocks(data), RankRule(variance=0.99), seed=0)
    assert found.ranks[1] == 1
    assert found.variances[1].tolist() == [0.0] * max(found.ranks)
    assert bool(torch.isfinite(found.vectors).all())
    assert not found.vectors[1].any()


def test_the_randomised_rank_grows_as_far_as_needed():
    """A slow spectrum needs far more than the first sixteen directions."""
    blocks = make_blocks(make_data(400, 2, 120, decay=lambda k: 0.95**k))
    rule = RankRule(variance=0.97)
    found = pca.randomized(blocks, rule, seed=0)
    assert min(found.ranks) > 24
    assert found.ranks == pca.full(blocks, rule, seed=0).ranks


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("room", [1, 2**30])  # with little, one block is decomposed at a time
@pytest.mark.parametrize(("samples", "features"), [(203, 62), (62, 203), (350, 350)])
def test_full_components_do_not_depend_on_threads(samples, features, room, monkeypatch):
    monkeypatch.setattr(pca, "_GRAM_BYTES", room)
    blocks = make_blocks(make_data(samples, 2, features, decay=lambda k: 0.95**k))
    rule = RankRule(variance=0.9999)
    several = pca.full(blocks, rule, seed=0)
    with one_thread():
        alone = pca.full(blocks, rule, seed=0)
    assert several.ranks == alone.ranks
    assert torch.equal(several.vectors, alone.vectors)
    assert torch.equal(several.variances, alone.variances)


def test_full_components_are_orthonormal_beyond_the_rank_of_the_data():
    data = make_data(30, 1, 50, decay=lambda k: k < 5)
    found = pca.full(make_blocks(data), RankRule(components=12), seed=0)
    products = found.vectors[0].T @ found.vectors[0]
    torch.testing.assert_close(products, torch.eye(12), rtol=0, atol=1e-5)
