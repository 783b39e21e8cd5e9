"""Symbols at modes that were never seen."""

import pytest
import torch

from twoscale.predictors.continuation import continue_symbol


def waves(rows, columns):
    sides = (torch.arange(1, side + 1, dtype=torch.float64) for side in (rows, columns))
    return torch.stack(torch.meshgrid(*sides, indexing="ij"), -1)


def box(rows, columns, *, known):
    """Which modes have both numbers below some number."""
    return (waves(rows, columns) <= known).all(-1)


def continued(symbol, known, noise=1e-7):
    """Continue a function of |k| that is known with some relative noise; return errors and rule."""
    k = waves(*known.shape)
    exact = symbol(k.norm(dim=-1))[..., None]
    generator = torch.Generator().manual_seed(0)
    noisy = exact * (1 + noise * torch.randn(exact.shape, generator=generator, dtype=k.dtype))
    given = torch.where(known[..., None], noisy, 1e9)
    found, rule = continue_symbol(k, given, (noise * exact).square(), known)
    torch.testing.assert_close(found[known], noisy[known], rtol=0, atol=0)
    return (found - exact).abs() / exact.abs().max(), rule


SYMBOLS = {
    "1/r^2": (lambda r: 1 / r**2, 1e-6, "|k|^2"),
    "1/r^4": (lambda r: 1 / r**4, 1e-6, "|k|^4"),
    "cos(1.3 r)": (lambda r: torch.cos(1.3 * r), 1e-3, "cos(1.3 |k|)"),
    "sin(0.9 r)/r": (lambda r: torch.sin(0.9 * r) / r, 1e-3, "cos(0.899 |k|)"),
    "heat": (lambda r: torch.exp(-r.square() / 100), 1e-2, ""),
}


@pytest.mark.parametrize("name", SYMBOLS)
def test_functions_of_the_length_are_continued(name):
    symbol, tolerance, words = SYMBOLS[name]
    known = box(20, 20, known=14)
    errors, rule = continued(symbol, known)
    assert float(errors[~known].max()) < tolerance
    assert words in rule


def test_holes_are_filled_from_around():
    known = torch.rand(16, 16, generator=torch.Generator().manual_seed(1)) < 0.6
    errors, _ = continued(lambda r: 1 / (1 + r), known)
    assert float(errors.max()) < 2e-2
    assert float(errors[2:, 2:].max()) < 1e-3


def test_a_line_of_modes():
    known = box(1, 40, known=30)
    errors, _ = continued(lambda r: torch.cos(0.7 * (r.square() - 1).sqrt()), known)
    assert float(errors.max()) < 1e-2


def test_noise_does_not_hide_the_rule():
    known = box(20, 20, known=14)
    errors, rule = continued(lambda r: 1 / r**2, known, noise=1e-2)
    assert "|k|^2" in rule
    assert float(errors[~known].max()) < 1e-3


@pytest.mark.parametrize("few", [0, 1])
def test_too_few_modes_are_not_continued(few):
    known = box(12, 12, known=few)
    symbol = torch.ones(12, 12, 1, dtype=torch.float64)
    found, rule = continue_symbol(waves(12, 12), symbol, torch.zeros_like(symbol), known)
    assert rule == "zero"
    assert float(found.sum()) == few


def test_nothing_is_changed_where_all_is_known():
    symbol = torch.randn(5, 5, 2, dtype=torch.float64)
    found, rule = continue_symbol(waves(5, 5), symbol, symbol.square(), box(5, 5, known=5))
    assert rule == "none"
    torch.testing.assert_close(found, symbol)
