"""The one error that is the caller's to mend, and sentences that several rooms raise it with."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class TwoscaleError(ValueError):
    """Bad input, told in one sentence: what was expected, what came, what to do instead.

    The command line prints it without a traceback and exits with status 2.
    """


class ResumableError(TwoscaleError):
    """The input is not at fault: the same command can go on later from what it has saved."""


class WorkersError(ResumableError):
    """Other processes that do the work are lost, or must not do it."""


class UnreadableDataError(TwoscaleError):
    """The data cannot be read: files are damaged or lost, or their storage fails.

    No setting would help, so work that tries several of them ends.
    """


class UnreachableDataError(UnreadableDataError, ResumableError):
    """The data cannot be read now: their disk or storage service fails."""


class TwoscaleWarning(UserWarning):
    """Something that is probably not meant, told in one sentence; the work goes on."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint at the known name that is nearest, empty if none is near.

    >>> did_you_mean("epoch", ["epochs", "patches"])
    ' (did you mean epochs?)'
    """
    spelled = {one.lower(): one for one in known}
    close = get_close_matches(str(name).lower(), spelled, n=1)
    return f" (did you mean {spelled[close[0]]}?)" if close else ""


def unknown_name(kind: str, name: str, known: Iterable[str], *, also: str = "") -> TwoscaleError:
    """Return the error for a name that is not known: the nearest one, and all there are.

    >>> print(unknown_name("method", "two-scal", ["local", "two-scale"]))
    no method is called 'two-scal' (did you mean two-scale?): known are local, two-scale
    """
    names = list(known)
    hint = did_you_mean(name, names)
    return TwoscaleError(f"no {kind} is called '{name}'{hint}: known are {', '.join(names)}{also}")


def missing_extra(package: str, extra: str) -> TwoscaleError:
    """Return the error for an optional dependency that is not installed."""
    return TwoscaleError(f"this needs the package '{package}': pip install 'twoscale[{extra}]'")
