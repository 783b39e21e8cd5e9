"""How a method is shown: its title, colour and marker, the same in every table and chart.

All of them are traits in the table of methods: a new method needs no entry here.
"""

from __future__ import annotations

from twoscale.methods.recipes import METHODS
from twoscale.methods.roles import PROPOSED, SEARCH

TRUTH = "truth"
"""The name of the true field among predictions."""

_TRUTH_COLOUR = "#000000"
_OTHER_COLOUR = "#555555"
_OTHER_MARKER = "h"
_TUNED_MARKER = "*"


def method_title(name: str) -> str:
    """Return a method's name as the paper writes it; an unknown method keeps its own."""
    if name == SEARCH:
        return SEARCH.capitalize()
    return METHODS[name].title if name in METHODS else name


def colour(name: str) -> str:
    """Return the colour of a method, or of the truth."""
    if name == TRUTH:
        return _TRUTH_COLOUR
    return METHODS[name].colour if name in METHODS else _OTHER_COLOUR


def marker(name: str, *, tuned: bool = False) -> str:
    """Return the marker of a method; the paper's own method has a star where it is fine-tuned."""
    if tuned and name == PROPOSED:
        return _TUNED_MARKER
    return METHODS[name].marker if name in METHODS else _OTHER_MARKER
