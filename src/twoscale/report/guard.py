"""Report errors of figures in one sentence, whether options or numbers caused them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from twoscale.errors import TwoscaleError

_MOST = 200  # letters of another library's message


@contextmanager
def reporting_errors(options: Mapping[str, Any]) -> Iterator[None]:
    """Turn any error while a figure of these options is made into a TwoscaleError.

    Options come from a user's YAML file and numbers from a record. The functions that draw check
    neither, so that NumPy or Matplotlib raise errors of many types.
    """
    try:
        yield
    except TwoscaleError:
        raise
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:_MOST]
        reason = "options are wrong" if options else "numbers cannot be drawn"
        raise TwoscaleError(f"its {reason}: {said}") from error
