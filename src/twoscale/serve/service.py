"""What all endpoints share: the models, the queue, the limits, and how a request is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from twoscale.errors import TwoscaleError, did_you_mean, missing_extra
from twoscale.runtime.logs import LOGGER
from twoscale.serve.batching import Batcher, Job, Tensors
from twoscale.serve.bodies import Pending, read_body, refusal_response
from twoscale.serve.limits import (
    INVALID_INPUT,
    INVALID_OUTPUT,
    MODEL_NOT_FOUND,
    NOT_FOUND,
    TIMEOUT,
    Limits,
    Refusal,
    busy,
)
from twoscale.serve.model import Model

try:
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
except ImportError as error:
    raise missing_extra(error.name or "starlette", "serve") from error

Answering = Callable[[Request, bytes], Awaitable[Response]]


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
            raise

    def endpoint(self, answer: Answering) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that reads a body within limits, and answers within its time."""

        async def handle(request: Request) -> Response:
            try:
                with self.pending.hold() as count:
                    body = await read_body(request, self.limits, count)
                    async with asyncio.timeout(self.limits.seconds):
                        return await answer(request, body)
            except Exception as error:
                return self.refused(request, error)

        return handle

    def refused(self, request: Request, error: Exception) -> Response:
        """Return the answer to a request that failed, and log it."""
        refusal = self._refusal(request, error)
        level = LOGGER.error if refusal.status >= 500 else LOGGER.warning
        unexpected = error if refusal.kind == INVALID_OUTPUT else None
        level(
            "%s %s: %d, %s",
            request.method,
            request.url.path,
            refusal.status,
            refusal.message,
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


def _of_path(request: Request, error: HTTPException) -> Refusal:
    """Return the answer to a request for a wrong path, or by a wrong method."""
    sentences = {
        404: f"there is nothing at {request.url.path[:80]}: see /docs",
        405: f"{request.method} is not for {request.url.path[:80]}: see /docs",
    }
    message = sentences.get(error.status_code, str(error.detail))
    kind = NOT_FOUND if error.status_code == 404 else INVALID_INPUT
    return Refusal(error.status_code, kind, message, error.headers)
