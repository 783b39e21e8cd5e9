"""Rows of choices in which every two choices meet, instead of all combinations."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any


def covering(*choices: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return rows with one choice of each kind; any two choices of two kinds share a row.

    What goes wrong with parts that are chosen apart goes wrong with one of them or with two that
    meet. The rows grow with the product of the two largest kinds, not with the product of all.
    """
    rows = list(product(*choices))
    pairs = [set(combinations(enumerate(row), 2)) for row in rows]
    missing, found = set().union(*pairs), []
    while missing:
        best = max(range(len(rows)), key=lambda number: len(pairs[number] & missing))
        missing -= pairs[best]
        found.append(rows[best])
    return found
