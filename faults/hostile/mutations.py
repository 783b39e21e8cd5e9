"""JSON content with one value replaced by something that no honest program writes."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from twoscale.files import content_digest

_MARK = "the place of a raw value"
_PLAIN: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1.5, -0.0, 1e308, 10**9, 10**18, 10**30, -(10**30)),
    *("", "x", "../../outside", "/dev/zero", "a\nb", "<b>&", "{0.__class__}", "\u202e", "1"),
    *([], {}, [[]], {"": None}, [None] * 3, [-1], ["x"], [1e308], "x" * 10_000, [0] * 10_000),
)
_RAW = (
    *("NaN", "Infinity", "1e999", "9" * 5000, "[" * 100_000, '{"a":' * 100_000),
    *("tru", '"\\ud800"'),
)


def mutated(content: Any, choose: random.Random) -> str:
    """Return JSON text of the content with one value replaced; its checksums are made anew."""
    text = json.dumps(content)
    changed = json.loads(text)
    raw = choose.random() < 0.2
    _replace(changed, choose, _MARK if raw else choose.choice(_PLAIN))
    if raw:
        return json.dumps(changed).replace(json.dumps(_MARK), choose.choice(_RAW))
    sign(changed)
    return json.dumps(changed)


def _replace(content: Any, choose: random.Random, value: Any) -> None:
    """Replace a value somewhere inside, or remove it, or add a stranger beside it."""
    inside = content
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        key = choose.choice(keys)
        deeper = inside[key]
        if not isinstance(deeper, dict | list) or not deeper or choose.random() < 0.25:
            break
        inside = deeper
    if choose.random() < 0.1:
        del inside[key]
    elif isinstance(inside, dict) and choose.random() < 0.05:
        inside["a stranger"] = value
    else:
        inside[key] = value


def sign(content: Any) -> None:
    """Make the checksums of JSON content fit what it says, as a forger would."""
    if not isinstance(content, dict):
        return
    for holder in (content, content.get("attributes")):
        if isinstance(holder, dict):
            for key in ("checksum", "digest"):
                if key in holder:
                    holder[key] = content_digest(holder, but=key)


def put(content: Any, place: str, value: Any) -> None:
    """Set a value deep inside JSON content; keys and positions are joined by dots."""
    *outer, last = place.split(".")
    for key in outer:
        content = content[int(key)] if isinstance(content, list) else content[key]
    content[last] = value


def mutate_file(path: Path, choose: random.Random) -> None:
    """Replace one value in a JSON file."""
    path.write_text(mutated(json.loads(path.read_text()), choose))
