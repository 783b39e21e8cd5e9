"""The server of a page: predictions of runs that the page cannot compute itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Lock
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from twoscale.explore.answers import answer, checked_question
from twoscale.serve.bodies import RequestMemory, json_object, json_response
from twoscale.serve.http import HttpService
from twoscale.serve.limits import Limits
from twoscale.surrogate import Surrogate

_LIMITS = Limits(
    request_bytes=2**25, seconds=600.0
)  # the largest input of a page has 22 MB as text


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
        asked = checked_question(json_object(body), len(self.surrogates))
        with self._lock:
            return answer(self.surrogates[asked["run"]], asked)
