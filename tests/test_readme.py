"""What README.md shows runs as it is shown; the files it names exist; so with its companions."""

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.base_environment import make_environment
from tests.test_layers import LEVEL, OPTIONAL
from twoscale import __version__
from twoscale.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")

RUN = """
import contextlib, io, json, sys
names, printed = {}, []
for block in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(block, names)
    printed.append(output.getvalue())
json.dump(printed, sys.stdout)
"""


def blocks(language):
    return [text for kind, text in BLOCK.findall(README) if kind == language]


@pytest.fixture
def own_data(tmp_path, monkeypatch):
    """The files that the README's lines on one's own data read, of an easy problem, as cwd."""
    sizes = np.random.default_rng(0).standard_normal((60, 1, 2)).astype(np.float32)
    rows = np.stack([np.ones(8), np.arange(8)]).astype(np.float32)
    fields = np.broadcast_to(sizes @ rows, (60, 8, 8))
    np.savez(tmp_path / "pairs.npz", a=fields, u=2 * fields)
    np.save(tmp_path / "new.npy", fields[:3])
    monkeypatch.chdir(tmp_path)
    return fields


@pytest.fixture(scope="module")
def base_python(tmp_path_factory):
    return make_environment(tmp_path_factory.mktemp("base"))


def test_the_base_environment_has_no_optional_dependency(base_python):
    """Those that torch needs itself, such as jinja2 and fsspec, may be there."""
    names = [name for name in OPTIONAL if name not in ("jinja2", "fsspec")]
    code = f"import importlib.util as u; print([n for n in {names} if u.find_spec(n)])"
    outcome = subprocess.run([base_python, "-I", "-c", code], capture_output=True, text=True)
    assert outcome.stdout.strip() == "[]", outcome.stderr


def test_the_python_lines_run_as_printed_with_the_base_dependencies(base_python, own_data):
    """All blocks run in order, in one process, and print what the README says but for numbers."""
    outcome = subprocess.run(
        [base_python, "-I", "-c", RUN],
        input=json.dumps(blocks("python")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr
    sixty, own, plate, nearest = json.loads(outcome.stdout)
    (shown,) = blocks("text")
    check_form(shown)
    check_form(sixty)
    assert 0 < percentage(sixty) < 5
    assert own == nearest == ""
    assert 0 < percentage(plate) < 5
    assert sorted(path.name for path in Path().iterdir()) == [
        "my-surrogate",
        "new.npy",
        "pairs.npz",
        "poisson-surrogate",
    ]


def check_form(printed):
    """Check two lines with every number replaced by #.

    The numbers depend on the speed of the machine. So do the candidates that a search has time
    for, which the second line names.
    """
    first, second = NUMBER.sub("#", printed).splitlines()
    assert first == "# predictions, relative error # %"
    error = r"mean relative L# error # % \(MRE # %\)"
    choice = r"[\w #()-]+ was the (only candidate|best of # candidates)"
    assert re.fullmatch(rf"{choice}: {error} on validation fields, in # s of # s; .+\.", second)


def percentage(printed):
    return float(re.search(r"([\d.e-]+) %", printed)[1])


@pytest.mark.usefixtures("without_drawing")
def test_the_lines_on_own_data_run_on_the_command_line(own_data, monkeypatch):
    (block,) = [text for text in blocks("shell") if "pairs.npz" in text]
    lines = block.splitlines()
    assert len(lines) <= 4
    for line in lines:
        monkeypatch.setattr(sys, "argv", line.split())
        with suppress(SystemExit):
            main()
    assert np.allclose(np.load("predicted.npy"), 2 * own_data[:3], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_lead_to_files(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 250


def test_the_citation_is_valid_and_of_this_version():
    """By the schema of the Citation File Format 1.2.0: these keys are required or allowed."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= citation.keys()
    known = {"cff-version", "type", "version", "license", "keywords", "preferred-citation"}
    assert citation.keys() <= known | {"message", "title", "authors"}
    assert str(citation["version"]) == __version__
    paper = citation["preferred-citation"]
    assert {"type", "title", "authors"} <= paper.keys() <= {"type", "title", "authors", "status"}
    assert f"*{paper['title']}*" in README.replace("\n", " ")
    for author in paper["authors"]:
        assert f"{author['given-names']} {author['family-names']}" in README
        assert f"{author['family-names']}, {author['given-names']}" in README
    assert f"version = {{{__version__}}}" in README


def test_the_rooms_stand_in_the_order_of_imports():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    diagram = re.search(r"^    cli .*?\n\n", text, re.DOTALL | re.MULTILINE)[0]
    rows = [re.split(r"\s{2,}", line.strip())[0].split(" · ") for line in diagram.splitlines()[:-1]]
    levels = [LEVEL[room] for row in rows for room in row]
    assert levels == sorted(levels, reverse=True)
    rooms = {path.name for path in (ROOT / "src/twoscale").iterdir() if path.is_dir()}
    assert {room for row in rows for room in row} == rooms - {"__pycache__"}
