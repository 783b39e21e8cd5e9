"""Bodies of requests and answers: read within limits, decoded with care, encoded in pieces."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeVar

import numpy as np
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from twoscale.errors import TwoscaleError, unknown_name
from twoscale.files.npy import read_npy_header
from twoscale.files.reading import parse_json
from twoscale.runtime.memory import size_text
from twoscale.serve.limits import CLOSE, Limits, Refusal

JSON, NPY = "application/json", "application/x-npy"
_SMALL = 2**16  # bytes: what is decoded or encoded at once, without a thread
_PIECE_BYTES = 2**18  # of an answer, sent at once
_PIECE_NUMBERS = 2**13  # of an answer in JSON, encoded at once: a few milliseconds
_ANSWER_BYTES = {JSON: 40, NPY: 8}  # of a number in an answer, and while it is encoded
_VALUE_BYTES, _LIST_BYTES = 32, 64  # of a number in a list of Python; of an empty list or object

Result = TypeVar("Result")


class PendingMemory:
    """How many bytes of memory all requests take that are not answered yet."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.total = 0


class RequestMemory:
    """The memory of one request, from its first byte to the last one of its answer."""

    def __init__(self, pending: PendingMemory) -> None:
        self._pending = pending
        self.total = 0

    def add(self, count: int) -> None:
        """Count bytes of this request, or refuse it if others leave too little.

        A request is never refused for its own bytes: alone it is answered, whatever its size.
        """
        others = self._pending.total - self.total
        if others and others + self.total + count > self._pending.limits.pending_bytes:
            raise Refusal(503, f"requests of {size_text(others)} are waiting already: try later")
        self._pending.total += count
        self.total += count

    def add_expanded(self, count: int) -> None:
        """Count fields and answer, or refuse them if they are too much for one request."""
        most = self._pending.limits.memory_bytes
        if count > most:
            raise Refusal(
                413,
                f"the fields of a request and its answer have {size_text(most)} at most on the "
                f"model's grid, these have {size_text(count)}: send fewer fields at a time",
            )
        self.add(count)

    def add_decoded(self, body: bytes) -> None:
        """Count about what the values of a JSON text take in Python."""
        lists = body.count(b"[") + body.count(b"{")
        self.add(_VALUE_BYTES * body.count(b",") + _LIST_BYTES * lists)

    def release(self) -> None:
        """Count nothing any more."""
        self._pending.total -= self.total
        self.total = 0


async def read_body(request: Request, limits: Limits, memory: RequestMemory) -> bytes:
    """Return a request's body; refuse one that is too large, or that comes too slowly.

    A body of unknown length (chunked) is refused as soon as it has become too large.
    """
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise Refusal(415, f"bodies come without compression, got {encoding}")
    _check_size(int(request.headers.get("content-length", 0)), limits)
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for part in request.stream():
                size += len(part)
                _check_size(size, limits)
                memory.add(len(part))
                parts.append(part)
    except TimeoutError:
        late = f"the body did not arrive within {limits.body_seconds:g} s: {size} bytes came"
        raise Refusal(408, late, headers=CLOSE) from None
    return b"".join(parts)


def _check_size(size: int, limits: Limits) -> None:
    if size > limits.request_bytes:
        most = size_text(limits.request_bytes)
        raise Refusal(
            413, f"a request has {most} at most: send fewer fields at a time", headers=CLOSE
        )


async def off_loop(size: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """Return function(*arguments); for many bytes in a thread, so that other requests go on."""
    if size <= _SMALL:
        return function(*arguments)
    return await asyncio.to_thread(function, *arguments)


def kind_of_body(request: Request) -> str:
    """Return the type of a request's body: JSON or npy; anything else is refused."""
    kind = _media_types(request.headers.get("content-type", ""))[0]
    if kind in (JSON, NPY):
        return kind
    raise Refusal(415, f"the Content-Type is {JSON} or {NPY}, got '{kind or 'none'}'")


def kind_of_answer(request: Request, own: str) -> str:
    """Return the type of the answer that a client accepts; by default that of its request."""
    accepted = _media_types(request.headers.get("accept", "*/*"))
    for kind in accepted:
        if kind in (JSON, NPY):
            return kind
    if {"*/*", "application/*"} & {*accepted}:
        return own
    raise Refusal(406, f"answers are {JSON} or {NPY}, and neither is accepted")


def _media_types(header: str) -> list[str]:
    return [text.partition(";")[0].strip().lower() for text in header.split(",")]


def json_object(body: bytes) -> dict[str, Any]:
    """Return the object of a JSON body; NaN, deep nesting and anything else are refused."""
    try:
        content = parse_json(body.decode())
    except ValueError as error:
        raise TwoscaleError(f"the body is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise TwoscaleError("the body must be a JSON object, with keys and values")
    return content


def check_keys(content: dict[str, Any], known: Collection[str], kind: str) -> None:
    """Raise if an object has a key that is not known."""
    for key in content:
        if key not in known:
            raise unknown_name(kind, key, known)


def whole_number(content: dict[str, Any], key: str, count: int) -> int:
    """Return the number of one of so many things, from 0."""
    number = content.get(key)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < count:
        raise TwoscaleError(
            f"{key} must be a whole number from 0 to {count - 1}, got {number!r:.40}"
        )
    return number


def npy_array(body: bytes) -> np.ndarray:
    """Return the array of an npy body; pickles, wrong lengths and other types are refused."""
    try:
        header = read_npy_header(io.BytesIO(body))
    except Exception as error:  # of NumPy's parser, on any bytes
        raise TwoscaleError(f"the body is not an npy file: {error}") from error
    came = len(body) - header.offset
    if header.dtype.kind not in "fiub":
        raise TwoscaleError(f"the array must be real numbers, got {header.dtype}")
    if header.nbytes != came:
        raise TwoscaleError(f"the npy header claims {header.nbytes} bytes of values, {came} came")
    if not header.nbytes:
        raise TwoscaleError(f"the array has no values: its shape is {header.shape}")
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
        types.update(*(_types_in(inner) for inner in value if isinstance(inner, list)))
    return types


def answer_size(numbers: int, kind: str) -> int:
    """Return about how many bytes an answer of so many numbers takes."""
    return numbers * _ANSWER_BYTES[kind]


def array_response(content: dict[str, Any], name: str, array: np.ndarray, kind: str) -> Response:
    """Return an answer with an array: an npy file, or an object whose last value it is.

    A large one is encoded and sent in pieces, each once the client has read most of those before.
    So a client that does not read keeps its request waiting, and the request's memory counted.
    """
    pieces = _npy_pieces(array) if kind == NPY else _json_pieces_of(content, name, array)
    if array.size <= _PIECE_NUMBERS:
        return Response(b"".join(pieces), media_type=kind)
    return StreamingResponse(pieces, media_type=kind)


def _npy_pieces(array: np.ndarray) -> Iterator[bytes]:
    """Return an array as an npy file, in pieces."""
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    stream.seek(0)
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def _json_pieces_of(content: dict[str, Any], name: str, array: np.ndarray) -> Iterator[bytes]:
    """Return an object as JSON, in pieces, with an array as its last value."""
    head = json.dumps(content, allow_nan=False)[:-1] + (", " if content else "")
    yield f"{head}{json.dumps(name)}: ".encode()
    yield from json_pieces(array)
    yield b"}"


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
        before = ", " if start else "["
        if step:
            text = json.dumps(array[start : start + step].tolist(), allow_nan=False)
            yield f"{before}{text[1:-1]}".encode()
        else:
            yield before.encode()
            yield from json_pieces(array[start])
    yield b"]"


def json_response(content: Any) -> Response:
    """Return a JSON answer, of finite numbers only."""
    return Response(json.dumps(content, allow_nan=False), media_type=JSON)
