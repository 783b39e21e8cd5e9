"""Names and defaults of the library that help and completion show, read from its source.

Help must not wait for torch, so that no module is imported. `tests/cli/test_names.py` compares what
is read with the library.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib.metadata import entry_points
from importlib.resources import files
from typing import Any

from twoscale.settings import correction_settings

_CLASSES = re.compile(r"^class .*\n(?:(?!\S).*\n)*", re.M)
_NAME = re.compile(r'^    name(?:: ClassVar\[str\])? = "(.+)"$', re.M)


@cache
def _classes(room: str) -> dict[str, str]:
    """Return the source of all classes of a room that have a name, by that name."""
    modules = sorted((files("twoscale") / room).iterdir(), key=lambda one: one.name)
    texts = [one.read_text("utf-8") for one in modules if one.name.endswith(".py")]
    found = [found[0] for text in texts for found in _CLASSES.finditer(text)]
    return {name[1]: source for source in found if (name := _NAME.search(source))}


ENTRIES = entry_points()
"""Those of all installed packages, looked up once."""


def _installed(room: str) -> list[str]:
    """Return the names that installed packages add to a room."""
    return [entry.name for entry in ENTRIES.select(group=f"twoscale.{room}")]


def _statement(module: str, name: str) -> Any:
    """Return a statement at the top of a module: a class, or what is assigned to a name."""
    text = (files("twoscale") / module).read_text("utf-8")
    found = re.search(rf"^(?:class )?{name}\b.*\n(?:(?![\w@\"]).*\n)*", text, re.M)
    assert found is not None, f"{module} has no {name}"
    return ast.parse(found[0]).body[0]


def _keys(module: str, name: str) -> list[str]:
    """Return the keys of a dictionary at the top of a module."""
    return [ast.literal_eval(key) for key in _statement(module, name).value.keys]


def _methods() -> tuple[str, ...]:
    own = [n for n, source in _classes("representation").items() if "    as_method = " in source]
    return (*_keys("methods/recipes.py", "_RECIPES"), *own, *_installed("representation"))


def _arguments(source: str) -> list[str]:
    """Return the arguments of the constructor of a class."""
    (declared,) = ast.parse(source).body
    functions = (one for one in ast.walk(declared) if isinstance(one, ast.FunctionDef))
    constructor = next((one for one in functions if one.name == "__init__"), None)
    return [one.arg for one in constructor.args.kwonlyargs] if constructor else []


def settings() -> list[str]:
    """Return the settings of all methods and predictors."""
    kinds = {**_classes("representation"), **_classes("predictors")}
    found = dict.fromkeys(_keys("methods/recipes.py", "_SETTINGS"))
    for name, source in kinds.items():
        arguments = _arguments(source)
        if "    corrects = True" in source:
            found |= dict.fromkeys(correction_settings(arguments))
        elif name in METHODS or name in PREDICTORS:
            found |= dict.fromkeys(arguments)
    return list(found)


METHODS = _methods()
PROBLEMS = (*_classes("problems"), *_installed("problems"))
PREDICTORS = (
    *(n for n, source in _classes("predictors").items() if "    corrects = True" not in source),
    *_installed("predictors"),
)
OBJECTIVES = tuple(_keys("finetuning/finetune.py", "OBJECTIVES"))

SEARCH_SECONDS: float = ast.literal_eval(_statement("search/policy.py", "DEFAULT_BUDGET").value)
"""The budget of a search that is given none."""

FINETUNING: dict[str, Any] = {
    field.target.id: ast.literal_eval(field.value)
    for field in _statement("finetuning/finetune.py", "FinetunePlan").body
    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value
}
"""The options of a fine-tuning that is given none."""
