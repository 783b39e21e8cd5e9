"""What help says about a command, and how it is laid out."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from inspect import cleandoc
from typing import Any

from twoscale.cli.layout import wrap

_NAMES = 26  # the widest column of names
_NARROW = 72  # below, texts stand under their names


@dataclass(frozen=True)
class Entry:
    """One argument, option or command, and what it is."""

    name: str
    text: str


@dataclass(frozen=True)
class Page:
    """The help of one command."""

    usage: str
    paragraphs: list[str]
    sections: dict[str, list[Entry]]
    examples: list[str]


def describe(command: Any, path: str) -> Page:
    """Return the help of a command that is called by `path`, such as `twoscale fit`."""
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    commands = getattr(command, "commands", {})
    usage = [path, "[OPTIONS]", *map(_argument_name, arguments)]
    sections = {
        "Arguments": [Entry(_argument_name(one), _text(one)) for one in arguments],
        "Commands": [Entry(name, _paragraphs(one.help)[0]) for name, one in commands.items()],
        "Options": [Entry(_option_name(one), _text(one)) for one in options if not one.hidden],
    }
    sections["Options"].append(Entry("--help", "Show this help."))
    return Page(
        " ".join([*usage, *(["COMMAND", "..."] if commands else [])]),
        _paragraphs(command.help),
        {title: entries for title, entries in sections.items() if entries},
        _examples(command.epilog or ""),
    )


def help_text(page: Page) -> str:
    """Return a page of help for the terminal, or as wide as 80 columns for a file."""
    width = shutil.get_terminal_size((80, 24)).columns
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    lines = wrap(f"Usage: {page.usage}", width, indent=7)
    for paragraph in page.paragraphs:
        lines += ["", *wrap(paragraph, width)]
    for title, entries in page.sections.items():
        lines += ["", f"\033[1m{title}\033[0m" if bold else title]
        lines += _entry_lines(entries, width)
    if page.examples:
        lines += ["", "\033[1mExamples\033[0m" if bold else "Examples"]
        for example in page.examples:
            lines += wrap(f"  {example}", width, indent=6)
    return "\n".join(lines)


def _entry_lines(entries: list[Entry], width: int) -> list[str]:
    indent = min(_NAMES, max(len(entry.name) for entry in entries)) + 4
    lines = []
    for entry in entries:
        if width < _NARROW or len(entry.name) > _NAMES:
            indent_here = 6 if width < _NARROW else indent
            lines += wrap(f"  {entry.name}", width, indent=4)
            text = wrap(" " * indent_here + entry.text, width, indent=indent_here)
            lines += text if entry.text else []
        else:
            name = f"  {entry.name}".ljust(indent)
            lines += wrap(f"{name}{entry.text}", width, indent=indent)
    return lines


def _argument_name(argument: Any) -> str:
    if argument.metavar:
        return argument.metavar
    name = argument.name.upper().strip("_") + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def _option_name(option: Any) -> str:
    names = ", ".join([*sorted(option.opts, key=len), *option.secondary_opts])
    if option.is_flag:
        return names
    return f"{names} {option.metavar or option.name.upper()}"


def _text(parameter: Any) -> str:
    """Return the help of a parameter, with its default or that it is required."""
    text = parameter.help or ""
    if parameter.param_type_name == "argument":
        return text
    if parameter.required:
        return f"{text} Required."
    default = parameter.default
    if parameter.secondary_opts:
        default = (parameter.opts if default else parameter.secondary_opts)[0]
    elif default is None or default is False or default in ((), []):
        return text
    return f"{text} Default: {default}."


def _paragraphs(text: str | None) -> list[str]:
    """Return the paragraphs of a docstring, each on one line."""
    return [" ".join(part.split()) for part in cleandoc(text or "").split("\n\n")]


def _examples(epilog: str) -> list[str]:
    """Return the commands in a text such as `Examples: twoscale a · twoscale b`."""
    _, _, commands = epilog.partition(": ")
    return [command.strip() for command in commands.split(" · ") if command.strip()]
