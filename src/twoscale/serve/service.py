"""What all endpoints share: the models, the queue, the limits, and how a request is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from twoscale.errors import TwoscaleError, did_you_mean, missing_extra
from twoscale.runtime.logs import LOGGER
from twoscale.serve.batching import Batcher, Job, Tensors
from twoscale.serve.bodies import read_body, refusal_response
from twoscale.serve.limits import (
    INVALID_INPUT,
    INVALID_OUTPUT,
    MODEL_NOT_FOUND,
    NOT_FOUND,
    TIMEOUT,
    Limits,
    Refusal,
    busy,
    printable,
)
from twoscale.serve.model import Model
from twoscale.serve.pending import Held, Pending

try:
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send
except ImportError as error:
    raise missing_extra(error.name or "starlette", "serve") from error

Answering = Callable[[Request, bytes, Held], Awaitable[Response]]

_LOGGED = 200  # characters of a path


class Service:
    """The models of a server with their queue.

    Parameters
    ----------
    models
        The models, of different names.
    limits
        What is accepted at most.
    """

    def __init__(self, models: Sequence[Model], limits: Limits | None = None) -> None:
        self.models = {model.name: model for model in models}
        if not models or len(self.models) != len(models):
            raise TwoscaleError("a server needs models of different names, and at least one")
        self.limits = limits or Limits()
        self.batcher = Batcher(self.limits)
        self.pending = Pending(self.limits)

    def model(self, name: Any, *, missing: int = 404) -> Model:
        """Return a model by its name; without one, the only model. `missing` is the status."""
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        known = ", ".join(self.models)
        if name is None:
            raise Refusal(422, INVALID_INPUT, f"name a model: there are {known}")
        if not isinstance(name, str) or name not in self.models:
            hint = did_you_mean(name, self.models) if isinstance(name, str) else ""
            sentence = f"no model is called {name!r:.80}{hint}: there are {known}"
            raise Refusal(missing, MODEL_NOT_FOUND, sentence)
        return self.models[name]

    async def compute(self, job: Job) -> Tensors:
        """Return the results of a job, computed in the queue's thread."""
        try:
            return await asyncio.wrap_future(self.batcher.submit(job))
        except asyncio.CancelledError:
            if job.future.cancelled() and self.batcher.ends:
                raise busy("the server is shutting down: ask again when it is back") from None
            self.batcher.discard(job)
            raise

    def refused(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that failed, and log it."""
        refusal = self._refusal(request, error)
        level = LOGGER.error if refusal.status >= 500 else LOGGER.warning
        unexpected = error if refusal.kind == INVALID_OUTPUT else None
        level(
            "%s %s: %d, %s",
            request.method,
            printable(request.scope["path"][:_LOGGED]),
            refusal.status,
            printable(refusal.content["error"]["message"]),
            exc_info=unexpected,
        )
        return refusal_response(refusal)

    def _refusal(self, request: Request, error: Exception) -> Refusal:
        if isinstance(error, Refusal):
            return error
        if isinstance(error, HTTPException):
            return _of_path(request, error)
        if isinstance(error, TwoscaleError):
            return Refusal(422, INVALID_INPUT, str(error))
        if isinstance(error, TimeoutError):
            sentence = f"there was no answer within {self.limits.seconds:g} s: send fewer fields"
            return Refusal(504, TIMEOUT, sentence)
        if isinstance(error, ClientDisconnect):
            return Refusal(400, INVALID_INPUT, "the client left before its request was complete")
        sentence = f"unexpected {type(error).__name__}: the server's log says more"
        return Refusal(500, INVALID_OUTPUT, sentence)


class Endpoint:
    """An endpoint that reads a body within limits, and answers within its time.

    The memory of a request is counted until its answer is sent.
    """

    def __init__(self, service: Service, answer: Answering) -> None:
        self.service = service
        self.answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        limits = self.service.limits
        with self.service.pending.hold() as held:
            try:
                body = await read_body(request, limits, held)
                async with asyncio.timeout(limits.seconds):
                    response = await self.answer(request, body, held)
                del body
            except Exception as error:
                held.release()
                response = self.service.refused(request, error)
            await response(scope, receive, send)


def _of_path(request: Request, error: HTTPException) -> Refusal:
    """Return the answer to a request for a wrong path, or by a wrong method."""
    sentences = {
        404: f"there is nothing at {request.url.path[:80]}: see /docs",
        405: f"{request.method} is not for {request.url.path[:80]}: see /docs",
    }
    message = sentences.get(error.status_code, str(error.detail))
    kind = NOT_FOUND if error.status_code == 404 else INVALID_INPUT
    return Refusal(error.status_code, kind, message, error.headers)
