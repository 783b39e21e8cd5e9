"""JSON files, read and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twoscale.errors import TwoscaleError


def check_regular(path: Path) -> None:
    """Raise if there is no plain file at a path."""
    if not path.exists():
        raise TwoscaleError(f"{path} does not exist")
    if not path.is_file():
        raise TwoscaleError(f"{path} is not a file")


def read_text(path: Path) -> str:
    """Return the text of a file."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise TwoscaleError(f"{path} does not exist") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TwoscaleError(f"{path} is damaged: {error}") from error


def read_json(path: Path, *, require: dict[str, type] | None = None) -> dict[str, Any]:
    """Return the object a JSON file holds, which must have values of the `require`d types."""
    try:
        content = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise TwoscaleError(f"{path} does not exist") from error
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise TwoscaleError(f"{path} is damaged or not JSON: {error}") from error
    if not isinstance(content, dict):
        raise TwoscaleError(f"{path} should hold a JSON object")
    wrong = [key for key, kind in (require or {}).items() if not isinstance(content.get(key), kind)]
    if wrong:
        raise TwoscaleError(f"{path} is damaged: it lacks a proper {', '.join(wrong)}")
    return content
