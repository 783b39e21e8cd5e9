import copy

import pytest
import torch

from tests.representation.contract import RepresentationContract, relative
from tests.spaces import SPACES, poisson_fields, smooth_fields
from twoscale import GlobalPCA, PatchPCA, TwoScale, TwoscaleError
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.fields.source import ArraySource
from twoscale.fields.source import WithParameters as SourceWithParameters
from twoscale.representation import WithParameters

SCALARS = torch.tensor([1e-3, 1e5])


def scalars(samples, seed=0):
    """Two parameters of very different size, (samples, 2)."""
    generator = torch.Generator().manual_seed(seed)
    return SCALARS * (2 + torch.randn(samples, 2, generator=generator))


def beside(fields, parameters):
    """Fields with parameters as their last channels."""
    constant = parameters.reshape(*parameters.shape, *[1] * (fields.ndim - 2))
    constant = constant.expand(-1, -1, *fields.shape[2:])
    return torch.cat([fields, constant], 1)


class ParametersContract(RepresentationContract):
    """The contract on spaces whose last two channels are parameters."""

    projects = True

    @pytest.fixture(scope="class")
    @classmethod
    def space(cls, case):
        bare = SPACES.get(case, Space(Grid(cls.shape)))
        names = None if bare.names is None else (*bare.names, "one", "two")
        return Space(bare.grid, bare.channels + 2, names=names, parameters=2)

    @pytest.fixture(scope="class")
    @classmethod
    def fields(cls, case):
        bare = poisson_fields(cls.shape, 160) if case == "plain" else smooth_fields(SPACES[case])
        return beside(bare, scalars(len(bare)))

    @pytest.fixture(scope="class")
    @classmethod
    def new_fields(cls, case):
        plain = case == "plain"
        bare = poisson_fields(cls.shape, 12, 1) if plain else smooth_fields(SPACES[case], 12, 1)
        return beside(bare, scalars(12, seed=1))

    def test_training_codes_are_centred_and_have_the_stored_variances(self, fitted, fields):
        codes = copy.deepcopy(fitted).double().encode(fields.double())[:, -2:]
        assert float(codes.mean(0).abs().max()) < 1e-5
        torch.testing.assert_close(codes.var(0, unbiased=False), torch.ones(2).double())

    def test_the_unit_of_a_channel_does_not_matter(self, fields, new_fields, space):
        """The code is the same in other units."""
        unit = torch.tensor([1e4] * space.field_channels + [1e2, 1e-3]).reshape(-1, *space.ones)
        here = self.make().fit(fields, space=space)
        there = self.make().fit(fields / unit, space=space)
        expected = here.encode(new_fields)
        assert relative(there.encode(new_fields / unit) - expected, expected) < 2e-3

    def test_explained_variance_is_a_share_of_every_stage(self, fitted):
        assert fitted.explained_variance == fitted.fields.explained_variance

    def test_a_fit_leaves_nothing_of_the_one_before(self):
        """Other spaces have other parameters: see the representation of the fields."""

    def test_a_space_that_is_not_the_fields_own_is_refused(self, fields, space):
        wider = Space(space.grid, space.channels + 1, parameters=2)
        with pytest.raises(TwoscaleError, match=f"fields of {wider} were expected, these are"):
            self.make().fit(fields, space=wider)


class TestBesideGlobal(ParametersContract):
    @classmethod
    def make(cls, variance=0.99):
        return WithParameters(GlobalPCA(variance))


class TestBesidePatches(ParametersContract):
    spaces = ("plain", "channels")

    @classmethod
    def make(cls, variance=0.99):
        return WithParameters(PatchPCA(variance))

    def test_the_layout_is_that_of_the_fields(self, fitted):
        assert fitted.layout == fitted.fields.layout
        assert fitted.layout.count == 16


@pytest.fixture
def space():
    return Space(Grid((32, 32)), 3, names=("u", "a", "b"), parameters=2)


@pytest.fixture
def fields():
    return poisson_fields((32, 32), 100)


def test_the_code_is_that_of_the_fields_and_then_the_parameters(fields, space):
    parameters = scalars(100)
    fitted = WithParameters(TwoScale()).fit(beside(fields, parameters), space=space)
    alone = TwoScale().fit(fields)
    codes = fitted.encode(beside(fields, parameters))
    assert torch.equal(codes[:, :-2], alone.encode(fields))
    expected = (parameters - parameters.mean(0)) / parameters.std(0, unbiased=False)
    torch.testing.assert_close(codes[:, -2:], expected, rtol=1e-4, atol=1e-5)
    assert fitted.block_sizes == [*alone.block_sizes, 2]
    assert fitted.ranks == alone.ranks | {"parameters": [2]}
    assert fitted.fields.space == Space(Grid((32, 32)), names=("u",))


def test_parameters_are_expanded_chunk_by_chunk(fields, space):
    parameters = scalars(100)
    source = SourceWithParameters(ArraySource(fields), parameters)
    expected = WithParameters(GlobalPCA(8)).fit(beside(fields, parameters), space=space)
    found = WithParameters(GlobalPCA(8)).fit(source, space=space)
    state = expected.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in found.state_dict().items())


def test_parameters_alone():
    parameters = scalars(20)
    space = Space(Grid((1, 1)), 2, parameters=2)
    fields = parameters[:, :, None, None]
    fitted = WithParameters(None).fit(fields, space=space)
    codes = fitted.encode(fields)
    assert codes.shape == (20, fitted.code_size) == (20, 2)
    torch.testing.assert_close(fitted.decode(codes), fields)
    assert (fitted.ranks, fitted.block_sizes) == ({"parameters": [2]}, [2])
    assert fitted.explained_variance == {"parameters": 1.0}
    assert fitted.layout is None
    assert fitted.mean_and_spread is None
    torch.testing.assert_close(fitted.unit.flatten(), parameters.std(0, unbiased=False))
    again = WithParameters(None).restore(fitted.state_dict(), space)
    assert torch.equal(again.encode(fields), codes)


def test_a_parameter_that_never_varies_is_only_shifted():
    fields = torch.tensor([[2.0, 7.0], [4.0, 7.0]])[:, :, None, None]
    codes = (
        WithParameters(None).fit(fields, space=Space(Grid((1, 1)), 2, parameters=2)).encode(fields)
    )
    assert codes.tolist() == [[-1.0, 0.0], [1.0, 0.0]]


def test_decoded_parameters_are_constant_over_the_grid(fields, space):
    fitted = WithParameters(GlobalPCA(4)).fit(beside(fields, scalars(100)), space=space)
    decoded = fitted.decode(torch.randn(3, 6))
    assert torch.equal(decoded[:, 1:], decoded[:, 1:, :1, :1].expand(-1, -1, 32, 32))


def test_a_space_without_parameters_is_refused(fields):
    with pytest.raises(TwoscaleError, match="fields with parameters were expected"):
        WithParameters(GlobalPCA(4)).fit(fields)


def test_fields_need_a_representation_and_parameters_alone_have_none(fields, space):
    with pytest.raises(TwoscaleError, match="there are 1 channels beside the parameters: give a"):
        WithParameters(None).fit(beside(fields, scalars(100)), space=space)
    with pytest.raises(TwoscaleError, match="there are 0 channels beside the parameters: give a"):
        WithParameters(GlobalPCA(4)).check(Space(Grid((1, 1)), 2, parameters=2), 10)


def test_missing_tensors_are_told(fields, space):
    state = WithParameters(GlobalPCA(4)).fit(beside(fields, scalars(100)), space=space).state_dict()
    without = {name: value for name, value in state.items() if name != "scale"}
    with pytest.raises(TwoscaleError, match=r"the scale of the parameters is missing: .* damaged"):
        WithParameters(GlobalPCA(4)).restore(without, space)
    inside = {name: value for name, value in state.items() if name != "fields.mean"}
    with pytest.raises(TwoscaleError, match=r"the weights lack \['mean'\]"):
        WithParameters(GlobalPCA(4)).restore(inside, space)
