"""The pages of the documentation: their code runs, their commands exist, their files are there."""

import re
import subprocess
import sys
import types
from importlib.util import find_spec

import pytest
import yaml

import twoscale
import twoscale.data
import twoscale.run
from tests.pages import (
    DOCS,
    NOT_RUN,
    PAGES,
    README,
    ROOT,
    blocks,
    check_command,
    commands,
    python_blocks,
    words,
)

FOLDERS = ("src", "tests", "docs", "scripts", "examples", "results")
LONG = ("reference/", "results.md", "performance.md", "lab-notebook.md")
MOST_WORDS = 800


def name(page):
    return str(page.relative_to(ROOT))


def text_of(page):
    return page.read_text(encoding="utf-8")


# Code


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(text_of(page))], ids=name)
def test_the_python_lines_run(page, tmp_path, monkeypatch, own_parts):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # where classes of the page are looked up
    for block in python_blocks(text_of(page)):
        exec(compile(block, name(page), "exec"), vars(module))


def test_few_blocks_are_not_run():
    titles = [title for page in PAGES for title, _ in blocks(text_of(page), "python")]
    assert sum(title in NOT_RUN for title in titles) <= 3


LAB = ("benchmarks", "performance", "reproduce", "studies")
"""Pages of the lab, which need not be installed."""

WITHOUT_LAB = [README, *PAGES]
if not find_spec("twoscale_lab"):
    WITHOUT_LAB = [page for page in WITHOUT_LAB if page.stem not in (*LAB, "README")]


@pytest.mark.parametrize("page", WITHOUT_LAB, ids=name)
def test_the_commands_are_known(page):
    makefile = text_of(ROOT / "Makefile")
    for line in commands(text_of(page)):
        if line.startswith("twoscale "):
            check_command(line)
        elif line.startswith("make "):
            assert f"\n{line.split()[1]}:" in makefile, line


@pytest.mark.parametrize(
    "line",
    [
        "twoscale fti d --out r",
        "twoscale fit d --out r --colour red",
        "twoscale fit d",
        "twoscale evaluate a b",
    ],
)
def test_a_wrong_command_would_be_found(line):
    with pytest.raises(Exception):  # noqa: B017 (of whichever copy of click the parser is)
        check_command(line)


def test_commands_are_found_in_blocks_and_in_indented_lines():
    page = "```shell\na \\\n  b\n# c\n```\n\n    twoscale d\n    e\n"
    tab = '=== "f"\n\n    ```shell\n    g\n    ```\n'
    assert [line.split() for line in commands(page + tab)] == [["a", "b"], ["g"], ["twoscale", "d"]]


def test_the_recipes_of_clusters_give_workers_one_thread():
    page = text_of(DOCS / "howto/start-cluster.md")
    (title, manifest), (_, job) = *blocks(page, "yaml"), *blocks(page, "bash")
    worker = yaml.safe_load(manifest)["spec"]["worker"]["spec"]["containers"][0]
    assert title == "cluster.yaml"
    assert "--nthreads 1" in " ".join(worker["args"])
    assert "--nthreads 1" in job
    assert subprocess.run(["bash", "-n"], input=job.encode()).returncode == 0


# Files and names


def named_paths(text):
    """Return what a page names in backticks as a path of the repository or of the package."""
    paths = re.findall(r"`([\w.-]+(?:/[\w.-]+)*/?)`", text)
    return [
        path
        for path in paths
        if "/" in path and (path.split("/")[0] in FOLDERS or path.endswith(".py"))
    ]


@pytest.mark.parametrize("page", WITHOUT_LAB, ids=name)
def test_the_paths_exist(page):
    missing = [
        path
        for path in named_paths(text_of(page))
        if not (ROOT / path).exists() and not (ROOT / "src/twoscale" / path).exists()
    ]
    assert not missing


def test_a_path_that_is_gone_would_be_found():
    assert named_paths("`tests/gone.py`, `old/gone.py`, `runs/mine`, `a / b`") == [
        "tests/gone.py",
        "old/gone.py",
    ]


def test_every_public_name_is_in_the_reference():
    page = text_of(DOCS / "reference/api.md")
    documented = {path.split(".")[-1] for path in re.findall(r"(?m)^::: ([\w.]+)", page)}
    documented |= set(re.findall(r"(?m)^`(\w+)`$", page))
    public = {*twoscale.__all__, *twoscale.data.__all__, *twoscale.run.__all__}
    assert public - documented == set()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_page_is_short(page):
    place = str(page.relative_to(DOCS))
    if not place.startswith(LONG):
        assert words(text_of(page)) <= MOST_WORDS


def test_words_are_those_of_prose():
    page = "# A b\n\n| c | - |\n\n```python\nd = 1\n```\n\n"
    assert words(page + "<!-- e: start -->\nf\n<!-- e: end -->\n") == 3
