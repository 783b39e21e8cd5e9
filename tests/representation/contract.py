"""What every representation must satisfy; subclassed for each implementation."""

from __future__ import annotations

import copy
import json

import pytest
import torch
from torch import Tensor

from tests.sources import ChunkSource
from tests.spaces import SPACES, UNITS, poisson_fields, smooth_fields
from twoscale import Representation, TwoscaleError
from twoscale.domain.grid import Grid
from twoscale.domain.space import Space
from twoscale.parts import build, describe
from twoscale.representation import BlockPCA
from twoscale.runtime.progress import Clock


class Chunks(ChunkSource):
    """Fields handed out in chunks of unequal length, as a store on disk would."""

    def __init__(self, fields: Tensor, lengths: tuple[int, ...] = (37, 1, 50)) -> None:
        self.fields = fields
        self.lengths = lengths

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.fields.shape)

    def chunks(self):
        start, turn = 0, 0
        while start < len(self.fields):
            stop = start + self.lengths[turn % len(self.lengths)]
            yield self.fields[start:stop]
            start, turn = stop, turn + 1

    def to(self, device):
        return Chunks(self.fields.to(device), self.lengths)


def primitives(representation: Representation) -> list[BlockPCA]:
    """Return the PCAs a representation is made of, in the order of their codes."""
    return [module for module in representation.modules() if isinstance(module, BlockPCA)]


def relative(error: Tensor, reference: Tensor) -> float:
    return float(error.norm() / reference.norm())


def worst_channel(found: Tensor, expected: Tensor) -> float:
    """Return the largest relative error that a channel has."""
    apart = zip(found.unbind(1), expected.unbind(1), strict=True)
    return max(relative(one - other, other) for one, other in apart)


def assert_same_bits(one: Representation, other: Representation) -> None:
    first, second = one.state_dict(), other.state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[key], second[key]) for key in first)


class RepresentationContract:
    """Subclasses say how to make the representation and on which spaces.

    `make(variance)` returns an unfitted one whose last stage keeps that variance. `projects` says
    whether decoding after encoding is a projection, which overlap and restriction prevent. `shape`
    is the grid of Poisson's solutions, "plain"; `spaces` are those of the tests of this class. What
    a subclass adds is tested on the first of them.
    """

    shape = (32, 32)
    spaces: tuple[str, ...] = ("plain", *SPACES)
    projects = False
    error_on_new_fields = 0.25

    @classmethod
    def make(cls, variance: float = 0.99) -> Representation:
        raise NotImplementedError

    @classmethod
    def timed_stages(cls, representation: Representation) -> set[str]:
        """Return the stages whose seconds a fit with the name "input" tells."""
        stages = getattr(representation, "stages", None) or ["input"]
        overhead = {"pca_overhead"} if len(stages) > 1 else set()
        return {f"pca_{name}" for name in stages} | overhead

    def pytest_generate_tests(self, metafunc) -> None:
        if "case" in metafunc.fixturenames:
            inherited = metafunc.function.__qualname__.startswith(RepresentationContract.__name__)
            spaces = self.spaces if inherited else self.spaces[:1]
            part = self.make()
            spaces = [one for one in spaces if one == "plain" or part.supports(SPACES[one].domain)]
            metafunc.parametrize("case", spaces, indirect=True, scope="class")

    @pytest.fixture(scope="class")
    @classmethod
    def case(cls, request) -> str:
        return request.param

    @pytest.fixture(scope="class")
    @classmethod
    def space(cls, case) -> Space:
        return SPACES.get(case, Space(Grid(cls.shape)))

    @pytest.fixture(scope="class")
    @classmethod
    def fields(cls, case, space) -> Tensor:
        return poisson_fields(cls.shape, 160) if case == "plain" else smooth_fields(space)

    @pytest.fixture(scope="class")
    @classmethod
    def new_fields(cls, case, space) -> Tensor:
        plain = case == "plain"
        return poisson_fields(cls.shape, 12, 1) if plain else smooth_fields(space, 12, 1)

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, fields, space) -> Representation:
        return cls.make().fit(fields, space=space, seed=3)

    # Shapes and sizes

    def test_a_fit_returns_itself_is_timed_and_leaves_its_arguments(
        self, fields, new_fields, space
    ):
        before, clock, representation = (fields.clone(), new_fields.clone()), Clock(), self.make()
        found = representation.fit(fields, space=space, clock=clock, name="input")
        assert found is representation
        assert representation.space == space
        assert set(clock.seconds) >= self.timed_stages(representation)
        assert all(seconds >= 0 for seconds in clock.seconds.values())
        codes = representation.encode(new_fields)
        kept = codes.clone()
        representation.decode(codes)
        assert torch.equal(fields, before[0])
        assert torch.equal(new_fields, before[1])
        assert torch.equal(codes, kept)

    def test_shapes(self, fitted, new_fields):
        codes = fitted.encode(new_fields)
        assert codes.shape == (len(new_fields), fitted.code_size)
        assert fitted.decode(codes).shape == new_fields.shape

    def test_every_code_has_a_spread(self, fitted):
        assert fitted.code_spread.shape == (fitted.code_size,)
        assert bool((fitted.code_spread >= 0).all())

    def test_code_size_is_the_sum_of_blocks_and_of_ranks(self, fitted):
        assert fitted.code_size == sum(fitted.block_sizes)
        assert fitted.block_sizes == [sum(ranks) for ranks in fitted.ranks.values()]
        assert all(rank >= 1 for ranks in fitted.ranks.values() for rank in ranks)

    def test_a_single_field_and_the_zero_field(self, fitted, new_fields, space):
        one = fitted.reconstruct(new_fields[:1])
        assert one.shape == (1, *space.shape)
        nothing = fitted.reconstruct(torch.zeros(1, *space.shape))
        assert bool(torch.isfinite(nothing).all())

    def test_no_fields_at_all(self, fitted, space):
        assert fitted.encode(torch.zeros(0, *space.shape)).shape == (0, fitted.code_size)
        assert fitted.decode(torch.zeros(0, fitted.code_size)).shape == (0, *space.shape)

    def test_the_layout_is_of_this_grid(self, fitted, space):
        assert fitted.layout is None or Grid.of_layout(fitted.layout) == space.grid

    def test_fields_of_another_shape_are_told(self, fitted, space):
        channels, *sides = space.shape
        others = [
            (channels, *sides[:-1], sides[-1] + 2),
            (channels, *(2 * side for side in reversed(sides))),
            (channels + 1, *sides),
            tuple(sides),
        ]
        for shape in others:
            with pytest.raises(TwoscaleError, match="was fitted on fields of"):
                fitted.encode(torch.zeros(2, *shape))

    def test_a_space_that_is_not_the_fields_own_is_refused(self, fields, space):
        wider = Space(space.grid, space.channels + 1)
        with pytest.raises(TwoscaleError, match=f"fields of {wider} were expected, these are"):
            self.make().fit(fields, space=wider)

    def test_codes_of_another_size_are_told(self, fitted):
        for size in (fitted.code_size - 1, fitted.code_size + 1):
            with pytest.raises(TwoscaleError, match=f"have {fitted.code_size} entries"):
                fitted.decode(torch.zeros(2, size))

    def test_an_unfitted_one_says_so(self, space):
        unfitted = self.make()
        for use in (unfitted.encode, unfitted.decode):
            with pytest.raises(TwoscaleError, match="not fitted yet: call fit first"):
                use(torch.zeros(2, *space.shape))

    # Laws

    def test_encoding_is_affine(self, fitted, new_fields):
        module = copy.deepcopy(fitted).double()
        x, y = new_fields[:6].double(), new_fields[6:].double()
        expected = 1.7 * module.encode(x) - 0.7 * module.encode(y)
        torch.testing.assert_close(module.encode(1.7 * x - 0.7 * y), expected)

    def test_decoding_is_affine(self, fitted, generator):
        module = copy.deepcopy(fitted).double()
        shape = (2, 4, fitted.code_size)
        z, w = torch.randn(shape, dtype=torch.float64, generator=generator)
        expected = 1.7 * module.decode(z) - 0.7 * module.decode(w)
        torch.testing.assert_close(module.decode(1.7 * z - 0.7 * w), expected)

    def test_training_codes_are_centred_and_have_the_stored_variances(self, fitted, fields):
        module = copy.deepcopy(fitted).double()
        codes = module.encode(fields.double())
        variances = torch.cat(
            [
                pca.variances[block, : int(rank)]
                for pca in primitives(module)
                for block, rank in enumerate(pca.rank)
            ]
        )
        largest = float(variances.max())
        assert float(codes.mean(0).abs().max()) < 1e-4 * largest**0.5
        torch.testing.assert_close(
            codes.var(0, unbiased=False), variances, rtol=1e-3, atol=1e-4 * largest
        )

    def test_principal_directions_are_orthonormal(self, fitted):
        for pca in primitives(fitted):
            for vectors, rank in zip(pca.vectors, pca.rank.tolist(), strict=True):
                kept = vectors[:, :rank]
                torch.testing.assert_close(kept.T @ kept, torch.eye(rank), rtol=0, atol=1e-5)
                assert not vectors[:, rank:].any()

    def test_decoding_after_encoding_is_a_projection(self, fitted, new_fields):
        if not self.projects:
            pytest.skip("overlap or restriction: no projection")
        module = copy.deepcopy(fitted).double()
        once = module.reconstruct(new_fields.double())
        assert worst_channel(module.reconstruct(once), once) < 1e-5
        codes = module.encode(new_fields.double())
        assert relative(module.encode(module.decode(codes)) - codes, codes) < 1e-5

    def test_more_variance_never_gives_a_larger_training_error(self, fields, space):
        errors, sizes = [], []
        for variance in (0.7, 0.9, 0.999):
            representation = self.make(variance).fit(fields, space=space)
            sizes.append(representation.code_size)
            unit = representation.unit
            difference = representation.reconstruct(fields) - fields
            errors.append(relative(difference / unit, fields / unit))
        assert sizes == sorted(sizes)
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 0.5 * errors[0]

    def test_it_represents_fields_it_has_not_seen(self, fitted, new_fields):
        """Every channel of them, whatever its unit."""
        assert worst_channel(fitted(new_fields), new_fields) < self.error_on_new_fields

    def test_explained_variance_is_a_share_of_every_stage(self, fitted):
        shares = fitted.explained_variance
        assert shares.keys() == fitted.ranks.keys()
        assert all(0 < share <= 1 + 1e-5 for share in shares.values())

    # Channels

    def test_the_unit_of_a_channel_is_the_size_of_its_deviations(self, fitted, fields, space):
        deviations = (fields - fields.mean(0)).square().flatten(2).mean((0, 2)).sqrt()
        assert fitted.unit.shape == (space.channels, *space.ones)
        ratios = fitted.unit.flatten() / deviations
        most = 10 if space.channels == 1 else 3  # of one channel the order of magnitude matters
        assert 1 / most < float(ratios.min())
        assert float(ratios.max()) < most

    def test_the_unit_of_a_channel_does_not_matter(self, fields, fitted, new_fields, space):
        """In units a million times smaller the second channel is the same field."""
        if space.channels == 1:
            pytest.skip("a single channel")
        unit = torch.tensor(UNITS)[:, None, None]
        there = self.make().fit(fields / unit, space=space, seed=3)
        assert there.ranks == fitted.ranks
        assert worst_channel(unit * there(new_fields / unit), fitted(new_fields)) < 2e-3

    # Gradients

    def test_decoding_is_differentiable(self, fitted, generator):
        module = copy.deepcopy(fitted).double()
        unit = fitted.unit.double()
        shape = (2, fitted.code_size)
        codes = torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)
        assert torch.autograd.gradcheck(lambda z: module.decode(z) / unit, codes, fast_mode=True)

    def test_gradients_reach_the_codes_and_the_fields(self, fitted, new_fields):
        codes = fitted.encode(new_fields).requires_grad_()
        fitted.decode(codes).square().sum().backward()
        assert bool(torch.isfinite(codes.grad).all())
        assert bool((codes.grad != 0).any())
        leaf = new_fields.clone().requires_grad_()
        fitted.encode(leaf).sum().backward()
        assert bool(torch.isfinite(leaf.grad).all())

    def test_nothing_in_it_is_trained(self, fitted):
        assert list(fitted.parameters()) == []

    # Precision

    def test_it_computes_in_its_own_precision_whatever_comes_in(self, fitted, new_fields):
        codes = fitted.encode(new_fields)
        assert codes.dtype == fitted.decode(codes).dtype == torch.float32
        assert fitted.encode(new_fields.double()).dtype == torch.float32
        assert fitted.decode(codes.double()).dtype == torch.float32
        module = copy.deepcopy(fitted).double()
        assert module.encode(new_fields).dtype == module.decode(codes).dtype == torch.float64
        exact = module.reconstruct(new_fields.double())
        assert worst_channel(fitted(new_fields).double(), exact) < 1e-4

    def test_float64_fields_give_the_same_fit(self, fitted, fields, new_fields, space):
        again = self.make().fit(fields.double(), space=space, seed=3)
        assert again.dtype == torch.float32
        assert again.ranks == fitted.ranks
        assert worst_channel(again(new_fields), fitted(new_fields)) < 1e-3

    # Independence and repetition

    def test_no_field_depends_on_its_batch(self, fitted, new_fields):
        together = fitted.encode(new_fields)
        alone = torch.cat([fitted.encode(field[None]) for field in new_fields])
        torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-4)
        decoded = torch.cat([fitted.decode(code[None]) for code in together])
        assert worst_channel(decoded, fitted.decode(together)) < 1e-5

    def test_a_fit_leaves_nothing_of_the_one_before(self, fields, fitted, space):
        other = SPACES["line" if space.channels > 1 else "channels"]
        representation = self.make().fit(smooth_fields(other), space=other)
        assert_same_bits(representation.fit(fields, space=space, seed=3), fitted)

    def test_its_description_and_the_same_seed_give_the_same_fit(self, fields, fitted, space):
        text = json.dumps(describe(self.make()))
        again = build(json.loads(text), Representation)
        assert repr(again) == repr(self.make())
        assert_same_bits(again.fit(fields, space=space, seed=3), fitted)

    def test_fitting_from_chunks_equals_fitting_from_a_tensor(
        self, fields, fitted, new_fields, space
    ):
        chunked = self.make().fit(Chunks(fields), space=space, seed=3)
        assert chunked.ranks == fitted.ranks
        assert worst_channel(chunked(new_fields), fitted(new_fields)) < 1e-3

    def test_restoring_gives_the_same_bits(self, fitted, new_fields, space):
        state = {name: tensor.clone() for name, tensor in fitted.state_dict().items()}
        restored = self.make().restore(state, space)
        assert restored.space == space
        assert restored.ranks == fitted.ranks
        assert restored.layout == fitted.layout
        assert torch.equal(restored.unit, fitted.unit)
        assert restored.mean_and_spread == pytest.approx(fitted.mean_and_spread)
        codes = fitted.encode(new_fields)
        assert torch.equal(restored.encode(new_fields), codes)
        assert torch.equal(restored.decode(codes), fitted.decode(codes))
        assert_same_bits(restored, fitted)
