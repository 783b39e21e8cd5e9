"""What the search knows of methods and predictors stands in two tables, and nowhere else."""

import ast
from pathlib import Path

import pytest

import twoscale.search
from twoscale import METHODS
from twoscale.methods.recipes import defaults
from twoscale.predictors import PREDICTORS

FOLDER = Path(twoscale.search.__file__).parent
TABLES = {"chains.py", "kinds.py"}
NAMES = {*METHODS, *PREDICTORS, "coarse", "residual", "skeleton", "bubbles"}
OF_ONE_METHOD = {
    "coarse_factor",
    "coarse_components",
    "residual_variance",
    "seam_width",
    "kernel_samples",
}


def texts(path):
    """Return the texts in a module that are not documentation."""
    tree = ast.parse(path.read_text())
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_no_method_or_predictor_is_named_outside_of_the_tables(path):
    found = set(texts(path)) & (NAMES | OF_ONE_METHOD)
    assert not found or path.name in TABLES, f"{path.name} names {sorted(found)}"


def test_the_names_are_those_of_settings_and_stages():
    known = {name for method in METHODS for name in defaults(method)}
    known |= {name for one in PREDICTORS for name in defaults("two-scale", {"predictor": one})}
    assert known >= OF_ONE_METHOD
