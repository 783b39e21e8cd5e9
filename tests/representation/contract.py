"""What every representation must satisfy; subclassed for each implementation."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from tests.conftest import make_poisson
from twoscale import Representation, TwoscaleError
from twoscale.representation import BlockPCA
from twoscale.runtime.timing import Clock


class Chunks:
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


class RepresentationContract:
    """Subclasses say how to make the representation and on which grid.

    `make(variance)` returns an unfitted one whose last stage keeps that variance. `projects` says
    whether decoding after encoding is a projection, which overlap and restriction prevent.
    """

    shape = (32, 32)
    projects = False
    error_on_new_fields = 0.25

    @classmethod
    def make(cls, variance: float = 0.99) -> Representation:
        raise NotImplementedError

    @pytest.fixture(scope="class")
    @classmethod
    def fields(cls) -> Tensor:
        return make_poisson(cls.shape, 160).outputs

    @pytest.fixture(scope="class")
    @classmethod
    def new_fields(cls) -> Tensor:
        return make_poisson(cls.shape, 12, seed=1).outputs

    @pytest.fixture(scope="class")
    @classmethod
    def fitted(cls, fields) -> Representation:
        return cls.make().fit(fields, seed=3)

    # Shapes and sizes

    def test_fit_returns_the_representation_itself(self, fields):
        representation = self.make()
        assert representation.fit(fields) is representation

    def test_shapes(self, fitted, new_fields):
        codes = fitted.encode(new_fields)
        assert codes.shape == (len(new_fields), fitted.code_size)
        assert fitted.decode(codes).shape == new_fields.shape
        assert codes.dtype == fitted.decode(codes).dtype == torch.float32

    def test_code_size_is_the_sum_of_blocks_and_of_ranks(self, fitted):
        assert fitted.code_size == sum(fitted.block_sizes)
        assert fitted.block_sizes == [sum(ranks) for ranks in fitted.ranks.values()]
        assert all(rank >= 1 for ranks in fitted.ranks.values() for rank in ranks)

    def test_a_single_field_and_the_zero_field(self, fitted, new_fields):
        one = fitted.reconstruct(new_fields[:1])
        assert one.shape == (1, *self.shape)
        nothing = fitted.reconstruct(torch.zeros(1, *self.shape))
        assert bool(torch.isfinite(nothing).all())

    def test_no_fields_at_all(self, fitted):
        assert fitted.encode(torch.zeros(0, *self.shape)).shape == (0, fitted.code_size)
        assert fitted.decode(torch.zeros(0, fitted.code_size)).shape == (0, *self.shape)

    def test_the_layout_is_of_this_grid(self, fitted):
        assert fitted.layout is None or fitted.layout.shape == self.shape

    def test_fields_of_another_shape_are_told(self, fitted):
        height, width = self.shape
        for shape in ((height, width + 2), (width * 2, height * 2), (height * width,)):
            with pytest.raises(TwoscaleError, match="was fitted on fields of"):
                fitted.encode(torch.zeros(2, *shape))

    def test_codes_of_another_size_are_told(self, fitted):
        for size in (fitted.code_size - 1, fitted.code_size + 1):
            with pytest.raises(TwoscaleError, match=f"have {fitted.code_size} entries"):
                fitted.decode(torch.zeros(2, size))

    def test_the_fit_is_timed(self, fields):
        clock = Clock()
        representation = self.make().fit(fields, clock=clock, name="input")
        stages = getattr(representation, "stages", None)
        expected = {f"pca_{name}" for name in stages or ["input"]}
        if stages and len(stages) > 1:
            expected.add("pca_overhead")
        assert set(clock.seconds) >= expected
        assert all(seconds >= 0 for seconds in clock.seconds.values())

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
        twice = module.reconstruct(once)
        assert relative(twice - once, once) < 1e-5
        codes = module.encode(new_fields.double())
        assert relative(module.encode(module.decode(codes)) - codes, codes) < 1e-5

    def test_more_variance_never_gives_a_larger_training_error(self, fields):
        errors, sizes = [], []
        for variance in (0.7, 0.9, 0.99, 0.999):
            representation = self.make(variance).fit(fields)
            sizes.append(representation.code_size)
            errors.append(relative(representation.reconstruct(fields) - fields, fields))
        assert sizes == sorted(sizes)
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < 0.5 * errors[0]

    def test_it_represents_fields_it_has_not_seen(self, fitted, new_fields):
        assert relative(fitted(new_fields) - new_fields, new_fields) < self.error_on_new_fields

    # Gradients

    def test_decoding_is_differentiable(self, fitted, generator):
        module = copy.deepcopy(fitted).double()
        shape = (2, fitted.code_size)
        codes = torch.randn(shape, dtype=torch.float64, generator=generator, requires_grad=True)
        assert torch.autograd.gradcheck(module.decode, codes, fast_mode=True)

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

    # Independence and repetition

    def test_arguments_are_left_unchanged(self, fields, new_fields):
        before = fields.clone(), new_fields.clone()
        representation = self.make().fit(fields)
        codes = representation.encode(new_fields)
        kept = codes.clone()
        representation.decode(codes)
        assert torch.equal(fields, before[0])
        assert torch.equal(new_fields, before[1])
        assert torch.equal(codes, kept)

    def test_no_field_depends_on_its_batch(self, fitted, new_fields):
        together = fitted.encode(new_fields)
        alone = torch.cat([fitted.encode(field[None]) for field in new_fields])
        torch.testing.assert_close(alone, together, rtol=1e-4, atol=1e-4)
        decoded = torch.cat([fitted.decode(code[None]) for code in together])
        assert relative(decoded - fitted.decode(together), decoded) < 1e-5

    def test_the_same_seed_gives_the_same_fit(self, fields, fitted):
        again = self.make().fit(fields, seed=3).state_dict()
        state = fitted.state_dict()
        assert state.keys() == again.keys()
        assert all(torch.equal(state[key], again[key]) for key in state)

    def test_fitting_from_chunks_equals_fitting_from_a_tensor(self, fields, fitted, new_fields):
        chunked = self.make().fit(Chunks(fields), seed=3)
        assert chunked.ranks == fitted.ranks
        expected = fitted.reconstruct(new_fields)
        assert relative(chunked.reconstruct(new_fields) - expected, expected) < 1e-3

    def test_restoring_gives_the_same_bits(self, fitted, new_fields):
        state = {name: tensor.clone() for name, tensor in fitted.state_dict().items()}
        restored = self.make().restore(state)
        assert restored.ranks == fitted.ranks
        assert restored.layout == fitted.layout
        codes = fitted.encode(new_fields)
        assert torch.equal(restored.encode(new_fields), codes)
        assert torch.equal(restored.decode(codes), fitted.decode(codes))
        again = restored.state_dict()
        assert state.keys() == again.keys()
        assert all(torch.equal(state[key], again[key]) for key in state)
