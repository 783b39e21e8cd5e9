import pytest
import torch

from tests.problems.contract import DiffusionContract
from tests.problems.test_darcy import sparse_solution
from twoscale import Grid, Surrogate, TwoscaleError
from twoscale.problems import DarcyFNO, GaussianRandomField


class TestDarcyFNO(DiffusionContract):
    problem = DarcyFNO(nodes=25)
    other = DarcyFNO(medium=GaussianRandomField(alpha=3, tau=7), high=100, low=1 / 3, nodes=17)
    square = rectangle = smallest = (25, 25)

    @pytest.fixture(params=[(25, 25)], ids=str)
    def grid(self, request):
        return Grid(request.param)

    def direct_solution(self, field):
        return sparse_solution(field)

    def right_side_scale(self, inputs):
        return 1.0

    def test_other_indices_seeds_and_resolutions_give_other_samples(self):
        """Other resolutions have the same samples here."""
        grid = self.small_grid()
        one, two = self.problem.sample(grid, [0, 1], seed=0)
        other = self.problem.sample(grid, [0], seed=1)[0]
        assert len({tuple(field.flatten().tolist()) for field in (one, two, other)}) == 3


@pytest.mark.parametrize("shape", [(25, 25), (13, 13), (9, 7)], ids=str)
def test_coarser_fields_are_nodes_of_the_fine_ones(shape):
    problem, (rows, columns) = DarcyFNO(nodes=25), (24 // (side - 1) for side in shape)
    fine = problem.sample(Grid((25, 25)), [4, 0, 2], seed=3)
    medium, pressure = problem.pairs(Grid(shape), [4, 0, 2], seed=3)
    assert torch.equal(medium, fine[:, ::rows, ::columns])
    assert torch.equal(medium, problem.sample(Grid(shape), [4, 0, 2], seed=3))
    expected = torch.from_numpy(sparse_solution(fine[1].numpy()))[::rows, ::columns]
    torch.testing.assert_close(pressure[1], expected, rtol=1e-8, atol=1e-12)


def test_the_published_grids_fit_and_others_are_refused():
    problem = DarcyFNO()
    for side in (421, 211, 141, 85):
        assert problem.grid(side, side) == Grid.square(side)
    assert problem.grid(problem.resolution, problem.resolution) == Grid((85, 85))
    with pytest.raises(TwoscaleError, match=r"421, 211, 141, .* got 64x64"):
        problem.grid(64, 64)


def test_a_thinned_medium_has_no_solution_and_no_residual():
    problem, grid = DarcyFNO(nodes=25), Grid((13, 13))
    assert not problem.solves(grid)
    assert not problem.has_residual(grid)
    with pytest.raises(TwoscaleError, match=r"25x25 .* 13x13"):
        problem.solve(problem.sample(grid, [0], seed=0))


def test_a_thinned_dataset_is_sound_and_can_be_fitted(tmp_path):
    pytest.importorskip("zarr")
    from twoscale.data import check_dataset, generate

    dataset = generate(DarcyFNO(nodes=25), tmp_path / "d", resolution=13, samples=24)
    findings = check_dataset(dataset)
    assert not [one for one in findings if one.level == "error"]
    assert "solution" not in {one.code for one in findings}
    x, u = (torch.from_numpy(dataset.read(name, 0, 24).copy()) for name in ("input", "output"))
    settings = {"problem": dataset.problem, "predictor": "affine", "device": "cpu"}
    metrics = Surrogate("global", **settings).fit(x, u).evaluate(x, u)
    assert metrics["residual_rms"] is None
    assert metrics["flux_jump"] is not None


@pytest.mark.gpu
def test_cuda_agrees_with_the_cpu_on_thinned_pairs():
    problem, grid = DarcyFNO(nodes=61), Grid((21, 21))
    here = problem.pairs(grid, range(3), seed=0)
    there = problem.pairs(grid, range(3), seed=0, device="cuda")
    for one, two in zip(here, there, strict=True):
        assert two.is_cuda
        torch.testing.assert_close(one, two.cpu(), rtol=1e-8, atol=1e-11)
