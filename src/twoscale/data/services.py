"""Kinds of storage services: how fsspec opens each one, and what their libraries' errors mean.

Libraries differ in how long they wait and how often they try again. Here each request is sent once,
and a server that is silent for `TIMEOUT` seconds has failed; `remote` counts the tries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from twoscale.errors import TwoscaleError, missing_extra

TIMEOUT = 30.0  # seconds that a server may be silent

_NO_CREDENTIALS = {
    "NoCredentialsError",
    "PartialCredentialsError",
    "CredentialRetrievalError",
    "ProfileNotFound",
    "DefaultCredentialsError",
}
"""Names of the errors with which libraries of storage services say that they know no account."""

_ANONYMOUS = "Anonymous caller"  # begins Google's answer to those without an account
_FORBIDDEN = "Forbidden"  # begins what gcsfs makes of an answer with status 403
_UNAUTHORIZED = 401


@dataclass(frozen=True)
class Service:
    """A kind of service: the package that speaks to it, and the extra that installs it.

    `options` are for fsspec; `adjust` changes what fsspec opened.
    """

    package: str
    extra: str
    account: str
    options: Callable[[], dict[str, Any]]
    adjust: Callable[[Any], None]


def open_service(protocol: str, subject: object) -> Any:
    """Return fsspec's access to a service, which fsspec keeps for the next call.

    No listings are remembered, since others may change them.
    """
    known = _SERVICES.get(protocol)
    try:
        import fsspec
    except ImportError as error:
        raise missing_extra("fsspec", known.extra if known else "remote") from error
    try:
        options = known.options() if known else {}
        system = fsspec.filesystem(protocol, use_listings_cache=False, **options)
    except ImportError as error:
        if known:
            raise missing_extra(known.package, known.extra) from error
        raise TwoscaleError(f"{subject} needs another package: {error}") from error
    except ValueError as error:
        raise TwoscaleError(f"{subject} is of a kind that fsspec does not know: {error}") from error
    if known:
        known.adjust(system)
    return system


def is_denied(error: Exception) -> bool:
    """Say whether a service knows who asks, or wants to know it, and refuses."""
    return (
        isinstance(error, PermissionError)
        or _status(error) in (_UNAUTHORIZED, 403)
        or (isinstance(error, OSError) and str(error).startswith(_FORBIDDEN))
    )


def final_reason(protocol: str, error: Exception) -> str:
    """Return why another try would be of no use; empty if it may be."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _NO_CREDENTIALS or str(error).startswith(_ANONYMOUS):
        known = _SERVICES.get(protocol)
        example = f", such as {known.account}" if known else ""
        return f"no credentials are known; set those of your account{example}"
    if is_denied(error) and _status(error) != _UNAUTHORIZED:  # which a new token may mend
        return _refusal(error)
    if isinstance(error, NotImplementedError):
        return "this kind of storage does not allow it"
    return ""


def reason(error: Exception) -> str:
    """Return what went wrong, in one line."""
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT:g} s"
    return _refusal(error) if is_denied(error) else _line(error)


def _refusal(error: Exception) -> str:
    told = _line(error)
    return f"access is denied; check the credentials and rights of your account ({told})"


def _line(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200].rstrip(".")


def _status(error: Exception) -> int | None:
    """Return the status of HTTP that a library has put into its error."""
    found = getattr(error, "code", None) or getattr(error, "status", None)
    return int(str(found)) if str(found).isdecimal() else None


def _s3_options() -> dict[str, Any]:
    silence = {"connect_timeout": TIMEOUT, "read_timeout": TIMEOUT}
    return {"config_kwargs": {**silence, "retries": {"max_attempts": 0}}}


def _adjust_s3(system: Any) -> None:
    system.retries = 1


def _google_options() -> dict[str, Any]:
    from aiohttp import ClientTimeout

    logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # errors are told once, by us
    return {"requests_timeout": ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)}


def _adjust_google(system: Any) -> None:
    """Send each request once: gcsfs would try six times, for half a minute."""
    once = getattr(type(system)._request, "__wrapped__", None)
    if once is not None:
        system._request = once.__get__(system)


_S3 = Service(
    "s3fs", "remote", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", _s3_options, _adjust_s3
)
_GOOGLE = Service("gcsfs", "gs", "GOOGLE_APPLICATION_CREDENTIALS", _google_options, _adjust_google)
_SERVICES = {"s3": _S3, "s3a": _S3, "gs": _GOOGLE, "gcs": _GOOGLE}
