"""What all endpoints of a server share: own names, limits, and errors as answers."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from twoscale.errors import TwoscaleError
from twoscale.runtime.logs import LOGGER
from twoscale.serve.bodies import JSON, PendingMemory, RequestMemory, read_body
from twoscale.serve.limits import CLOSE, Limits, Refusal

AnswerBody = Callable[[Request, bytes, RequestMemory], Awaitable[Response]]
"""Answers a request with a body, whose memory it counts further."""

_LINGER = 2.0  # seconds that the rest of a refused body is read for, so that clients see the answer
_LOGGED = 200  # characters of a path


class HttpService:
    """Endpoints that share limits.

    Parameters
    ----------
    limits
        What is accepted at most.

    Attributes
    ----------
    routes
        The endpoints, none at first.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.pending = PendingMemory(limits)
        self.routes: list[Route] = []

    def stop(self) -> None:
        """Stop what the endpoints need; nothing by default."""

    def application(self, hosts: frozenset[str] | None = None) -> Starlette:
        """Return the application; `hosts` is what the header Host may be, None for anything."""

        @asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            yield
            self.stop()

        async def refused(request: Request, error: Exception) -> Response:
            return self.refused(request, error)

        app = Starlette(
            routes=self.routes,
            lifespan=lifespan,
            exception_handlers={HTTPException: refused},
            middleware=[Middleware(_own_origins, service=self, hosts=hosts)],
        )
        app.router.redirect_slashes = False  # a redirect would name the host that the client claims
        return app

    def post(self, path: str, answer: AnswerBody) -> Route:
        """Return an endpoint that reads a body within limits, and answers within its time."""
        return Route(path, _PostEndpoint(self, answer), methods=["POST"])

    def refused(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that failed, and log it."""
        refusal = self._refusal(request, error)
        unexpected = refusal.status == 500 and not isinstance(error, Refusal)
        LOGGER.log(
            logging.ERROR if refusal.status >= 500 else logging.WARNING,
            "%s %s: %d, %s",
            request.method,
            _printable(request.scope["path"][:_LOGGED]),
            refusal.status,
            _printable(str(refusal)),
            exc_info=error if unexpected else None,
        )
        # Errors have the shape of UM-Bridge's.
        content = {"error": {"type": refusal.kind, "message": str(refusal)}}
        kind = _LastResponse if CLOSE.items() <= refusal.headers.items() else Response
        return kind(json.dumps(content), refusal.status, refusal.headers, JSON)

    def _refusal(self, request: Request, error: Exception) -> Refusal:
        if isinstance(error, Refusal):
            return error
        if isinstance(error, HTTPException):
            sentence = f"{error.detail}: {request.method} {request.url.path[:80]}, see /docs"
            return Refusal(error.status_code, sentence, headers=error.headers)
        if isinstance(error, TwoscaleError):
            return Refusal(400, str(error))
        if isinstance(error, TimeoutError):
            sentence = f"there was no answer within {self.limits.seconds:g} s: send fewer fields"
            return Refusal(504, sentence)
        if isinstance(error, ClientDisconnect):
            return Refusal(400, "the client left before its request was complete")
        return Refusal(500, f"unexpected {type(error).__name__}: the server's log says more")


class _PostEndpoint:
    """An endpoint with a body; the memory of a request is counted until its answer is sent."""

    def __init__(self, service: HttpService, answer: AnswerBody) -> None:
        self.service = service
        self.answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, limits = Request(scope, receive), self.service.limits
        memory = RequestMemory(self.service.pending)
        try:
            try:
                body = await read_body(request, limits, memory)
                async with asyncio.timeout(limits.seconds):
                    response = await self.answer(request, body, memory)
                del body
            except Exception as error:
                memory.release()
                response = self.service.refused(request, error)
            await response(scope, receive, send)
        finally:
            memory.release()


class _LastResponse(Response):
    """An answer after which the connection ends, while the client may still be sending.

    Whatever it sends is read for a moment and dropped. If the connection was closed at once, the
    system would reset it, and the client might never see the answer.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                while (message := await receive())["type"] == "http.request":
                    if not message.get("more_body"):
                        break
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _own_origins(app: ASGIApp, service: HttpService, hosts: frozenset[str] | None) -> ASGIApp:
    """Return an application that answers to its own names, and to pages of its own only.

    starlette's TrustedHostMiddleware knows no ports, no origins and no sentences.
    """

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = app
        if scope["type"] == "http":
            request = Request(scope, receive)
            sentence = _what_is_foreign(request, hosts)
            if sentence is not None:
                chosen = service.refused(request, Refusal(403, sentence, headers=CLOSE))
        await chosen(scope, receive, send)

    return checked


def _what_is_foreign(request: Request, hosts: frozenset[str] | None) -> str | None:
    host, origin = request.headers.get("host", "").lower(), request.headers.get("origin")
    if hosts is not None and host not in hosts:
        known = ", ".join(sorted(hosts))
        return f"this server is called {known}, not '{host:.80}' (header Host)"
    if origin is None:
        return None
    authority = origin.partition("://")[2].lower()
    if authority and authority in {host, *(hosts or ())}:
        return None
    return f"pages of '{origin:.80}' may not use this server (header Origin)"


def own_hosts(address: str, port: int) -> frozenset[str] | None:
    """Return what the header Host may be; None for anything, where other machines may ask.

    A page of another site may have its name point to this machine (DNS rebinding). Its requests
    then look like its own to the browser, but their Host is that name.
    """
    if not ip_address(address.partition("%")[0]).is_loopback:
        return None
    shown = f"[{address}]" if ":" in address else address
    names = {"localhost", "127.0.0.1", "[::1]", shown}
    hosts = {f"{name}:{port}" for name in names}
    return frozenset(hosts | names if port == 80 else hosts)  # browsers leave port 80 out


def _printable(text: str) -> str:
    """Return a text of a client for the log: control characters are escaped."""
    return text.encode("unicode_escape").decode()
