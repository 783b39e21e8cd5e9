"""What docs/howto/own-pde.md shows is right, and complete."""

import re
import sys
import types
from pathlib import Path

import pytest
import torch

from twoscale.problems import Problem

PAGE = Path(__file__).parents[2] / "docs/howto/own-pde.md"


@pytest.fixture
def page(monkeypatch):
    """The names that the page's Python lines define, run one block after the other."""
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        exec(block, vars(module))
    return module


@pytest.mark.parametrize("shape", [(12, 12), (1, 12, 12)])
def test_the_equation_holds(page, shape):
    inputs = page.Screened().sample(page.Screened().grid(12, 12), range(3), seed=0)
    inputs = inputs.reshape(3, *shape)
    solution = page.Screened().solve(inputs)
    assert solution.shape == inputs.shape
    residual = page.Screened().residual(inputs, solution)
    torch.testing.assert_close(residual, torch.zeros_like(residual), rtol=0, atol=1e-10)


def test_every_part_of_a_problem_is_explained():
    text = PAGE.read_text(encoding="utf-8")
    parts = {name for name in Problem.__annotations__ if name != "number"}
    for name in parts | Problem.__abstractmethods__:
        assert f"`{name}`" in text, name
