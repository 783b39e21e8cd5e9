"""Numbers as people read them: errors in percent, times."""

from __future__ import annotations


def percent(share: float | None, digits: int = 3) -> str:
    """Return a share, such as a relative error, in percent; None is one that is not finite.

    >>> percent(0.01234), percent(0.01234, 2), percent(None)
    ('1.23 %', '1.2 %', 'infinite or undefined')
    """
    return "infinite or undefined" if share is None else f"{100 * share:.{digits}g} %"


def duration_text(seconds: float) -> str:
    """Return seconds as text: whole ones from 10 s on, two digits below.

    >>> duration_text(37.2), duration_text(0.032)
    ('37 s', '0.032 s')
    """
    return f"{seconds:.0f} s" if seconds >= 10 else f"{max(seconds, 0.001):.2g} s"


def short_duration_text(seconds: float) -> str:
    """Return a time that is mostly below a second, such as that of one prediction.

    >>> short_duration_text(0.00025), short_duration_text(0.25)
    ('0.25 ms', '0.25 s')
    """
    return f"{1000 * seconds:.2g} ms" if seconds < 0.0995 else duration_text(seconds)
