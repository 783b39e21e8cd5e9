"""Random changes of nested content: other types, missing entries, odd names and numbers."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    3,
    10**30,
    2**63,
    0.5,
    -1e300,
    1e99,
    -1e99,
    1e-320,
    "",
    "odd",
    "../outside",
    "/tmp/outside",
    "a\nb",
    "a b",
    "$x_{",
    "{method.__class__}",
    "\u202e\U0001f600",
    "x" * 300,
    [],
    [None],
    [[1, 2], "a"],
    {},
    {"a": {"b": []}},
    {"mre": "x"},
]
_REMOVE = object()


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything within some content."""
    if isinstance(content, dict):
        inner = list(content.items())
    elif isinstance(content, list):
        inner = list(enumerate(content))
    else:
        inner = []
    found = [(*path, key) for key, _ in inner]
    return found + [one for key, value in inner for one in places(value, (*path, key))]


def mutated(content: Any, *, most: int = 2) -> st.SearchStrategy[Any]:
    """Return content with up to `most` of its parts removed or replaced."""
    change = st.tuples(st.sampled_from(places(content)), st.sampled_from([_REMOVE, *ODD]))
    return st.lists(change, min_size=1, max_size=most).map(lambda found: _apply(content, found))


def _apply(content: Any, changes: list[tuple[tuple[Any, ...], Any]]) -> Any:
    result = copy.deepcopy(content)
    for path, value in changes:
        part = result
        try:
            for key in path[:-1]:
                part = part[key]
            if value is _REMOVE:
                del part[path[-1]]
            else:
                part[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):  # an earlier change took it away
            continue
    return result
