import numpy as np
import pytest
import torch
from sklearn.gaussian_process.kernels import Matern
from sklearn.kernel_ridge import KernelRidge

from twoscale.domain.symmetries import (
    IDENTITY,
    MIRRORS,
    ROTATIONS,
    SQUARE,
    TRANSPOSE,
    irreducible,
)
from twoscale.predictors import KERNELS, KernelRegression, fit_kernel
from twoscale.predictors import kernel as kernel_module
from twoscale.predictors.kernel import LENGTH_SCALES, STRENGTH_COUNT
from twoscale.training import CodePairs

any_kernel = pytest.mark.parametrize("kind", KERNELS)
GROUPS = {
    "none": IDENTITY,
    "transpose": TRANSPOSE,
    "mirrors": MIRRORS,
    "rotations": ROTATIONS,
    "square": SQUARE,
}
any_group = pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
PLAIN = torch.eye(3, dtype=torch.float64)


@pytest.fixture
def draw(generator):
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)


def curved(x):
    """A smooth map of codes (samples, 4) to codes (samples, 3)."""
    return torch.stack([x[:, 0] + x[:, 1] ** 2, torch.sin(x[:, 2]), x[:, 0] * x[:, 3]], 1)


@pytest.fixture
def pairs(draw):
    x, new = draw(60, 4), draw(25, 4)
    return CodePairs(x, curved(x)), CodePairs(new, curved(new))


@any_kernel
def test_kernels_are_scikit_learns(kind, draw):
    x, y = draw(5, 3), draw(6, 3)
    nu = {"matern-3/2": 1.5, "matern-5/2": 2.5}[kind]
    expected = Matern(length_scale=1.0, nu=nu)(x.numpy(), y.numpy())
    np.testing.assert_allclose(KERNELS[kind](torch.cdist(x, y)), expected, rtol=1e-10)


@any_kernel
def test_without_regularisation_it_interpolates(kind, pairs):
    regression, _ = fit_kernel(*pairs, PLAIN, kinds=[kind], length_scales=[1.0], strength=0.0)
    got = regression(pairs[0].inputs)
    torch.testing.assert_close(got, pairs[0].targets, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("strength", [1e-6, 1e-2])
def test_it_is_scikit_learns_kernel_ridge_on_weighted_codes(strength, pairs):
    regression, chosen = fit_kernel(
        *pairs, PLAIN, kinds=["matern-5/2"], length_scales=[2.0], strength=strength
    )
    x, new = (regression.weights.numpy() * part.inputs.numpy() for part in pairs)
    kernel = Matern(length_scale=1.0, nu=2.5)
    alpha = strength * np.linalg.eigvalsh(kernel(x))[-1]
    offset = pairs[0].targets.numpy().mean(0)
    peer = KernelRidge(alpha=alpha, kernel="precomputed").fit(
        kernel(x), pairs[0].targets.numpy() - offset
    )
    expected = peer.predict(kernel(new, x)) + offset
    np.testing.assert_allclose(regression(pairs[1].inputs), expected, rtol=1e-6, atol=1e-8)
    assert chosen["ridge"] == pytest.approx(strength)


def test_choices_are_the_best_on_the_validation_codes(pairs):
    training, validation = pairs

    def error(**fixed):
        regression, _ = fit_kernel(*pairs, PLAIN, **fixed)
        return float((regression(validation.inputs) - validation.targets).norm())

    regression, chosen = fit_kernel(*pairs, PLAIN)
    best = float((regression(validation.inputs) - validation.targets).norm())
    kind, length = chosen["kernel"], chosen["length_scale"]
    assert length in LENGTH_SCALES
    for other in KERNELS:
        assert best <= error(kinds=[other], length_scales=[length]) * (1 + 1e-9)
    for strength in np.logspace(-13, 0, STRENGTH_COUNT):
        given = {"kinds": [kind], "length_scales": [length], "strength": strength}
        assert best <= error(**given) * (1 + 1e-6)
    assert best < 0.5 * float((validation.targets - training.targets.mean(0)).norm())


def test_weights_make_the_median_distance_one_and_ignore_what_does_not_matter(pairs, draw):
    training, validation = (
        CodePairs(torch.cat([part.inputs, draw(len(part.inputs), 1)], 1), part.targets)
        for part in pairs
    )
    regression, chosen = fit_kernel(training, validation, PLAIN, length_scales=[1.0])
    assert float(torch.pdist(regression.centres).median()) == pytest.approx(1.0)
    assert float(regression.weights[4]) < 0.6 * float(regression.weights[0])
    assert chosen["length_scale"] == 1.0


def test_single_precision_comes_back_in_single_precision(pairs):
    regression, _ = fit_kernel(*pairs, PLAIN)
    got = regression(pairs[1].inputs.float())
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), regression(pairs[1].inputs), rtol=1e-5, atol=1e-5)


def test_parts_do_not_matter(pairs, monkeypatch):
    regression, _ = fit_kernel(*pairs, PLAIN)
    expected = regression(pairs[1].inputs)
    monkeypatch.setattr("twoscale.predictors.kernel._TILE", 130)
    torch.testing.assert_close(regression(pairs[1].inputs), expected, rtol=1e-7, atol=1e-9)


# Symmetries


def action(group, size):
    """Return how the group's symmetries turn codes of its irreducible representations."""
    parts = irreducible(group)
    matrices = [parts[k % len(parts)] for k in range(len(parts) - 1, len(parts) - 1 + size)]
    return torch.stack(
        [torch.block_diag(*(part[g] for part in matrices)) for g in range(len(group))]
    )


def symmetric_pairs(group, samples, draw, *, asymmetry=0.0):
    """Codes of all images of some samples, turned exactly or nearly, with an equivariant target."""
    turns = action(group, 4)
    inside = turns.shape[1]
    x = draw(samples, inside)
    images = torch.einsum("gab,nb->gna", turns, x)
    images += asymmetry * draw(*images.shape)
    targets = images * (1 + images.square().sum(2, keepdim=True))
    return CodePairs(images.flatten(0, 1), targets.flatten(0, 1)), turns


@any_group
@any_kernel
@pytest.mark.parametrize("strength", [1e-8, 1e-2])
def test_with_symmetries_it_is_the_fit_on_all_images(group, kind, strength, draw):
    training, turns = symmetric_pairs(group, 12, draw)
    x = draw(9, turns.shape[1])
    validation = CodePairs(x, x * (1 + x.square().sum(1, keepdim=True)))
    fixed = {"kinds": [kind], "length_scales": [1.0], "strength": strength}
    metric = torch.eye(turns.shape[1], dtype=torch.float64)
    plain, _ = fit_kernel(training, validation, metric, **fixed)
    symmetric, _ = fit_kernel(training, validation, metric, group=group, **fixed)
    torch.testing.assert_close(symmetric.coefficients, plain.coefficients, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(symmetric(x), plain(x), rtol=1e-5, atol=1e-6)


@any_group
def test_with_symmetries_the_prediction_turns_with_the_input(group, draw):
    training, turns = symmetric_pairs(group, 12, draw)
    x = draw(9, turns.shape[1])
    metric = torch.eye(turns.shape[1], dtype=torch.float64)
    regression, _ = fit_kernel(training, CodePairs(x, x), metric, group=group)
    for turn in turns:
        expected = regression(x) @ turn.T
        torch.testing.assert_close(regression(x @ turn.T), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("asymmetry", "tolerance"), [(1e-5, 0.01), (1e-3, 1e-9), (0.1, 1e-9)])
def test_codes_that_turn_only_nearly_or_not_at_all_do_no_harm(asymmetry, tolerance, draw):
    """If they do not turn, images are samples of their own: the same fit."""
    training, turns = symmetric_pairs(SQUARE, 12, draw, asymmetry=asymmetry)
    x = draw(9, turns.shape[1])
    validation = CodePairs(x, x * (1 + x.square().sum(1, keepdim=True)))
    fixed = {"kinds": ["matern-5/2"], "length_scales": [1.0], "strength": 1e-10}
    metric = torch.eye(turns.shape[1], dtype=torch.float64)
    plain, _ = fit_kernel(training, validation, metric, **fixed)
    symmetric, _ = fit_kernel(training, validation, metric, group=SQUARE, **fixed)
    torch.testing.assert_close(symmetric(x), plain(x), rtol=tolerance, atol=tolerance)


def test_the_state_is_all_there_is(pairs):
    regression, _ = fit_kernel(*pairs, PLAIN)
    state = regression.state_dict()
    names = ("order", "weights", "centres", "offset", "coefficients")
    assert set(state) == set(names)
    again = KernelRegression(*(state[name] for name in names))
    assert torch.equal(again(pairs[1].inputs), regression(pairs[1].inputs))


@any_group
def test_a_given_strength_needs_no_eigenvectors(group, draw, monkeypatch):
    x = draw(len(group) * 30, 4)
    pairs = CodePairs(x, curved(x)), CodePairs(draw(9, 4), draw(9, 3))
    fixed = {"group": group, "kinds": ["matern-5/2"], "length_scales": [2.0], "strength": 1e-5}
    fast, chosen = fit_kernel(*pairs, PLAIN, **fixed)
    monkeypatch.setattr(kernel_module, "_with_given_strength", lambda *arguments: None)
    slow, also_chosen = fit_kernel(*pairs, PLAIN, **fixed)
    torch.testing.assert_close(fast.coefficients, slow.coefficients, rtol=1e-6, atol=1e-8)
    assert chosen == pytest.approx(also_chosen)


def test_a_strength_too_small_for_cholesky_is_not_refused(pairs):
    twice = CodePairs(*(codes.repeat(2, 1) for codes in (pairs[0].inputs, pairs[0].targets)))
    regression, _ = fit_kernel(twice, pairs[1], PLAIN, strength=0.0)
    assert bool(torch.isfinite(regression(pairs[1].inputs)).all())
