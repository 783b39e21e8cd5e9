"""The endpoints of UM-Bridge, protocol 1.0: models as maps from vectors to a vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.serve.batching import QueuedCall
from twoscale.serve.bodies import (
    JSON,
    RequestMemory,
    answer_size,
    array_response,
    check_keys,
    json_object,
    json_response,
    number_array,
    off_loop,
    whole_number,
)
from twoscale.serve.limits import Refusal
from twoscale.serve.mappings import Points
from twoscale.serve.model import OPERATIONS
from twoscale.serve.service import ModelService

_STATUSES = {404: 400, 422: 400}  # the protocol's status for whatever is wrong with a request


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


def umbridge_routes(service: ModelService) -> list[Route]:
    """Return the endpoints of the protocol."""

    async def info(request: Request) -> Response:
        return json_response({"protocolVersion": 1.0, "models": list(service.models)})

    async def read(body: bytes, memory: RequestMemory) -> VectorRequest:
        memory.add_decoded(body)
        return await off_loop(len(body), VectorRequest, service, body)

    async def model_info(request: Request, body: bytes, memory: RequestMemory) -> Response:
        return json_response({"support": (await read(body, memory)).model.support})

    async def input_sizes(request: Request, body: bytes, memory: RequestMemory) -> Response:
        return json_response({"inputSizes": (await read(body, memory)).model.input_sizes})

    async def output_sizes(request: Request, body: bytes, memory: RequestMemory) -> Response:
        return json_response({"outputSizes": [(await read(body, memory)).output_size]})

    async def operate(request: Request, body: bytes, memory: RequestMemory) -> Response:
        name = request.url.path.strip("/")
        asked = await read(body, memory)
        model = asked.model
        if not model.support[name]:
            sentence = f"{name} is not supported by {model.name}, because its medium jumps at a "
            sentence += "threshold: serve it with a width, such as inputs kl:64,width=0.3"
            raise Refusal(400, sentence, kind="UnsupportedFeature")
        need = model.memory_of_vectors(asked.points)
        size = need.bytes + answer_size(need.answered, JSON)
        memory.add_expanded(size)
        call = await off_loop(len(body), asked.call, name)
        values = (await service.batcher.compute(call))[0][0]
        if not bool(torch.isfinite(values).all()):
            model.check_vectors(asked.inputs())  # raises if these are the reason
            sentence = f"the output of {model.name} is not finite: the input may be far from those "
            raise Refusal(500, sentence + "of the training")
        output = values[None] if name == "Evaluate" else values
        return await off_loop(size, array_response, {}, "output", output.numpy(), JSON)

    posts = {"ModelInfo": model_info, "InputSizes": input_sizes, "OutputSizes": output_sizes}
    posts |= dict.fromkeys(OPERATIONS, operate)
    return [
        Route("/Info", info, methods=["GET"]),
        *(service.post(f"/{name}", answer, _STATUSES) for name, answer in posts.items()),
    ]


def _vector(given: Any, size: int, name: str) -> Tensor:
    """Return numbers as a tensor (1, size), or refuse them."""
    array = number_array(given, name)
    if array is None or array.shape != (size,):
        came = f"{len(given)} values" if isinstance(given, list) else "nothing"
        raise TwoscaleError(f"{name} must be a list of {size} numbers here, got {came}")
    return torch.from_numpy(array.astype(np.float64))[None]
