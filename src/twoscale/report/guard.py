"""One sentence for whatever wrong options of a figure, or numbers of a record, lead to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from twoscale.errors import TwoscaleError

_MOST = 200  # letters of another library's words


@contextmanager
def explained(options: Mapping[str, Any]) -> Iterator[None]:
    """Turn any error while a figure of these options is made into a TwoscaleError.

    Options come from anybody's YAML and numbers from anybody's record. The functions that draw
    trust both, and what fails then is NumPy or Matplotlib, in many ways.
    """
    try:
        yield
    except TwoscaleError:
        raise
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST]
        reason = "options are wrong" if options else "numbers cannot be drawn"
        raise TwoscaleError(f"its {reason}: {said}") from error
