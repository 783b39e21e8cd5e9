"""How a method is shown: its title, colour and marker, the same in every table and chart.

All of them come from the table of methods, by name or by position: a new method needs no entry.
"""

from __future__ import annotations

from twoscale.methods.recipes import METHODS
from twoscale.study.paper.roles import PROPOSED

TRUTH = "truth"
"""The name of the true field among predictions."""

# Okabe and Ito's palette, but for the last two: their yellow does not show on white.
_COLOURS = (
    "#CC79A7",
    "#D55E00",
    "#0072B2",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#882255",
    "#999999",
)
_TRUTH_COLOUR = "#000000"
_OTHER_COLOUR = "#555555"
_MARKERS = ("D", "s", "^", "P", "X", "o", "<", "v", ">", "h", "p")
_TUNED_MARKER = "*"


def method_title(name: str) -> str:
    """Return a method's name as the paper writes it; an unknown method keeps its own."""
    return METHODS[name].title if name in METHODS else name


def colour(name: str) -> str:
    """Return the colour of a method, or of the truth."""
    if name == TRUTH:
        return _TRUTH_COLOUR
    place = _position(name)
    return _COLOURS[place] if place < len(_COLOURS) else _OTHER_COLOUR


def marker(name: str, *, tuned: bool = False) -> str:
    """Return the marker of a method; the paper's own method has a star where it is fine-tuned."""
    if tuned and name == PROPOSED:
        return _TUNED_MARKER
    return _MARKERS[_position(name) % len(_MARKERS)]


def _position(name: str) -> int:
    """Return the position among the methods; unknown methods come last."""
    names = list(METHODS)
    return names.index(name) if name in names else len(names)
