"""The endpoints for fields, and the server's own pages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from twoscale._version import __version__
from twoscale.errors import TwoscaleError
from twoscale.files import plain_json
from twoscale.serve.batching import Tensors
from twoscale.serve.bodies import (
    JSON,
    NPY,
    RequestMemory,
    answer_size,
    array_response,
    check_keys,
    json_object,
    json_response,
    kind_of_answer,
    kind_of_body,
    npy_array,
    number_array,
    off_loop,
)
from twoscale.serve.limits import Refusal
from twoscale.serve.model import FieldRequest, ServedModel
from twoscale.serve.pages import docs_page, openapi
from twoscale.serve.service import ModelService
from twoscale.surrogate.inputs import Given
from twoscale.trust import LEVEL


def field_routes(service: ModelService) -> list[Route]:
    """Return the endpoints that predict fields, and those that say what there is."""
    models = [model.describe() for model in service.models.values()]
    description = openapi(models, service.limits)
    keys = list(description["components"]["schemas"]["Fields"]["properties"])

    async def health(request: Request) -> Response:
        queue = {"waiting": service.batcher.waiting, "batches": service.batcher.batches}
        content = {"status": "ok", "version": __version__, "models": models, "queue": queue}
        return json_response(content)

    async def docs(request: Request) -> Response:
        return HTMLResponse(docs_page(description, models, service.limits, str(request.base_url)))

    async def schema(request: Request) -> Response:
        return json_response(description)

    async def predict(request: Request, body: bytes, memory: RequestMemory) -> Response:
        own = kind_of_body(request)
        wanted = kind_of_answer(request, own)
        if own == JSON:
            memory.add_decoded(body)
        asked = await off_loop(len(body), _read, service, keys, request, body)
        if asked.level is not None and wanted == NPY:
            raise TwoscaleError(f"assess needs an answer in {JSON}")
        need = asked.model.memory_of_fields(asked)
        if need.samples > service.limits.fields:
            most = service.limits.fields
            raise Refusal(413, f"a request has {most} fields at most, got {need.samples}")
        size = need.bytes + answer_size(need.answered, wanted)
        memory.add_expanded(size)
        given = await off_loop(size, asked.model.read, asked)
        results = await service.batcher.compute(asked.model.prediction(given, asked.level))
        return await off_loop(size, _response, asked, given, results, wanted)

    return [
        Route("/", docs, methods=["GET"]),
        Route("/docs", docs, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
        Route("/openapi.json", schema, methods=["GET"]),
        service.post("/predict", predict),
    ]


def _read(
    service: ModelService, keys: Collection[str], request: Request, body: bytes
) -> FieldRequest:
    """Return what a request asks for; the keys of a JSON body come before those of the address."""
    query = request.query_params
    resample = query.get("resample", "false")
    if resample not in ("true", "false"):
        raise TwoscaleError(f"resample is true or false, got '{resample:.20}'")
    content: dict[str, Any] = {"model": query.get("model"), "resample": resample == "true"}
    if is_json := kind_of_body(request) == JSON:
        given = json_object(body)
        check_keys(given, keys, "key of a prediction")
        content |= given
    model = service.model(content["model"])
    assess, level = content.get("assess", False), content.get("level", LEVEL)
    if not isinstance(assess, bool) or not isinstance(content["resample"], bool):
        raise TwoscaleError("assess and resample are true or false")
    if not isinstance(level, int | float) or isinstance(level, bool):
        raise TwoscaleError("level is a number between 0 and 1")
    if is_json:
        fields, parameters = (
            number_array(content.get(name), name) for name in ("fields", "parameters")
        )
    else:
        fields, parameters = _as_fields_or_parameters(model, npy_array(body))
    level = float(level) if assess else None
    return FieldRequest(model, fields, parameters, level, content["resample"])


def _as_fields_or_parameters(
    model: ServedModel, array: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return what an array means: fields, or parameters if the surrogate reads nothing else."""
    space = model.spaces[0]
    if space.field_channels and space.parameters:
        raise TwoscaleError(
            f"{model.name} reads fields and parameters, and an npy body holds one array: send "
            f"{JSON} with fields and parameters"
        )
    return (array, None) if space.field_channels else (None, array)


def _response(asked: FieldRequest, given: Given, results: Tensors, kind: str) -> Response:
    fields, *assessed = asked.model.answer(given, results)
    content: dict[str, Any] = {"model": asked.model.name, "shape": list(fields.shape)}
    if assessed:
        radius, outside = assessed
        content |= {"level": asked.level, "radius": plain_json(radius)}
        content["outside"] = outside.tolist()
    return array_response(content, "fields", fields, kind)
