"""The Python lines of the documentation run as they are shown."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = ("fields", "parts")


@pytest.mark.parametrize("page", PAGES)
def test_the_python_lines_run(page, capsys):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}
    for block in blocks:
        exec(block, names)
    assert capsys.readouterr().out
