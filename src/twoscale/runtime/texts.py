"""Numbers as people read them: errors in percent, times."""

from __future__ import annotations

from decimal import Decimal

_TINY = 1e-7  # below, a number has an exponent


def short_number(value: float, digits: int = 3) -> str:
    """Return a number with so many digits; small ones down to 1e-7 have no exponent.

    >>> short_number(0.01234), short_number(0.0000321, 2), short_number(3.21e-12, 2)
    ('0.0123', '0.000032', '3.2e-12')
    """
    text = f"{value:.{digits}g}"
    return f"{Decimal(text):f}" if _TINY <= abs(value) < 1 else text


def percent(share: float | None, digits: int = 3) -> str:
    """Return a share, such as a relative error, in percent; None is one that is not finite.

    >>> percent(0.01234), percent(0.01234, 2), percent(3.2e-7), percent(None)
    ('1.23 %', '1.2 %', '0.000032 %', 'infinite or undefined')
    """
    return "infinite or undefined" if share is None else f"{short_number(100 * share, digits)} %"


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
