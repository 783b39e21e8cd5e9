"""Damaged files, for properties of readers: whatever comes is read right or refused."""

from hypothesis import settings
from hypothesis import strategies as st

from twoscale.errors import TwoscaleError

repeatable = settings(deadline=None, derandomize=True, max_examples=150)
"""The same few examples in every run, however slow the machine is."""


@st.composite
def changed(draw, content):
    """Bytes of which some are changed, and perhaps cut short."""
    made = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        made[draw(st.integers(0, len(made) - 1))] = draw(st.integers(0, 255))
    return bytes(made[: draw(st.integers(0, len(made)))] if draw(st.booleans()) else made)


def read_or_refused(read):
    """Return what a reader returns, or None if it refuses with one sentence."""
    try:
        return read()
    except TwoscaleError as error:
        sentence = str(error)
    assert len(sentence.splitlines()) == 1, sentence
    return None
