"""The server's own pages: one for people, and its description for programs (OpenAPI)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from twoscale._version import __version__
from twoscale.runtime.memory import size_text
from twoscale.serve.limits import Limits

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
  color: #1b1b1f; background: #fff; }
pre, code { font: 14px/1.4 ui-monospace, monospace; background: #f2f3f5; border-radius: 4px; }
pre { padding: .8rem; overflow-x: auto; } code { padding: 0 .2rem; }
table { border-collapse: collapse; } td, th { text-align: left; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid #ddd; vertical-align: top; }
@media (prefers-color-scheme: dark) { body { color: #e6e6ea; background: #17181c; }
  pre, code { background: #25272d; } td, th { border-color: #3a3c42; } a { color: #8ab4f8; } }
"""

ENDPOINTS = (
    ("GET", "/health", "State of the server, and its models."),
    ("POST", "/predict", "Solution fields of input fields, as JSON or npy."),
    ("GET", "/openapi.json", "Description of these endpoints for programs."),
    ("GET", "/Info", "UM-Bridge: version of the protocol, and names of models."),
    ("POST", "/ModelInfo", "UM-Bridge: what a model supports."),
    ("POST", "/InputSizes", "UM-Bridge: lengths of the input vectors."),
    ("POST", "/OutputSizes", "UM-Bridge: lengths of the output vectors."),
    ("POST", "/Evaluate", "UM-Bridge: output vector of input vectors."),
    ("POST", "/Gradient", "UM-Bridge: sens' J, J being the Jacobian."),
    ("POST", "/ApplyJacobian", "UM-Bridge: J vec."),
    ("POST", "/ApplyHessian", "UM-Bridge: change of sens' J along vec."),
)


def docs_page(models: Sequence[Mapping[str, Any]], limits: Limits, address: str) -> str:
    """Return the page for people; it needs nothing from other servers."""
    server = escape(address.rstrip("/"))
    rows = "".join(
        f"<tr><td><code>{method} {path}</code></td><td>{escape(text)}</td></tr>"
        for method, path, text in ENDPOINTS
    )
    shown = "".join(_model_row(model) for model in models)
    choose = "?model=" + escape(str(models[0]["name"])) if len(models) > 1 else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>twoscale server</title>
<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body>
<h1>twoscale server</h1>
<p>Version {__version__}. It predicts solution fields with fitted surrogates.</p>
<h2>Models</h2>
<table><tr><th>name</th><th>input</th><th>output</th><th>UM-Bridge input</th></tr>{shown}</table>
<h2>Predict</h2>
<p>JSON, with fields as nested lists. <code>"assess": true</code> adds radii of errors, and which
inputs are unlike the training inputs.</p>
<pre>curl -H 'Content-Type: application/json' -d '{{"fields": [[...]], "assess": true}}' \\
  {server}/predict{choose}</pre>
<p>Or an npy file:</p>
<pre>curl -H 'Content-Type: application/x-npy' --data-binary @input.npy \\
  -o prediction.npy {server}/predict{choose}</pre>
<h2>Derivatives and inversion</h2>
<p>The server speaks UM-Bridge 1.0. Its clients exist for Python, R, Julia, C++ and MATLAB.</p>
<pre>model = umbridge.HTTPModel("{server}", "{escape(str(models[0]["name"]))}")
model(inputs); model.gradient(0, 0, inputs, sens)</pre>
<h2>Endpoints</h2>
<table>{rows}</table>
<h2>Limits</h2>
<p>A request has {size_text(limits.request_bytes)} and {limits.fields} fields at most. It is
answered within {limits.seconds:g} s. On the model's grid its fields and its answer have
{size_text(limits.memory_bytes)} at most. {limits.queue} requests may wait. Then the
answer is 503, and <code>Retry-After</code> says when to ask again. Errors are
<code>{{"error": {{"type": ..., "message": ...}}}}</code>.</p>
</body></html>
"""


def _model_row(model: Mapping[str, Any]) -> str:
    inputs = [] if model["input_shape"] is None else [f"fields {_shape(model['input_shape'])}"]
    if model["parameters"]:
        inputs.append(f"{model['parameters']} parameters")
    cells = (
        str(model["name"]),
        ", ".join(inputs),
        _shape(model["output_shape"]),
        str(model["umbridge"]["input"]),
    )
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _shape(sides: Sequence[Any]) -> str:
    return f"({', '.join(map(str, sides))})"


def openapi(models: Sequence[Mapping[str, Any]], limits: Limits) -> dict[str, Any]:
    """Return the description of the endpoints as OpenAPI 3.1."""
    paths: dict[str, Any] = {}
    for method, path, text in ENDPOINTS:
        operation: dict[str, Any] = {"summary": text, "responses": _responses(path)}
        if method == "POST":
            operation["requestBody"] = {"required": True, "content": _body(path)}
        if path == "/predict":
            names = [model["name"] for model in models]
            schema = {"type": "string", "enum": names}
            operation["parameters"] = [
                {"name": "model", "in": "query", "schema": schema},
                {"name": "resample", "in": "query", "schema": {"type": "boolean"}},
            ]
        paths[path] = {method.lower(): operation}
    return {
        "openapi": "3.1.0",
        "info": {"title": "twoscale server", "version": __version__},
        "paths": paths,
        "components": {"schemas": _schemas(limits)},
    }


def _responses(path: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Prediction"} if path == "/predict" else {}
    content: dict[str, Any] = {"application/json": {"schema": schema or {"type": "object"}}}
    if path == "/predict":
        content["application/x-npy"] = {"schema": {"type": "string", "format": "binary"}}
    failed = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    return {
        "200": {"description": "The answer.", "content": content},
        "default": {"description": "What is wrong, in one sentence.", "content": failed},
    }


def _body(path: str) -> dict[str, Any]:
    name = "Fields" if path == "/predict" else "Call"
    content: dict[str, Any] = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}
    }
    if path == "/predict":
        content["application/x-npy"] = {"schema": {"type": "string", "format": "binary"}}
    return content


def _schemas(limits: Limits) -> dict[str, Any]:
    numbers = {"type": "array", "items": {"type": "number"}}
    nested = {"type": "array", "description": "Nested lists of numbers."}
    fields = {**nested, "maxItems": limits.fields}
    points = {"type": "array", "items": numbers}
    return {
        "Fields": _object(
            {
                "fields": fields,
                "parameters": nested,
                "assess": {"type": "boolean"},
                "level": {"type": "number"},
                "resample": {"type": "boolean"},
                "model": {"type": "string"},
            }
        ),
        "Prediction": _object(
            {
                "model": {"type": "string"},
                "shape": {"type": "array", "items": {"type": "integer"}},
                "fields": nested,
                "level": {"type": "number"},
                "radius": numbers,
                "outside": {"type": "array", "items": {"type": "boolean"}},
            }
        ),
        "Call": _object(
            {
                "name": {"type": "string"},
                "input": {"type": "array", "items": numbers},
                "config": _object({"points": {**points, "maxItems": limits.points}}),
                "outWrt": {"type": "integer"},
                "inWrt": {"type": "integer"},
                "inWrt1": {"type": "integer"},
                "inWrt2": {"type": "integer"},
                "sens": numbers,
                "vec": numbers,
            },
            "name",
        ),
        "Error": _object(
            {"error": _object({"type": {"type": "string"}, "message": {"type": "string"}})},
            "error",
        ),
    }


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}
