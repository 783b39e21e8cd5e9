"""Which names a server answers to, so that web pages of others cannot use it."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from twoscale.errors import missing_extra
from twoscale.serve.limits import FORBIDDEN, Refusal
from twoscale.serve.service import Service

try:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send
except ImportError as error:
    raise missing_extra(error.name or "starlette", "serve") from error


def is_loopback(address: str) -> bool:
    """Say whether a numerical address is reached from this machine only."""
    return ip_address(address.partition("%")[0]).is_loopback


def own_hosts(address: str, port: int) -> frozenset[str] | None:
    """Return what the header Host may be; None for anything.

    A page of another site may have its name point to this machine (DNS rebinding). Its requests
    then look like its own to the browser, but their Host is that name.
    """
    if not is_loopback(address):
        return None
    shown = f"[{address}]" if ":" in address else address
    names = {"localhost", "127.0.0.1", "[::1]", shown}
    hosts = {f"{name}:{port}" for name in names}
    return frozenset(hosts | names if port == 80 else hosts)  # browsers leave port 80 out


class OwnOrigins:
    """An application that answers to its own names, and to pages of its own only.

    Parameters
    ----------
    app, service
        The application behind it, and the service that logs refusals.
    hosts
        What the header Host may be; None for anything.
    """

    def __init__(self, app: ASGIApp, service: Service, hosts: frozenset[str] | None) -> None:
        self.app = app
        self.service = service
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            request = Request(scope, receive)
            try:
                self._check(request)
            except Refusal as refusal:
                await self.service.refused(request, refusal)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _check(self, request: Request) -> None:
        host = request.headers.get("host", "").lower()
        if self.hosts is not None and host not in self.hosts:
            known = ", ".join(sorted(self.hosts))
            raise _forbidden(f"this server is called {known}, not '{host:.80}' (header Host)")
        origin = request.headers.get("origin")
        if origin is None:
            return
        if _authority(origin) not in {host, *(self.hosts or ())}:
            raise _forbidden(f"pages of '{origin:.80}' may not use this server (header Origin)")


def _authority(origin: str) -> str | None:
    """Return host and port of an origin; None if it has none, such as `null`."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def _forbidden(message: str) -> Refusal:
    return Refusal(403, FORBIDDEN, message, {"Connection": "close"})
