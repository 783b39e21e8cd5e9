"""A small server on this machine, for runs that a page cannot compute itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from twoscale.errors import TwoscaleError
from twoscale.explore.tensors import Packer, unpacked
from twoscale.explore.trust import allowed_levels
from twoscale.operators.operators import LatentOperator
from twoscale.representation import BlockPCA, Chain, Representation
from twoscale.run import Run
from twoscale.surrogate import Surrogate
from twoscale.trust import LEVEL

HOST = "127.0.0.1"
_MOST_BYTES = 2**26  # of a request


class PageServer(ThreadingHTTPServer):
    """Serves a page and the predictions of its runs, to this machine only.

    Parameters
    ----------
    page
        The page's text.
    runs
        The runs of the page by name.
    port
        The port to listen on; 0, the default, takes a free one.
    """

    daemon_threads = True

    def __init__(self, page: str, runs: Mapping[str, Run], *, port: int = 0) -> None:
        self.page = page.encode()
        self.surrogates = [run.surrogate for run in runs.values()]
        self.lock = Lock()  # predictions are computed one after the other
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise TwoscaleError(f"port {port} cannot be used: {error}; choose another") from error

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.server_port}/"

    def allowed_host(self, host: str) -> bool:
        """Say whether a request is meant for this server, not for a name that leads here."""
        return host in (f"{HOST}:{self.server_port}", f"localhost:{self.server_port}")


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        if self.path != "/":
            self._answer(404, b"not here", "text/plain")
        else:
            self._answer(200, self.server.page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        if self.path != "/predict":
            self._answer(404, b"not here", "text/plain")
            return
        try:
            found, status = self._predicted(), 200
        except (TwoscaleError, ValueError, KeyError, TypeError, IndexError) as error:
            found, status = {"error": str(error)}, 400
        self._answer(status, json.dumps(found).encode(), "application/json")

    def _predicted(self) -> dict[str, Any]:
        length = int(self.headers.get("Content-Length", 0))
        if not 0 < length <= _MOST_BYTES:
            raise TwoscaleError(f"a request has 1 to {_MOST_BYTES} bytes, this one {length}")
        asked = json.loads(self.rfile.read(length))
        surrogate = self.server.surrogates[int(asked["run"])]
        with self.server.lock:
            return answer(surrogate, asked)

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        if not self.server.allowed_host(self.headers.get("Host", "")):
            status, body, kind = 403, b"this server answers its own address only", "text/plain"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing of requests."""


@torch.no_grad()
def answer(surrogate: Surrogate, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of the prediction that is asked for; truth and trust if wanted.

    asked: `input` (channels, height, width) packed, or null; `parameters`; `modes`, the number of
    modes kept of each block, or null; `wants`, any of "truth" and "trust".
    """
    fields = _inputs(surrogate, asked)
    pack = Packer()
    wants = asked.get("wants", ())
    found: dict[str, Any] = {
        "parts": [pack.single(one[0]) for one in field_parts(surrogate, fields, asked.get("modes"))]
    }
    problem = surrogate.problem
    if "truth" in wants and problem is not None and problem.solves(surrogate.output_space_.grid):
        found["truth"] = pack.single(problem.solve(fields[:, : problem.channels[0]])[0])
    band = None if surrogate.trust_ is None else surrogate.trust_.band
    levels = [] if band is None else allowed_levels(band)
    if "trust" in wants and levels:
        level = max((one for one in levels if one <= asked.get("level", LEVEL)), default=levels[0])
        found["trust"] = _trust(surrogate, asked, level, pack)
    return found


def _inputs(surrogate: Surrogate, asked: Mapping[str, Any]) -> Tensor:
    """Return the asked input as a batch of one, with parameters among its channels."""
    space = surrogate.input_space_
    shape = (space.field_channels, *space.grid.shape)
    parts = []
    if space.field_channels:
        given = unpacked(asked["input"])
        if given.shape != shape or not np.isfinite(given).all():
            raise TwoscaleError(f"finite input fields of shape {shape} were expected")
        parts.append(torch.from_numpy(given.astype(np.float32)))
    scalars = asked.get("parameters") or []
    if len(scalars) != space.parameters:
        raise TwoscaleError(f"{space.parameters} parameters were expected, got {len(scalars)}")
    parts += [torch.full((1, *space.grid.shape), float(one)) for one in scalars]
    return torch.cat(parts)[None]


def _trust(
    surrogate: Surrogate, asked: Mapping[str, Any], level: float, pack: Packer
) -> dict[str, Any]:
    """Return radius, distances and certificate of the whole prediction."""
    space = surrogate.input_space_
    given = unpacked(asked["input"])[None] if space.field_channels else None
    scalars = np.array([asked["parameters"]], float) if space.parameters else None
    seen = surrogate.assess(given, parameters=scalars, level=level)
    flags, proven = seen.flags, seen.certificate
    width = (np.asarray(seen.upper) - np.asarray(seen.lower)) / 2
    return {
        "radius": float(seen.radius[0]),
        "level": level,
        "distances": {
            name: getattr(flags, name)[0].tolist() for name in ("roughness", "code", "values")
        },
        "width": pack.half(width.reshape(surrogate.output_space_.shape)),
        "certificate": None
        if proven is None
        else {name: float(values[0]) for name, values in proven.as_dict().items()},
    }


@torch.no_grad()
def field_parts(surrogate: Surrogate, fields: Tensor, modes: int | None = None) -> list[Tensor]:
    """Return the fields that each stage of the output adds to a prediction; they add up to it.

    A surrogate with a correction has a single part.
    """
    operator = surrogate.operator_
    if not isinstance(operator, LatentOperator):
        return [operator(fields)]
    outputs = operator.outputs
    stages: list[Any] = list(outputs.stages.values()) if isinstance(outputs, Chain) else [outputs]
    sizes = [stage.code_size for stage in stages]
    group = operator.group if operator.average else operator.group[:1]
    totals: list[Tensor] = []
    for symmetry in group:
        codes = operator.predictor(operator.inputs.encode(symmetry(fields)))
        pieces = [
            symmetry.inverse(stage.decode(_limited(stage, code, modes)))
            for stage, code in zip(stages, codes.split(sizes, 1), strict=True)
        ]
        totals = [a + b for a, b in zip(totals, pieces, strict=True)] if totals else pieces
    return [total / len(group) for total in totals]


def _limited(stage: Representation, codes: Tensor, modes: int | None) -> Tensor:
    """Return codes with zeros after the first modes of each block."""
    if modes is None or not isinstance(stage, BlockPCA):
        return codes
    (ranks,) = stage.ranks.values()
    numbers = torch.cat([torch.arange(rank) for rank in ranks])
    return torch.where(numbers < modes, codes, 0.0)
