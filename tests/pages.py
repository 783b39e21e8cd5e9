"""The pages of the documentation: their code blocks, their commands, their words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import typer

from twoscale.cli.app import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
README = ROOT / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))

NOT_RUN = ("Signatures only", "Needs a GPU", "Needs Slurm")
"""The titles of Python blocks that are shown and not run; a title is visible on the page."""

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)(?: title=\"(?P<title>[^\"]*)\")?\n"
    r"(?P<body>.*?)^(?P=indent)```",
    re.DOTALL | re.MULTILINE,
)


def blocks(text: str, language: str) -> list[tuple[str, str]]:
    """Return (title, body) of the fenced blocks of a language; the title may be empty."""
    return [
        (found["title"] or "", re.sub(rf"^{found['indent']}", "", found["body"], flags=re.M))
        for found in _FENCE.finditer(text)
        if found["language"] == language
    ]


def python_blocks(text: str) -> list[str]:
    """Return the Python blocks of a page that are run."""
    return [body for title, body in blocks(text, "python") if title not in NOT_RUN]


def commands(text: str) -> list[str]:
    """Return the lines of shell blocks, and indented lines that call twoscale."""
    lines = [line for _, body in blocks(text, "shell") for line in joined(body)]
    lines += [
        line.strip() for line in joined(_FENCE.sub("", text)) if re.match(r" {4}twoscale ", line)
    ]
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def joined(text: str) -> Iterator[str]:
    """Yield the lines of a text, those that end with a backslash joined with the next."""
    yield from text.replace("\\\n", " ").splitlines()


def check_command(line: str) -> None:
    """Raise if a line that calls twoscale names an unknown command or option, or lacks one."""
    words = shlex.split(line, comments=True)
    assert words[0] == "twoscale"
    command, rest = typer.main.get_command(app), words[1:]
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        name = rest.pop(0)
        command = command.get_command(command.context_class(command), name)
        assert command is not None, f"no command is called {name}"
    if rest == ["--help"]:
        return
    given, extra, _ = command.make_parser(command.context_class(command)).parse_args(rest)
    assert not extra, f"too many arguments: {extra}"
    missing = [one.name for one in command.params if one.required and given.get(one.name) is None]
    assert not missing, f"{missing} missing"


def words(text: str) -> int:
    """Return how many words of prose a page has: without code and without what is generated."""
    text = re.sub(r"<!-- (\w+): start -->.*?<!-- \1: end -->", "", text, flags=re.DOTALL)
    text = _FENCE.sub("", text)
    return sum(any(letter.isalnum() for letter in word) for word in text.split())
