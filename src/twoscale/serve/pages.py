"""The server's own pages: one for people, and its description for programs (OpenAPI)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from twoscale._version import __version__
from twoscale.runtime.memory import size_text
from twoscale.serve.limits import Limits


def openapi(models: Sequence[Mapping[str, Any]], limits: Limits) -> dict[str, Any]:
    """Return the description of the endpoints as OpenAPI 3.1, for these models and limits."""
    description: dict[str, Any] = json.loads(_text("openapi.json"))
    description["info"]["version"] = __version__
    names = [model["name"] for model in models]
    description["paths"]["/predict"]["post"]["parameters"][0]["schema"]["enum"] = names
    schemas = description["components"]["schemas"]
    schemas["Fields"]["properties"]["fields"]["maxItems"] = limits.fields
    schemas["Call"]["properties"]["config"]["properties"]["points"]["maxItems"] = limits.points
    return description


def docs_page(
    description: Mapping[str, Any],
    models: Sequence[Mapping[str, Any]],
    limits: Limits,
    address: str,
) -> str:
    """Return the page for people; it needs nothing from other servers."""
    first = escape(str(models[0]["name"]))
    endpoints = [
        _row(f"<code>{method.upper()} {path}</code>", escape(operation["summary"]))
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    return Template(_text("page.html")).substitute(
        version=__version__,
        server=escape(address.rstrip("/")),
        models="".join(map(_model_row, models)),
        first=first,
        choose=f"?model={first}" if len(models) > 1 else "",
        endpoints="".join(endpoints),
        request_size=size_text(limits.request_bytes),
        memory=size_text(limits.memory_bytes),
        fields=limits.fields,
        seconds=f"{limits.seconds:g}",
        queue=limits.queue,
    )


def _text(name: str) -> str:
    return (files("twoscale.serve") / name).read_text(encoding="utf-8")


def _model_row(model: Mapping[str, Any]) -> str:
    inputs = [] if model["input_shape"] is None else [f"fields {_shape(model['input_shape'])}"]
    if model["parameters"]:
        inputs.append(f"{model['parameters']} parameters")
    described = (model["name"], ", ".join(inputs), _shape(model["output_shape"]))
    return _row(*(escape(str(cell)) for cell in (*described, model["umbridge"]["input"])))


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _shape(sides: Sequence[Any]) -> str:
    return f"({', '.join(map(str, sides))})"
