"""The endpoints of UM-Bridge, protocol 1.0: models as maps from vectors to a vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError, missing_extra
from twoscale.serve.batching import Job
from twoscale.serve.bodies import (
    JSON,
    PiecesResponse,
    answer_size,
    json_object,
    json_pieces_of,
    json_response,
    known_keys,
    number_array,
    off_loop,
)
from twoscale.serve.limits import INVALID_INPUT, INVALID_OUTPUT, TOO_LARGE, UNSUPPORTED, Refusal
from twoscale.serve.mappings import Points
from twoscale.serve.model import Model
from twoscale.serve.pending import Held, decoded_size
from twoscale.serve.service import Answering, Endpoint, Service

try:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError as error:
    raise missing_extra(error.name or "starlette", "serve") from error

PROTOCOL = 1.0
CONFIG = ("points",)
"""What the configuration of a request may hold."""


class Call:
    """The content of a request to one model; reading a part of it refuses what is wrong there."""

    def __init__(self, service: Service, content: dict[str, Any]) -> None:
        self.content = content
        name = content.get("name")
        self.model: Model = service.model("" if name is None else name, missing=400)
        config = content.get("config")
        config = {} if config is None else config
        if not isinstance(config, dict):
            raise _invalid("config must be a JSON object")
        known_keys(config, CONFIG, "config")
        points = config.get("points")
        most = service.limits.points
        if isinstance(points, list) and len(points) > most:
            sentence = f"a request names {most} points at most, got {len(points)}"
            raise Refusal(413, TOO_LARGE, sentence)
        self.points: Points | None = self.model.chosen_points(number_array(points, "points"))

    @property
    def output_size(self) -> int:
        return self.model.output_sizes(self.points)[0]

    def vectors(self) -> list[Tensor]:
        """Return the input vectors, (1, n) each."""
        given, sizes = self.content.get("input"), self.model.input_sizes
        if not isinstance(given, list) or len(given) != len(sizes):
            raise _invalid(f"input must be a list of {len(sizes)} lists of numbers")
        return [_vector(one, size, "input") for one, size in zip(given, sizes, strict=True)]

    def vector(self, name: str, size: int) -> Tensor:
        """Return a vector (1, size) by its name."""
        return _vector(self.content.get(name), size, name)

    def place(self, name: str, count: int) -> int:
        """Return the number of an input or of an output, from 0."""
        place = self.content.get(name)
        if not isinstance(place, int) or isinstance(place, bool) or not 0 <= place < count:
            raise _invalid(
                f"{name} must be a whole number from 0 to {count - 1}, got {place!r:.40}"
            )
        return place

    def wrt(self, name: str) -> int:
        """Return the number of an input vector; the output vector is checked as well."""
        self.place("outWrt", 1)
        return self.place(name, len(self.model.input_sizes))


def evaluate(call: Call) -> Job:
    return call.model.evaluation(call.vectors(), call.points)


def gradient(call: Call) -> Job:
    place, vectors = call.wrt("inWrt"), call.vectors()
    return call.model.gradient(vectors, call.points, place, call.vector("sens", call.output_size))


def apply_jacobian(call: Call) -> Job:
    place, vectors = call.wrt("inWrt"), call.vectors()
    direction = call.vector("vec", call.model.input_sizes[place])
    return call.model.jacobian(vectors, call.points, place, direction)


def apply_hessian(call: Call) -> Job:
    first, second = call.wrt("inWrt1"), call.wrt("inWrt2")
    vectors, sens = call.vectors(), call.vector("sens", call.output_size)
    direction = call.vector("vec", call.model.input_sizes[second])
    return call.model.hessian(vectors, call.points, (first, second), sens, direction)


OPERATIONS: dict[str, Callable[[Call], Job]] = {
    "Evaluate": evaluate,
    "Gradient": gradient,
    "ApplyJacobian": apply_jacobian,
    "ApplyHessian": apply_hessian,
}


def umbridge_routes(service: Service) -> list[Route]:
    """Return the endpoints of the protocol."""

    async def info(request: Request) -> Response:
        return json_response({"protocolVersion": PROTOCOL, "models": list(service.models)})

    async def call_of(body: bytes, held: Held) -> Call:
        held.add(decoded_size(body))
        return await off_loop(len(body), lambda: Call(service, json_object(body)))

    async def model_info(request: Request, body: bytes, held: Held) -> Response:
        return json_response({"support": (await call_of(body, held)).model.support})

    async def input_sizes(request: Request, body: bytes, held: Held) -> Response:
        return json_response({"inputSizes": (await call_of(body, held)).model.input_sizes})

    async def output_sizes(request: Request, body: bytes, held: Held) -> Response:
        return json_response({"outputSizes": [(await call_of(body, held)).output_size]})

    async def operate(request: Request, body: bytes, held: Held) -> Response:
        name = request.url.path.strip("/")
        call = await call_of(body, held)
        if not call.model.support[name]:
            raise Refusal(400, UNSUPPORTED, _no_derivatives(name, call.model))
        memory = call.model.memory_of_vectors(call.points)
        size = memory.held + answer_size(memory.answered, JSON)
        held.add_expanded(size)
        job = await off_loop(len(body), OPERATIONS[name], call)
        values = (await service.compute(job))[0][0]
        if not bool(torch.isfinite(values).all()):
            call.model.check_vectors(call.vectors())  # raises if these are the reason
            raise Refusal(500, INVALID_OUTPUT, _not_finite(call))
        output = values[None] if name == "Evaluate" else values
        pieces = json_pieces_of({}, "output", output.numpy())
        return await off_loop(size, PiecesResponse, pieces, JSON)

    posts = {
        "ModelInfo": model_info,
        "InputSizes": input_sizes,
        "OutputSizes": output_sizes,
        **dict.fromkeys(OPERATIONS, operate),
    }
    return [
        Route("/Info", info, methods=["GET"]),
        *(
            Route(f"/{name}", Endpoint(service, _protocol_errors(answer)), methods=["POST"])
            for name, answer in posts.items()
        ),
    ]


def _protocol_errors(answer: Answering) -> Answering:
    """Return the same with the protocol's status for whatever is wrong with a request: 400."""

    async def handle(request: Request, body: bytes, held: Held) -> Response:
        try:
            return await answer(request, body, held)
        except TwoscaleError as error:
            raise _invalid(str(error)) from error
        except Refusal as refusal:
            if refusal.status == 422:
                refusal.status = 400
            raise

    return handle


def _vector(given: Any, size: int, name: str) -> Tensor:
    """Return numbers as a tensor (1, size), or refuse them."""
    if not isinstance(given, list) or len(given) != size:
        came = f"{len(given)} values" if isinstance(given, list) else type(given).__name__
        raise _invalid(f"{name} must be a list of {size} numbers here, got {came}")
    if not set(map(type, given)) <= {int, float}:  # true and false are no numbers
        raise _invalid(f"{name} must be a list of {size} numbers, and some are something else")
    return torch.from_numpy(np.array(given, np.float64))[None]


def _invalid(message: str) -> Refusal:
    return Refusal(400, INVALID_INPUT, message)


def _no_derivatives(name: str, model: Model) -> str:
    return (
        f"{name} is not supported by {model.name}, because its medium jumps at a threshold: serve "
        "it with a width, such as inputs kl:64,width=0.3"
    )


def _not_finite(call: Call) -> str:
    return (
        f"the output of {call.model.name} is not finite: the input may be far from those of the "
        "training"
    )
