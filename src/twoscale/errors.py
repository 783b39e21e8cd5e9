"""The one error that is the caller's to mend."""

from __future__ import annotations


class TwoscaleError(ValueError):
    """Bad input, told in one sentence: what was expected, what came, what to do instead.

    The command line prints it without a traceback and exits with status 2.
    """


class TwoscaleWarning(UserWarning):
    """Something that is probably not meant, told in one sentence; the work goes on."""


def missing_extra(package: str, extra: str) -> TwoscaleError:
    """Return the error for an optional dependency that is not installed."""
    return TwoscaleError(f"this needs the package '{package}': pip install 'twoscale[{extra}]'")
