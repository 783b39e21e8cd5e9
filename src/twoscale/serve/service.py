"""The endpoints for models: fields by JSON and npy, vectors by UM-Bridge, and pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from torch import Tensor

from twoscale._version import __version__
from twoscale.errors import TwoscaleError, did_you_mean
from twoscale.files import plain_json
from twoscale.serve.batching import Batcher, QueuedCall, Tensors
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
    whole_number,
)
from twoscale.serve.http import HttpService
from twoscale.serve.limits import Limits, Refusal
from twoscale.serve.mappings import Points
from twoscale.serve.model import OPERATIONS, FieldRequest, ServedModel
from twoscale.serve.pages import docs_page, openapi
from twoscale.surrogate.prediction import PredictionInputs
from twoscale.trust import LEVEL


class ModelService(HttpService):
    """Models with their queue and their endpoints.

    Parameters
    ----------
    models
        The models, of different names.
    limits
        What is accepted at most.
    """

    def __init__(self, models: Sequence[ServedModel], limits: Limits) -> None:
        super().__init__(limits)
        self.models = {model.name: model for model in models}
        if not models or len(self.models) != len(models):
            raise TwoscaleError("a server needs models of different names, and at least one")
        self.batcher = Batcher(limits)
        self._described = [model.describe() for model in models]
        self.description = openapi(self._described, limits)
        pages = {
            "/": self._docs,
            "/docs": self._docs,
            "/health": self._health,
            "/openapi.json": self._schema,
            "/Info": self._info,
        }
        vectors = dict.fromkeys(("ModelInfo", "InputSizes", "OutputSizes"), self._tell)
        vectors |= dict.fromkeys(OPERATIONS, self._operate)
        self.routes += [Route(path, page) for path, page in pages.items()]
        self.routes.append(self.post("/predict", self._predict))
        self.routes += [self.post(f"/{name}", call) for name, call in vectors.items()]

    def stop(self) -> None:
        self.batcher.stop()

    def model(self, name: Any) -> ServedModel:
        """Return a model by its name; without one, the only model."""
        known = ", ".join(self.models)
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if name is None:
            raise TwoscaleError(f"name a model: there are {known}")
        if not isinstance(name, str) or name not in self.models:
            hint = did_you_mean(name, self.models) if isinstance(name, str) else ""
            sentence = f"no model is called {name!r:.80}{hint}: there are {known}"
            raise Refusal(400, sentence, kind="ModelNotFound")
        return self.models[name]

    # Pages

    async def _docs(self, request: Request) -> Response:
        address = str(request.base_url)
        return HTMLResponse(docs_page(self.description, self._described, self.limits, address))

    async def _health(self, request: Request) -> Response:
        queue = {"waiting": self.batcher.waiting, "batches": self.batcher.batches}
        content = {"status": "ok", "version": __version__, "models": self._described}
        return json_response(content | {"queue": queue})

    async def _schema(self, request: Request) -> Response:
        return json_response(self.description)

    async def _info(self, request: Request) -> Response:
        return json_response({"protocolVersion": 1.0, "models": list(self.models)})

    # Fields

    async def _predict(self, request: Request, body: bytes, memory: RequestMemory) -> Response:
        own = kind_of_body(request)
        wanted = kind_of_answer(request, own)
        if own == JSON:
            memory.add_decoded(body)
        asked = await off_loop(len(body), _read_fields, self, request, body)
        if asked.level is not None and wanted == NPY:
            raise TwoscaleError(f"assess needs an answer in {JSON}")
        need = asked.model.memory_of_fields(asked)
        if need.samples > self.limits.fields:
            most = self.limits.fields
            raise Refusal(413, f"a request has {most} fields at most, got {need.samples}")
        size = need.bytes + answer_size(need.answered, wanted)
        memory.add_expanded(size)
        inputs = await off_loop(size, asked.model.read, asked)
        results = await self.batcher.compute(asked.model.prediction(inputs, asked.level))
        return await off_loop(size, _response, asked, inputs, results, wanted)

    # Vectors

    async def _read(self, body: bytes, memory: RequestMemory) -> VectorRequest:
        memory.add_decoded(body)
        return await off_loop(len(body), VectorRequest, self, body)

    async def _tell(self, request: Request, body: bytes, memory: RequestMemory) -> Response:
        asked = await self._read(body, memory)
        facts = {
            "ModelInfo": {"support": asked.model.support},
            "InputSizes": {"inputSizes": asked.model.input_sizes},
            "OutputSizes": {"outputSizes": [asked.output_size]},
        }
        return json_response(facts[request.url.path.strip("/")])

    async def _operate(self, request: Request, body: bytes, memory: RequestMemory) -> Response:
        name = request.url.path.strip("/")
        asked = await self._read(body, memory)
        model = asked.model
        if not model.support[name]:
            sentence = f"{name} is not supported by {model.name}, because its medium jumps at a "
            sentence += "threshold: serve it with a width, such as inputs kl:64,width=0.3"
            raise Refusal(400, sentence, kind="UnsupportedFeature")
        need = model.memory_of_vectors(asked.points)
        size = need.bytes + answer_size(need.answered, JSON)
        memory.add_expanded(size)
        call = await off_loop(len(body), asked.call, name)
        values = (await self.batcher.compute(call))[0][0]
        if not bool(torch.isfinite(values).all()):
            model.check_vectors(asked.inputs())  # raises if these are the reason
            sentence = f"the output of {model.name} is not finite: the input may be far from those "
            raise Refusal(500, sentence + "of the training")
        output = values[None] if name == "Evaluate" else values
        return await off_loop(size, array_response, {}, "output", output.numpy(), JSON)


def _read_fields(service: ModelService, request: Request, body: bytes) -> FieldRequest:
    """Return what a request asks for; the keys of a JSON body come before those of the address."""
    query = request.query_params
    resample = query.get("resample", "false")
    if resample not in ("true", "false"):
        raise TwoscaleError(f"resample is true or false, got '{resample:.20}'")
    content: dict[str, Any] = {"model": query.get("model"), "resample": resample == "true"}
    if is_json := kind_of_body(request) == JSON:
        given = json_object(body)
        keys = service.description["components"]["schemas"]["Fields"]["properties"]
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
    if space.channels and space.parameters:
        raise TwoscaleError(
            f"{model.name} reads fields and parameters, and an npy body holds one array: send "
            f"{JSON} with fields and parameters"
        )
    return (array, None) if space.channels else (None, array)


def _response(
    asked: FieldRequest, inputs: PredictionInputs, results: Tensors, kind: str
) -> Response:
    fields, *assessed = asked.model.answer(inputs, results)
    content: dict[str, Any] = {"model": asked.model.name, "shape": list(fields.shape)}
    if assessed:
        radius, outside = assessed
        content |= {"level": asked.level, "radius": plain_json(radius)}
        content["outside"] = outside.tolist()
    return array_response(content, "fields", fields, kind)


class VectorRequest:
    """The content of a request to one model; reading a part of it refuses what is wrong there."""

    def __init__(self, service: ModelService, body: bytes) -> None:
        self.content = json_object(body)
        self.model = service.model(self.content.get("name") or "")
        config = self.content.get("config")
        config = {} if config is None else config
        if not isinstance(config, dict):
            raise TwoscaleError("config must be a JSON object")
        check_keys(config, ["points"], "key of config")
        points, most = config.get("points"), service.limits.points
        if isinstance(points, list) and len(points) > most:
            raise Refusal(413, f"a request names {most} points at most, got {len(points)}")
        self.points: Points | None = self.model.chosen_points(number_array(points, "points"))

    @property
    def output_size(self) -> int:
        return self.model.output_size(self.points)

    def inputs(self) -> list[Tensor]:
        """Return the input vectors, (1, n) each."""
        given, sizes = self.content.get("input"), self.model.input_sizes
        if not isinstance(given, list) or len(given) != len(sizes):
            raise TwoscaleError(f"input must be a list of {len(sizes)} lists of numbers")
        return [_vector(one, size, "input") for one, size in zip(given, sizes, strict=True)]

    def call(self, name: str) -> QueuedCall:
        """Return what computes an operation."""
        operation, sizes = OPERATIONS[name], self.model.input_sizes
        if operation.places:
            whole_number(self.content, "outWrt", 1)
        places = [whole_number(self.content, key, len(sizes)) for key in operation.places]
        vectors = self.inputs()
        if operation.takes_sens:
            vectors.append(_vector(self.content.get("sens"), self.output_size, "sens"))
        if operation.takes_vec:
            vectors.append(_vector(self.content.get("vec"), sizes[places[-1]], "vec"))
        return self.model.vector_call(name, vectors, self.points, places)


def _vector(given: Any, size: int, name: str) -> Tensor:
    """Return numbers as a tensor (1, size), or refuse them."""
    array = number_array(given, name)
    if array is None or array.shape != (size,):
        came = f"{len(given)} values" if isinstance(given, list) else "nothing"
        raise TwoscaleError(f"{name} must be a list of {size} numbers here, got {came}")
    return torch.from_numpy(array.astype(np.float64))[None]
