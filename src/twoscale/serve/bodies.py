"""Bodies of requests and answers: read within limits, decoded with care, encoded."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import numpy as np

from twoscale.errors import TwoscaleError, did_you_mean, missing_extra
from twoscale.files import parse_json, read_npy_header
from twoscale.runtime.memory import size_text
from twoscale.serve.limits import INVALID_INPUT, TIMEOUT, TOO_LARGE, Limits, Refusal
from twoscale.serve.pending import Held

try:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send
except ImportError as error:
    raise missing_extra(error.name or "starlette", "serve") from error

JSON, NPY = "application/json", "application/x-npy"
_SMALL = 2**16  # bytes: what is decoded or encoded at once, without a thread
_PIECE_BYTES = 2**18  # of an answer, sent at once
_PIECE_NUMBERS = 2**13  # of an answer in JSON, encoded at once: a few milliseconds
_JSON_NUMBER, _NPY_NUMBER = 40, 8  # bytes of a number in an answer, and while it is encoded
_LINGER = 2.0  # seconds that the rest of a refused body is read for, so that clients see the answer

Result = TypeVar("Result")


async def read_body(request: Request, limits: Limits, held: Held) -> bytes:
    """Return a request's body; refuse one that is too large, or that comes too slowly.

    A body of unknown length (chunked) is refused as soon as it has become too large.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise Refusal(415, INVALID_INPUT, f"bodies come without compression, got {encoding}")
    announced = int(request.headers.get("content-length", 0))
    _check_size(announced, limits)
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                _check_size(size, limits)
                held.add(len(part))
                parts.append(part)
    except TimeoutError:
        raise Refusal(
            408,
            TIMEOUT,
            f"the body did not arrive within {limits.body_seconds:g} s: {size} bytes came",
            {"Connection": "close"},
        ) from None
    return b"".join(parts)


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.request_bytes:
        raise Refusal(
            413,
            TOO_LARGE,
            f"a request has {size_text(limits.request_bytes)} at most: send fewer fields at a time",
            {"Connection": "close"},
        )


class LastResponse(Response):
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


class PiecesResponse(Response):
    """An answer that is sent in pieces, each once the client has read most of those before.

    So a client that does not read keeps its request waiting, and the request's memory counted.
    """

    def __init__(self, pieces: Iterable[bytes], media_type: str) -> None:
        super().__init__(None, media_type=media_type)
        self.pieces = [*_gathered(pieces)]
        self.headers["content-length"] = str(sum(map(len, self.pieces)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Return the same bytes in fewer pieces: small ones are put together."""
    parts: list[bytes] = []
    for piece in pieces:
        parts.append(piece)
        if sum(map(len, parts)) >= _PIECE_BYTES:
            yield b"".join(parts)
            parts.clear()
    yield b"".join(parts)


async def off_loop(size: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """Return function(*arguments); for many bytes in a thread, so that other requests go on."""
    if size <= _SMALL:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def kind_of_body(request: Request) -> str:
    """Return the type of a request's body: JSON or npy; anything else is refused."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given in (JSON, NPY):
        return given
    raise Refusal(
        415, INVALID_INPUT, f"the Content-Type is {JSON} or {NPY}, got '{given or 'none'}'"
    )


def kind_of_answer(request: Request, own: str) -> str:
    """Return the type of the answer that a client accepts; by default that of its request."""
    accepted = [
        one.partition(";")[0].strip().lower()
        for one in request.headers.get("accept", "*/*").split(",")
    ]
    for kind in accepted:
        if kind in (JSON, NPY):
            return kind
    if {"*/*", "application/*"} & {*accepted}:
        return own
    raise Refusal(406, INVALID_INPUT, f"answers are {JSON} or {NPY}, and neither is accepted")


def json_object(body: bytes) -> dict[str, Any]:
    """Return the object of a JSON body; NaN, deep nesting and anything else are refused."""
    try:
        content = parse_json(body.decode())
    except ValueError as error:
        raise Refusal(400, INVALID_INPUT, f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise Refusal(400, INVALID_INPUT, "the body must be a JSON object, with keys and values")
    return content


def known_keys(content: dict[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse an object with a key that is not known."""
    for key in content:
        if key not in known:
            hint = did_you_mean(key, known)
            raise Refusal(
                422, INVALID_INPUT, f"{where} has no '{key}'{hint}: known are {', '.join(known)}"
            )


def npy_array(body: bytes) -> np.ndarray:
    """Return the array of an npy body; pickles, wrong lengths and other types are refused."""
    try:
        header = read_npy_header(io.BytesIO(body))
    except Exception as error:  # of NumPy's parser, on any bytes
        raise Refusal(400, INVALID_INPUT, f"the body is not an npy file: {error}") from error
    if header.dtype.kind not in "fiub":
        raise Refusal(422, INVALID_INPUT, f"the array must be real numbers, got {header.dtype}")
    if header.nbytes != len(body) - header.offset:
        raise Refusal(
            400,
            INVALID_INPUT,
            f"the npy header claims {header.nbytes} bytes of values, {len(body) - header.offset} "
            "came",
        )
    if not header.nbytes:
        raise Refusal(422, INVALID_INPUT, f"the array has no values: its shape is {header.shape}")
    flat = np.frombuffer(body, header.dtype, offset=header.offset)
    return flat.reshape(header.shape, order="F" if header.fortran else "C")


def number_array(value: Any, name: str) -> np.ndarray | None:
    """Return nested lists of numbers as an array; None stays None."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise TwoscaleError(f"{name} must be nested lists of numbers, got {type(value).__name__}")
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise TwoscaleError(f"{name} is a list whose entries differ in shape") from error
    # NumPy takes true for 1 where numbers stand beside it.
    if array.dtype.kind not in "fiu" or not array.size or not _types_in(value) <= {int, float}:
        raise TwoscaleError(f"{name} must be nested lists of numbers, and not empty")
    return array


def _types_in(value: list[Any]) -> set[type]:
    """Return the types of what nested lists hold."""
    types = set(map(type, value))
    if list in types:
        types.remove(list)
        types.update(*(_types_in(one) for one in value if isinstance(one, list)))
    return types


def npy_pieces(array: np.ndarray) -> Iterator[bytes]:
    """Return an array as an npy file, in pieces."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    stream.seek(0)
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def json_pieces(array: np.ndarray) -> Iterator[bytes]:
    """Return an array of finite numbers as nested lists of JSON, in pieces.

    Python's encoder lets no other thread run until it is done, so that it is called for a few
    numbers at a time.
    """
    if array.size <= _PIECE_NUMBERS:
        yield json.dumps(array.tolist(), allow_nan=False).encode()
        return
    step = _PIECE_NUMBERS * len(array) // array.size  # rows that are encoded together
    for start in range(0, len(array), max(step, 1)):
        yield b", " if start else b"["
        if step:
            text = json.dumps(array[start : start + step].tolist(), allow_nan=False)
            yield text[1:-1].encode()
        else:
            yield from json_pieces(array[start])
    yield b"]"


def json_pieces_of(content: dict[str, Any], name: str, array: np.ndarray) -> Iterator[bytes]:
    """Return an object as JSON, in pieces, with an array as its last value."""
    head = json.dumps(content, allow_nan=False)[:-1] + (", " if content else "")
    yield f"{head}{json.dumps(name)}: ".encode()
    yield from json_pieces(array)
    yield b"}"


def answer_size(numbers: int, kind: str) -> int:
    """Return about how many bytes an answer of so many numbers takes."""
    return numbers * (_JSON_NUMBER if kind == JSON else _NPY_NUMBER)


def json_response(content: Any, status: int = 200) -> Response:
    """Return a JSON answer, of finite numbers only."""
    return Response(json.dumps(content, allow_nan=False), status, media_type=JSON)


def refusal_response(refusal: Refusal) -> Response:
    """Return the answer that tells an error."""
    kind = LastResponse if "Connection" in refusal.headers else Response
    return kind(json.dumps(refusal.content), refusal.status, refusal.headers, JSON)
