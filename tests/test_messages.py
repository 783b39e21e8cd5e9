"""Messages speak the caller's language: the library names arguments, the command line options."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import twoscale
from twoscale.cli.wording import _OPTIONS, as_options

PACKAGE = Path(twoscale.__file__).parent

OPTION = re.compile(r"(?<![\w-])--[a-z]")
SHOWS_COMMANDS = {
    "bench/using.py": "runs the command line",
    "cluster/checks.py": "shows a command of Dask",
    "report": "pages print commands to type",
    "study/runner.py": "a record holds the command that makes it",
    "study/worker.py": "is a command of its own, for machines without typer",
    "surrogate/artifact.py": "asks git",
}
"""Where a text may hold an option, and why."""


@cache
def library_modules():
    """Return all modules below the command line as trees, by their paths."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        if place.split("/")[0] != "cli" and not any(
            place.startswith(one) for one in SHOWS_COMMANDS
        ):
            found[path] = ast.parse(path.read_text())
    return found


def texts(tree):
    """Yield the texts of a module that are not docstrings, with their lines."""
    nodes = list(ast.walk(tree))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value, node.lineno


def raised_texts(tree):
    """Yield the texts inside of raised errors."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            yield from texts(node)


def test_the_library_names_no_options():
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path, tree in library_modules().items()
        for text, line in texts(tree)
        if OPTION.search(text)
    ]
    assert not found


@pytest.mark.parametrize("place", ["report", "study", "bench"])
def test_errors_name_no_options_anywhere(place):
    for path in sorted((PACKAGE / place).rglob("*.py")):
        for text, line in raised_texts(ast.parse(path.read_text())):
            assert not OPTION.search(text), f"{path}:{line}"


def test_the_check_sees_options():
    tree = ast.parse('"""--doc"""\nraise ValueError(f"{x}: pass --overwrite")')
    assert [text for text, _ in texts(tree) if OPTION.search(text)] == [": pass --overwrite"]
    assert len(list(raised_texts(tree))) == 1


def test_every_argument_of_the_table_is_named_somewhere():
    named = "".join(text for tree in library_modules().values() for text, _ in texts(tree))
    for name in _OPTIONS.keys() - {"seed", "method"}:  # made by a rule
        assert f"{name}=" in named, name


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("choose another path, or pass overwrite=True", "choose another path, or pass --overwrite"),
        ("give more (memory=...), or less", "give more (--memory), or less"),
        ("there is no cuda here: use device='cpu'", "there is no cuda here: use --device cpu"),
        ("no array 'b' (inputs=...)", "no array 'b' (--input)"),
        ("a shorter warm-up (warm_up=...)", "a shorter warm-up (--warm-up)"),
        ("set symmetries=square, or overwrite=False", "set symmetries=square, or overwrite=False"),
    ],
)
def test_the_command_line_names_options(message, words):
    assert as_options(message) == words
