"""The application: its endpoints for fields, its pages, and those of UM-Bridge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import numpy as np

from twoscale._version import __version__
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.files import plain_json
from twoscale.serve.batching import Job
from twoscale.serve.bodies import (
    JSON,
    NPY,
    PiecesResponse,
    answer_size,
    json_object,
    json_pieces_of,
    json_response,
    kind_of_answer,
    kind_of_body,
    known_keys,
    npy_array,
    npy_pieces,
    number_array,
    off_loop,
)
from twoscale.serve.limits import INVALID_INPUT, TOO_LARGE, Refusal
from twoscale.serve.model import Answer, Model
from twoscale.serve.origins import OwnOrigins
from twoscale.serve.pages import docs_page, openapi
from twoscale.serve.pending import Held, decoded_size
from twoscale.serve.service import Endpoint, Service
from twoscale.serve.umbridge import umbridge_routes
from twoscale.trust import LEVEL

try:
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise missing_extra(error.name or "starlette", "serve") from error

KEYS = ("fields", "parameters", "assess", "level", "resample", "model")
"""What the JSON of a prediction may hold."""

_RESAMPLE = ("pass resample=True", 'send "resample": true or ask /predict?resample=true')
"""What a sentence says in Python, and by HTTP."""


class Asked(NamedTuple):
    """What a request for a prediction holds."""

    fields: np.ndarray | None
    parameters: np.ndarray | None
    level: float | None = None  # of radii, if the prediction is to be assessed
    resample: bool = False  # fields may be on another grid


def application(service: Service, hosts: frozenset[str] | None = None) -> Starlette:
    """Return the application of a service; it starts and stops the queue's thread.

    `hosts` is what the header Host of a request may be; anything by default.
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.batcher.start()
        try:
            yield
        finally:
            service.batcher.stop()

    async def refused(request: Request, error: Exception) -> Response:
        return service.refused(request, error)

    app = Starlette(
        routes=[*_field_routes(service), *umbridge_routes(service)],
        lifespan=lifespan,
        exception_handlers={HTTPException: refused},
        middleware=[Middleware(OwnOrigins, service=service, hosts=hosts)],
    )
    app.router.redirect_slashes = False  # a redirect would name the host that the client claims
    return app


def _field_routes(service: Service) -> list[Route]:
    described = [model.describe() for model in service.models.values()]
    schema = openapi(described, service.limits)

    async def health(request: Request) -> Response:
        queue = {"waiting": service.batcher.waiting, "batches": service.batcher.batches}
        content = {"status": "ok", "version": __version__, "models": described, "queue": queue}
        return json_response(content)

    async def docs(request: Request) -> Response:
        return HTMLResponse(docs_page(described, service.limits, str(request.base_url)))

    async def schema_of(request: Request) -> Response:
        return json_response(schema)

    async def predict(request: Request, body: bytes, held: Held) -> Response:
        own = kind_of_body(request)
        wanted = kind_of_answer(request, own)
        resample = _switch(request.query_params.get("resample"))
        if own == JSON:
            held.add(decoded_size(body))
            content = await off_loop(len(body), json_object, body)
            known_keys(content, KEYS, "a prediction")
            model = service.model(content.get("model", request.query_params.get("model")))
            asked = await off_loop(len(body), _asked_by_json, content, resample)
        else:
            model = service.model(request.query_params.get("model"))
            asked = _asked_by_npy(model, npy_array(body), resample)
        if asked.level is not None and wanted == NPY:
            raise Refusal(422, INVALID_INPUT, f"assess needs an answer in {JSON}")
        memory = model.memory_of_fields(asked.fields, asked.parameters, resample=asked.resample)
        if memory.samples > service.limits.fields:
            most = service.limits.fields
            sentence = f"a request has {most} fields at most, got {memory.samples}"
            raise Refusal(413, TOO_LARGE, sentence)
        size = memory.held + answer_size(memory.answered, wanted)
        held.add_expanded(size)
        answer = await _predicted(service, model, asked, size)
        return await off_loop(size, _encoded, model, asked, answer, wanted)

    return [
        Route("/", docs, methods=["GET"]),
        Route("/docs", docs, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
        Route("/openapi.json", schema_of, methods=["GET"]),
        Route("/predict", Endpoint(service, predict), methods=["POST"]),
    ]


async def _predicted(service: Service, model: Model, asked: Asked, size: int) -> Answer:
    """Return the answer to a request that takes `size` bytes; many are read in a thread."""
    try:
        given = await off_loop(size, model.read, asked.fields, asked.parameters, asked.resample)
    except TwoscaleError as error:
        raise TwoscaleError(str(error).replace(*_RESAMPLE)) from error
    job: Job
    if asked.level is None:
        job = model.prediction(given)
    else:
        job = model.assessment(given, asked.level)
    return await off_loop(size, model.answer, given, await service.compute(job))


def _switch(text: str | None) -> bool:
    """Return the value of a switch in an address."""
    if text not in (None, "true", "false"):
        raise TwoscaleError(f"resample is true or false, got '{text:.20}'")
    return text == "true"


def _asked_by_json(content: dict[str, Any], resample: bool) -> Asked:
    """Return what JSON asks for; its own `resample` comes before that of the address."""
    assess, resample = content.get("assess", False), content.get("resample", resample)
    if not isinstance(assess, bool) or not isinstance(resample, bool):
        raise TwoscaleError("assess and resample are true or false")
    level = content.get("level", LEVEL)
    if not isinstance(level, int | float) or isinstance(level, bool):
        raise TwoscaleError("level is a number between 0 and 1")
    fields, parameters = (
        number_array(content.get(name), name) for name in ("fields", "parameters")
    )
    return Asked(fields, parameters, float(level) if assess else None, resample)


def _asked_by_npy(model: Model, array: np.ndarray, resample: bool) -> Asked:
    """Return what an array means: fields, or parameters if the surrogate reads nothing else."""
    space = model.spaces[0]
    if space.field_channels and space.parameters:
        raise TwoscaleError(
            f"{model.name} reads fields and parameters, and an npy body holds one array: send "
            f"{JSON} with fields and parameters"
        )
    if not space.field_channels:
        return Asked(None, array)
    return Asked(array, None, resample=resample)


def _encoded(model: Model, asked: Asked, answer: Answer, wanted: str) -> Response:
    if wanted == NPY:
        return PiecesResponse(npy_pieces(answer.fields), NPY)
    content: dict[str, Any] = {"model": model.name, "shape": list(answer.fields.shape)}
    if answer.radius is not None and answer.outside is not None:
        content |= {
            "level": asked.level,
            "radius": plain_json(answer.radius),
            "outside": answer.outside.tolist(),
        }
    return PiecesResponse(json_pieces_of(content, "fields", answer.fields), JSON)
