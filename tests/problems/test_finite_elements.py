import pytest
import torch

from twoscale.problems.finite_elements import solve_block_tridiagonal, tridiagonal


@pytest.fixture
def blocks(generator):
    """Diagonal and coupling blocks of two symmetric matrices, indefinite and well conditioned."""
    random = torch.randn(2, 5, 4, 4, dtype=torch.float64, generator=generator)
    signs = torch.tensor([5.0, -5.0, 5.0, 5.0], dtype=torch.float64)
    diagonal = random + random.mT + torch.diag(signs)
    coupling = torch.randn(2, 4, 4, 4, dtype=torch.float64, generator=generator) / 4
    return diagonal.unbind(1), coupling.unbind(1)


def dense(diagonal, coupling):
    n = diagonal[0].shape[-1]
    matrix = torch.zeros(2, n * len(diagonal), n * len(diagonal), dtype=torch.float64)
    for j, block in enumerate(diagonal):
        matrix[:, j * n : j * n + n, j * n : j * n + n] = block
    for j, block in enumerate(coupling):
        here, there = slice(j * n, j * n + n), slice(j * n + n, j * n + 2 * n)
        matrix[:, here, there], matrix[:, there, here] = block, block.mT
    return matrix


@pytest.mark.parametrize("count", [1, 2, 5])
def test_the_solution_is_that_of_the_whole_matrix(blocks, generator, count):
    diagonal, coupling = blocks[0][:count], blocks[1][: count - 1]
    right_side = torch.randn(2, count, 4, dtype=torch.float64, generator=generator)
    before = [block.clone() for block in diagonal]
    solution = solve_block_tridiagonal(iter(diagonal), iter(coupling), right_side)
    expected = torch.linalg.solve(dense(diagonal, coupling), right_side.flatten(1))
    torch.testing.assert_close(solution.flatten(1), expected, rtol=1e-10, atol=1e-12)
    assert all(torch.equal(one, two) for one, two in zip(diagonal, before, strict=True))


def test_tridiagonal_matrices():
    matrix = tridiagonal(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[4.0, 5.0]]))
    assert matrix.tolist() == [[[1.0, 4.0, 0.0], [4.0, 2.0, 5.0], [0.0, 5.0, 3.0]]]
