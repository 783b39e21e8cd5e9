import pytest
import torch

from twoscale.domain.symmetries import SYMMETRIES, irreducible, symmetry_group
from twoscale.predictors.kernel import (
    bases,
    decompose,
    image_blocks,
    parts_of,
    transform,
    transform_back,
)

GROUPS = {name: symmetry_group(name) for name in SYMMETRIES if name != "shifts"}
any_group = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)


def kernel(one, other):
    return torch.exp(-torch.cdist(one, other))


@pytest.fixture
def fields(generator):
    return torch.randn(5, 3, 3, generator=generator, dtype=torch.float64)


def images(fields, group):
    """Return (symmetries, samples, nodes): codes that turn with their fields exactly."""
    return torch.stack([symmetry(fields).flatten(1) for symmetry in group])


@any_group
def test_blocks_have_the_eigenvalues_of_the_kernel_matrix_of_all_images(group, fields):
    inputs = images(fields, group)
    everything = inputs.flatten(0, 1)
    expected = torch.linalg.eigvalsh(kernel(everything, everything))
    parts = decompose(image_blocks(inputs, group, kernel), inputs, group)
    torch.testing.assert_close(torch.cat([part[0] for part in parts]).sort().values, expected)


@any_group
def test_blocks_solve_what_the_kernel_matrix_of_all_images_does(group, fields):
    inputs = images(fields, group)
    everything, targets = inputs.flatten(0, 1), inputs.square()
    expected = torch.linalg.solve(kernel(everything, everything), targets.flatten(0, 1))
    found = torch.zeros_like(targets)
    for matrices, block in parts_of(image_blocks(inputs, group, kernel), group):
        for basis in bases(matrices):
            inside = torch.linalg.solve(block, transform(targets, basis))
            found += transform_back(inside, basis)
    torch.testing.assert_close(found.flatten(0, 1), expected)


@any_group
def test_functions_are_an_orthonormal_basis_of_those_on_the_group(group):
    basis = torch.cat([one for matrices in irreducible(group) for one in bases(matrices)], 1)
    torch.testing.assert_close(basis.T @ basis, torch.eye(len(group), dtype=torch.float64))


@any_group
def test_there_and_back_over_all_parts_is_the_identity(group, fields):
    values = images(fields, group)
    every = [basis.to(values) for matrices in irreducible(group) for basis in bases(matrices)]
    rebuilt = sum(transform_back(transform(values, basis), basis) for basis in every)
    torch.testing.assert_close(rebuilt, values)


@any_group
def test_codes_that_turn_only_nearly_are_averaged_over(group, fields, generator):
    inputs = images(fields, group)
    noise = torch.randn(inputs.shape, generator=generator, dtype=torch.float64)
    blocks = image_blocks(inputs + 0.01 * noise, group, kernel)
    back = [group.index(symmetry.inverse) for symmetry in group]
    torch.testing.assert_close(blocks, blocks[back].mT)
    torch.testing.assert_close(blocks, image_blocks(inputs, group, kernel), rtol=0, atol=0.05)
