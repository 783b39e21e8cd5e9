"""Kinds of storage services: how fsspec opens each one, and what their libraries' errors mean.

Libraries differ in how long they wait and how often they try again. Here each request is sent once,
and a server that is silent for `TIMEOUT` seconds has failed; `remote` counts the tries.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from twoscale.errors import TwoscaleError, missing_extra

TIMEOUT = 30.0  # seconds that a server may be silent

_NO_CREDENTIALS = {
    *("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError"),
    *("ProfileNotFound", "DefaultCredentialsError"),
}
"""Names of the errors with which libraries of storage services say that they know no account."""

_ANONYMOUS = "Anonymous caller"  # begins Google's answer to those without an account
_FORBIDDEN = "Forbidden"  # begins what gcsfs makes of an answer with status 403
_UNAUTHORIZED = 401


def _open_s3(fsspec: Any, protocol: str) -> Any:
    silence = {"connect_timeout": TIMEOUT, "read_timeout": TIMEOUT}
    once = {"config_kwargs": {**silence, "retries": {"max_attempts": 0}}}
    system = fsspec.filesystem(protocol, use_listings_cache=False, **once)
    system.retries = 1
    return system


def _open_google(fsspec: Any, protocol: str) -> Any:
    from aiohttp import ClientTimeout

    logging.getLogger("gcsfs").addHandler(logging.NullHandler())  # errors are told once, by us
    timeout = ClientTimeout(total=None, sock_connect=TIMEOUT, sock_read=TIMEOUT)
    system = fsspec.filesystem(protocol, use_listings_cache=False, requests_timeout=timeout)
    # gcsfs would try six times, for half a minute.
    once = getattr(type(system)._request, "__wrapped__", None)
    if once is not None:
        system._request = once.__get__(system)
    return system


class StorageService(NamedTuple):
    """A kind of service: the package that speaks to it, the extra that installs it, and more.

    `account` has the variables of an account, and `opened` gives fsspec's access to the service.
    """

    package: str
    extra: str
    account: str
    opened: Callable[[Any, str], Any]


_S3 = StorageService("s3fs", "remote", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", _open_s3)
_GOOGLE = StorageService("gcsfs", "gs", "GOOGLE_APPLICATION_CREDENTIALS", _open_google)
_SERVICES = {"s3": _S3, "s3a": _S3, "gs": _GOOGLE, "gcs": _GOOGLE}


def open_service(protocol: str, subject: object) -> Any:
    """Return fsspec's access to a service, which fsspec keeps for the next call.

    No listings are remembered, since others may change them.
    """
    service = _SERVICES.get(protocol)
    try:
        import fsspec
    except ImportError as error:
        raise missing_extra("fsspec", service.extra if service else "remote") from error
    try:
        if service:
            return service.opened(fsspec, protocol)
        return fsspec.filesystem(protocol, use_listings_cache=False)
    except ImportError as error:
        if service:
            raise missing_extra(service.package, service.extra) from error
        raise TwoscaleError(f"{subject} needs another package: {error}") from error
    except ValueError as error:
        raise TwoscaleError(f"{subject} is of a kind that fsspec does not know: {error}") from error


def is_denied(error: Exception) -> bool:
    """Say whether a service knows who asks, or wants to know it, and refuses."""
    return (
        isinstance(error, PermissionError)
        or _status(error) in (_UNAUTHORIZED, 403)
        or (isinstance(error, OSError) and str(error).startswith(_FORBIDDEN))
    )


def reason(protocol: str, error: Exception) -> tuple[str, bool]:
    """Return what went wrong, in one line, and whether another try would be of no use."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if kinds & _NO_CREDENTIALS or str(error).startswith(_ANONYMOUS):
        service = _SERVICES.get(protocol)
        example = f", such as {service.account}" if service else ""
        return f"no credentials are known; set those of your account{example}", True
    if is_denied(error):
        advice = "check the credentials and rights of your account"
        final = _status(error) != _UNAUTHORIZED  # which a new token may mend
        return f"access is denied; {advice} ({_line(error)})", final
    if isinstance(error, NotImplementedError):
        return "this kind of storage does not allow it", True
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT:g} s", False
    return _line(error), False


def _line(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200].rstrip(".")


def _status(error: Exception) -> int | None:
    """Return the status of HTTP that a library has put into its error."""
    status = getattr(error, "code", None) or getattr(error, "status", None)
    return int(str(status)) if str(status).isdecimal() else None
