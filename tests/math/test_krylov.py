import pytest
import torch

from twoscale.math.krylov import conjugate_gradients


def spd(batch, size, generator, *, spread=10.0):
    """Random symmetric positive definite matrices with eigenvalues in [1, spread]."""
    raw = torch.randn(batch, size, size, dtype=torch.float64, generator=generator)
    basis = torch.linalg.qr(raw).Q
    values = 1 + (spread - 1) * torch.rand(batch, size, dtype=torch.float64, generator=generator)
    return basis @ torch.diag_embed(values) @ basis.mT


def apply(matrices):
    return lambda x: torch.einsum("bij,bj->bi", matrices, x)


def identity(residual):
    return residual


@pytest.fixture
def matrices(generator):
    return spd(4, 20, generator)


@pytest.fixture
def right_side(generator):
    return torch.randn(4, 20, dtype=torch.float64, generator=generator)


def jacobi(matrices):
    diagonal = matrices.diagonal(dim1=1, dim2=2)
    return lambda residual: residual / diagonal


@pytest.mark.parametrize("preconditioned", [False, True])
def test_the_solution_is_that_of_a_dense_solve(matrices, right_side, preconditioned):
    precondition = jacobi(matrices) if preconditioned else identity
    result = conjugate_gradients(
        apply(matrices), right_side, precondition=precondition, tolerance=1e-12
    )
    expected = torch.linalg.solve(matrices, right_side)
    torch.testing.assert_close(result.solution, expected, rtol=1e-10, atol=1e-10)
    assert bool((result.residual <= 1e-12).all())


def test_no_sample_depends_on_its_batch(generator):
    """Systems that need very different numbers of steps, together and one by one."""
    easy, hard = spd(2, 30, generator, spread=1.5), spd(2, 30, generator, spread=1e4)
    matrices = torch.cat([easy[:1], hard, easy[1:]])
    right_side = torch.randn(4, 30, dtype=torch.float64, generator=generator)
    together = conjugate_gradients(apply(matrices), right_side, precondition=identity)
    assert together.iterations.max() > 2 * together.iterations.min()
    for k in range(4):
        one = slice(k, k + 1)
        alone = conjugate_gradients(apply(matrices[one]), right_side[one], precondition=identity)
        assert together.iterations[k] == alone.iterations[0]
        torch.testing.assert_close(together.solution[k], alone.solution[0], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("distinct", [1, 2, 3, 5])
def test_as_many_steps_as_distinct_eigenvalues(distinct, generator):
    basis = torch.linalg.qr(torch.randn(12, 12, dtype=torch.float64, generator=generator)).Q
    values = torch.arange(12, dtype=torch.float64) % distinct + 1
    matrix = (basis * values) @ basis.T
    right_side = torch.randn(1, 12, dtype=torch.float64, generator=generator)
    result = conjugate_gradients(apply(matrix[None]), right_side, precondition=identity)
    assert result.iterations.tolist() == [distinct]


def test_a_start_at_the_solution_needs_no_step(matrices, right_side):
    start = torch.linalg.solve(matrices, right_side)
    before = start.clone()
    result = conjugate_gradients(apply(matrices), right_side, precondition=identity, start=start)
    assert result.iterations.tolist() == [0, 0, 0, 0]
    assert torch.equal(result.solution, before)


def test_a_zero_right_side_has_the_zero_solution(matrices, right_side):
    right_side[1] = 0.0
    result = conjugate_gradients(apply(matrices), right_side, precondition=identity)
    assert result.iterations[1] == 0
    assert torch.equal(result.solution[1], torch.zeros(20, dtype=torch.float64))
    assert bool(torch.isfinite(result.solution).all())


def true_residual(matrices, right_side, solution):
    return (right_side - apply(matrices)(solution)).norm(dim=1) / right_side.norm(dim=1)


@pytest.mark.parametrize(
    ("options", "low", "high"),
    [
        ({"max_steps": 3, "tolerance": 1e-14}, 1e-6, 1.0),
        ({"start": torch.full((4, 20), 1e9).double(), "tolerance": 1e-12}, 0.0, 1e-12),
        ({"tolerance": 1e-18}, 1e-18, 1e-14),
    ],
    ids=["few steps", "a start far away", "out of reach"],
)
def test_the_residual_that_is_told_is_the_true_one(matrices, right_side, options, low, high):
    """Also where the recurrence lost it, and where rounding keeps the tolerance out of reach."""
    result = conjugate_gradients(apply(matrices), right_side, precondition=identity, **options)
    left = true_residual(matrices, right_side, result.solution)
    torch.testing.assert_close(result.residual, left)
    assert bool(((low <= left) & (left <= high)).all())
    assert int(result.iterations.max()) <= options.get("max_steps", 500)


# Another measure of the error


def true_error(matrices, right_side):
    """An error that only the test knows: the distance to the solution."""
    solved = torch.linalg.solve(matrices, right_side)
    return lambda solution, residual, preconditioned: (solution - solved).norm(dim=1)


def test_a_system_stops_by_the_error_that_is_given(matrices, right_side):
    error = true_error(matrices, right_side)
    result = conjugate_gradients(
        apply(matrices), right_side, precondition=identity, error=error, tolerance=1e-3
    )
    assert bool((error(result.solution, None, None) <= 1e-3).all())
    fewer = int(result.iterations.max()) - 1
    early = conjugate_gradients(
        apply(matrices), right_side, precondition=identity, error=error, max_steps=fewer
    )
    assert bool((error(early.solution, None, None) > 1e-3).any())


def test_the_error_sees_the_preconditioned_residual(matrices, right_side):
    precondition = jacobi(matrices)

    def error(solution, residual, preconditioned):
        assert torch.equal(preconditioned, precondition(residual))
        left = right_side - apply(matrices)(solution)
        torch.testing.assert_close(residual, left, rtol=1e-8, atol=1e-8)
        return (residual * preconditioned).sum(1)

    result = conjugate_gradients(
        apply(matrices), right_side, precondition=precondition, error=error, tolerance=1e-8
    )
    assert bool((result.residual < 1e-3).all())
