"""The endpoints for fields, and the server's own pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from twoscale._version import __version__
from twoscale.errors import TwoscaleError, missing_extra
from twoscale.files import plain_json
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
from twoscale.trust import LEVEL

try:
    from starlette.requests import Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route
except ImportError as error:
    raise missing_extra(error.name or "starlette", "serve") from error


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
        resample = _switch(request.query_params.get("resample"))
        name = request.query_params.get("model")
        if own == JSON:
            content = await json_object(body, memory)
            check_keys(content, keys, "key of a prediction")
            model = service.model(content.get("model", name))
            asked = await off_loop(len(body), _asked_by_json, content, resample)
        else:
            model = service.model(name)
            asked = _asked_by_npy(model, npy_array(body), resample)
        if asked.level is not None and wanted == NPY:
            raise TwoscaleError(f"assess needs an answer in {JSON}")
        need = model.memory_of_fields(asked)
        if need.samples > service.limits.fields:
            most = service.limits.fields
            raise Refusal(413, f"a request has {most} fields at most, got {need.samples}")
        size = need.bytes + answer_size(need.answered, wanted)
        memory.add_expanded(size)
        given = await off_loop(size, model.read, asked)
        results = await service.batcher.compute(model.prediction(given, asked.level))
        arrays = await off_loop(size, model.answer, given, results)
        return await off_loop(size, _response, model, asked, arrays, wanted)

    return [
        Route("/", docs, methods=["GET"]),
        Route("/docs", docs, methods=["GET"]),
        Route("/health", health, methods=["GET"]),
        Route("/openapi.json", schema, methods=["GET"]),
        service.post("/predict", predict),
    ]


def _switch(text: str | None) -> bool:
    """Return the value of a switch in an address."""
    if text not in (None, "true", "false"):
        raise TwoscaleError(f"resample is true or false, got '{text:.20}'")
    return text == "true"


def _asked_by_json(content: dict[str, Any], resample: bool) -> FieldRequest:
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
    return FieldRequest(fields, parameters, float(level) if assess else None, resample)


def _asked_by_npy(model: ServedModel, array: np.ndarray, resample: bool) -> FieldRequest:
    """Return what an array means: fields, or parameters if the surrogate reads nothing else."""
    space = model.spaces[0]
    if space.field_channels and space.parameters:
        raise TwoscaleError(
            f"{model.name} reads fields and parameters, and an npy body holds one array: send "
            f"{JSON} with fields and parameters"
        )
    if not space.field_channels:
        return FieldRequest(None, array)
    return FieldRequest(array, None, resample=resample)


def _response(
    model: ServedModel, asked: FieldRequest, arrays: tuple[np.ndarray, ...], kind: str
) -> Response:
    fields, *assessed = arrays
    content: dict[str, Any] = {"model": model.name, "shape": list(fields.shape)}
    if assessed:
        radius, outside = assessed
        content |= {"level": asked.level, "radius": plain_json(radius)}
        content["outside"] = outside.tolist()
    return array_response(content, "fields", fields, kind)
