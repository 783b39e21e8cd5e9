"""The Python lines of the documentation run as they are shown, and the files it names exist."""

import re
from pathlib import Path

import pytest

from twoscale.parts import PARTS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = ("fields", "parts")
FOLDERS = ("src", "tests", "docs", "scripts", "examples", "results")


@pytest.fixture
def own_parts():
    """Forget, after a test, the parts that it registered."""
    before = dict(PARTS)
    yield
    PARTS.clear()
    PARTS.update(before)


@pytest.mark.parametrize("page", PAGES)
def test_the_python_lines_run(page, capsys, own_parts):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert capsys.readouterr().out


def named_paths(text):
    """Return what a page names in backticks as a path of the repository or of the package."""
    paths = re.findall(r"`([\w.-]+(?:/[\w.-]+)*/?)`", text)
    return [
        path
        for path in paths
        if "/" in path and (path.split("/")[0] in FOLDERS or path.endswith(".py"))
    ]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name
)
def test_the_paths_exist(page):
    missing = [
        path
        for path in named_paths(page.read_text())
        if not (ROOT / path).exists() and not (ROOT / "src/twoscale" / path).exists()
    ]
    assert not missing


def test_a_path_that_is_gone_would_be_found():
    assert named_paths("`tests/gone.py`, `old/gone.py`, `runs/mine`, `a / b`") == [
        "tests/gone.py",
        "old/gone.py",
    ]
