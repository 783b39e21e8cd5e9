"""The server of a page: predictions in parts, truths and trust, for runs that it cannot compute."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import torch
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.explore.tensors import ArrayPacker, unpacked
from twoscale.explore.trust import allowed_levels
from twoscale.fields.source import Batch
from twoscale.files import plain_json
from twoscale.operators.operators import CodeOperator
from twoscale.representation import BlockPCA, Chain, Representation
from twoscale.serve.bodies import (
    RequestMemory,
    json_object,
    json_response,
    number_array,
    whole_number,
)
from twoscale.serve.http import HttpService
from twoscale.serve.limits import Limits
from twoscale.surrogate import Surrogate
from twoscale.surrogate.prediction import prediction_inputs
from twoscale.trust import LEVEL

# The largest input of a page has 22 MB as text.
_LIMITS = Limits(request_bytes=2**25, seconds=600.0)
_WANTS = ("truth", "trust")
_FAR = 1e30  # stands for an infinite distance, which JSON has no word for


class PageService(HttpService):
    """A page and the predictions of its runs.

    Parameters
    ----------
    page
        The page's text.
    surrogates
        Those of the page's runs, in their order.
    """

    def __init__(self, page: str, surrogates: Sequence[Surrogate]) -> None:
        super().__init__(_LIMITS)
        # So the page knows that it may ask; other servers only store files.
        self.page = page.replace("<html ", "<html data-served ", 1)
        self.surrogates = surrogates
        self._lock = Lock()  # predictions are computed one after the other
        self.routes += [Route("/", self._show), self.post("/predict", self._predict)]

    async def _show(self, request: Request) -> Response:
        return HTMLResponse(self.page, headers={"Cache-Control": "no-store"})

    async def _predict(self, request: Request, body: bytes, memory: RequestMemory) -> Response:
        memory.add_decoded(body)
        return json_response(await asyncio.to_thread(self._answer, body))

    def _answer(self, body: bytes) -> dict[str, Any]:
        content = json_object(body)
        surrogate = self.surrogates[whole_number(content, "run", len(self.surrogates))]
        question = read_question(content, surrogate)
        with self._lock:
            return answer(surrogate, question)


class Question(NamedTuple):
    """What a page asks of a surrogate."""

    fields: np.ndarray | None  # (1, channels, height, width)
    parameters: np.ndarray | None  # (1, P)
    inputs: Batch
    modes: int | None = None  # number of modes kept of each block; None for all
    level: float = LEVEL  # of the radius
    wants: Sequence[str] = ()  # any of truth and trust


def read_question(content: dict[str, Any], surrogate: Surrogate) -> Question:
    """Return the question that a request's content asks, or say what is wrong with it."""
    level, wants = content.get("level", LEVEL), content.get("wants", [])
    if not isinstance(level, float) or not 0 < level < 1:
        raise TwoscaleError("'level' must be a number between 0 and 1")
    if not isinstance(wants, list) or any(wanted not in _WANTS for wanted in wants):
        raise TwoscaleError(f"'wants' must be a list of any of {', '.join(_WANTS)}")
    modes = None if content.get("modes") is None else whole_number(content, "modes", 2**31)
    packed, parameters = (
        content.get("input"),
        number_array(content.get("parameters") or None, "parameters"),
    )
    fields = None if packed is None else _array(packed)[None]
    parameters = None if parameters is None else np.atleast_2d(parameters)
    spaces = (surrogate.input_space_, surrogate.output_space_)
    given = prediction_inputs(fields, parameters, spaces, surrogate.ranks_[0])
    if not bool(torch.isfinite(given.batch.fields).all()):
        raise TwoscaleError("the inputs contain NaN or infinite values")
    return Question(fields, parameters, given.batch, modes, level, wants)


def _array(packed: Any) -> np.ndarray:
    """Return the array of a packed input in float32, or say what is wrong with it."""
    try:
        values = unpacked(packed)
    except (KeyError, TypeError, ValueError) as error:
        raise TwoscaleError("'input' must have shape, type and data in base 64 that fit") from error
    if values.dtype.kind != "f":
        raise TwoscaleError(f"'input' must be of f2, f4 or f8, got {values.dtype}")
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


@torch.no_grad()
def answer(surrogate: Surrogate, question: Question) -> dict[str, Any]:
    """Return the parts of a prediction; truth and trust if wanted and known."""
    pack, problem = ArrayPacker(), surrogate.problem
    parts = field_parts(surrogate, question.inputs, question.modes)
    found: dict[str, Any] = {"parts": [pack(part[0]) for part in parts]}
    if "truth" in question.wants and problem and problem.solves(surrogate.output_space_.grid):
        found["truth"] = pack(problem.solve(question.inputs.fields)[0])
    band = None if surrogate.trust_ is None else surrogate.trust_.band
    levels = [] if band is None else allowed_levels(band)
    if "trust" in question.wants and levels:
        level = max((one for one in levels if one <= question.level), default=levels[0])
        found["trust"] = _trust(surrogate, question, level, pack)
    return found


def _trust(
    surrogate: Surrogate, question: Question, level: float, pack: ArrayPacker
) -> dict[str, Any]:
    """Return radius, distances and certificate of the whole prediction."""
    seen = surrogate.assess(question.fields, parameters=question.parameters, level=level)
    flags, proven = seen.flags, seen.certificate
    width = (np.asarray(seen.upper) - np.asarray(seen.lower)) / 2
    numbers = {
        "radius": float(seen.radius[0]),
        "level": level,
        "distances": {
            name: np.nan_to_num(getattr(flags, name)[0], nan=_FAR, posinf=_FAR).tolist()
            for name in ("roughness", "code", "values")
        },
        "certificate": None
        if proven is None
        else {name: float(values[0]) for name, values in proven.as_dict().items()},
    }
    return plain_json(numbers) | {
        "width": pack(width.reshape(surrogate.output_space_.shape), "half")
    }


@torch.no_grad()
def field_parts(surrogate: Surrogate, inputs: Batch, modes: int | None = None) -> list[Tensor]:
    """Return the fields that each stage of the output adds to a prediction; they add up to it.

    A surrogate with a correction has a single part.
    """
    operator = surrogate.operator_
    if not isinstance(operator, CodeOperator):
        return [operator(*inputs.tensors)]
    outputs = operator.outputs
    stages: list[Any] = list(outputs.stages.values()) if isinstance(outputs, Chain) else [outputs]
    sizes = [stage.code_size for stage in stages]
    group = operator.group if operator.average else operator.group[:1]
    images = []
    for symmetry in group:
        codes = operator.predictor(operator.encode(*inputs.map(symmetry).tensors)).split(sizes, 1)
        decoded = [
            stage.decode(_limited(stage, code, modes))
            for stage, code in zip(stages, codes, strict=True)
        ]
        images.append([symmetry.inverse(field) for field in decoded])
    return [torch.stack(parts).sum(0) / len(group) for parts in zip(*images, strict=True)]


def _limited(stage: Representation, codes: Tensor, modes: int | None) -> Tensor:
    """Return codes with zeros after the first modes of each block."""
    if modes is None or not isinstance(stage, BlockPCA):
        return codes
    (ranks,) = stage.ranks.values()
    numbers = torch.cat([torch.arange(rank) for rank in ranks])
    return torch.where(numbers < modes, codes, 0.0)
