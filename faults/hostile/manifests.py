"""Entries of a surrogate's manifest that lie about its parts, spaces and axes."""

from __future__ import annotations

import json
from typing import Any

_LARGE = (10**6, 10**9, 10**18, 10**30)
_NO_COUNT = (0, -1, 1.5, "many", None, True, [3], {})


def _nested(depth: int) -> dict[str, Any]:
    """Return parts inside parts."""
    part: dict[str, Any] = {"part": "patch-pca", "rule": 0.9}
    for _ in range(depth):
        part = {"part": "chain", "stages": {"only": part}}
    return part


_FNO = {"part": "fno", "width": 4, "layers": 1, "modes": 2}
_ENCODER = {"part": "encoder"}
_NO_PART: tuple[Any, ...] = (
    *(
        "../predictor",
        "os.system",
        "",
        "Mlp",
        7,
        None,
        True,
        ["mlp"],
        {"part": "mlp"},
        "x" * 10_000,
    ),
)

LIES: dict[str, tuple[Any, ...]] = {
    "parts": (None, [], {}, "parts", 7),
    "parts.predictor": (None, "mlp", [], {}, {"part": "mlp", "a stranger": 1}, _FNO, _ENCODER),
    "parts.predictor.part": (*_NO_PART, "patch-pca", "affine", "kernel", "encoder", "fno"),
    "parts.predictor.hidden_layers": (*_LARGE, *_NO_COUNT, 2),
    "parts.predictor.hidden_width": (*_LARGE, *_NO_COUNT, 64),
    "parts.predictor.objective": ("best", None, 7),
    "parts.inputs": (None, {"part": "whole-field"}, _nested(3), _nested(400)),
    "parts.inputs.part": (*_NO_PART, "mlp", "global-pca", "two-scale", "whole-field"),
    "parts.inputs.patches": (
        *([10**6, 10**6], [0, 0], [-2, 2], [1.5, 2], [2], [2, 2, 2], 4, "2x2", None, [None, 2]),
        *([10**30, 1], [1, 1], [4, 4], [True, 2]),
    ),
    "parts.outputs.patches": ([16, 16], [4, 4], [3, 3]),
    "parts.outputs.rule": ("all", None, -1, 7.0, {}, {"x": 1}, {"variance": "most"}, [0.9]),
    "parts.outputs.solver": ("magic", 7, None),
    "parts.outputs.overlap": (True, "maybe"),
    "parts.correction": (
        *({}, [], "refinement-net", {"part": "mlp"}, {"part": "refinement-net"}, _FNO),
        *({**_FNO, "width": large} for large in _LARGE),
        *({**_FNO, "layers": large} for large in _LARGE),
        *({**_FNO, "modes": large} for large in _LARGE),
        *({**_FNO, "padding": large} for large in _LARGE),
        *({"part": "refinement-net", "channels": large} for large in (*_LARGE, -1, "many")),
        *({**_ENCODER, "blocks": large} for large in _LARGE),
        *({**_ENCODER, "width": large} for large in _LARGE),
        *({**_ENCODER, "cut": large} for large in _LARGE),
    ),
    "parts.symmetries": ("all", None, 7, ["square"]),
    "parts.average_symmetries": (True, "yes", 7),
    "spaces": (None, [], {}, [None, None], "16x16"),
    "spaces.0.channels": (2, *_LARGE, *_NO_COUNT),
    "spaces.1.channels": (2, *_LARGE, *_NO_COUNT),
    "spaces.0.height": (8, *_LARGE, *_NO_COUNT),
    "spaces.1.height": (8, *_LARGE, *_NO_COUNT),
    "spaces.1.width": (32, *_LARGE, *_NO_COUNT),
    "spaces.0.parameters": (1, 2, -1, 10**9, "one", None),
    "spaces.1.parameters": (1, 2, -1),
    "spaces.0.periodic": (None, "both", [], [True], [1, 0], [None, None], [True, True, True]),
    "spaces.1.periodic": (None, "both", [0, 1], [True, True], [False, True]),
    "spaces.1.names": ([], ["u", "v"], 7, [7], ["<b>\n[red]../u"]),
    "ranks": (
        *(None, [], [3], [3, 3, 3], "33", [5, 3], [3, 5], [2, 3], [3, 2], [0, 3], [3, 0], [-1, 3]),
        *([3, -1], [3, 10**30], [3, None], [3, "x"], [3, 3.5], [3, 1], [4, 4], [3, 4]),
    ),
    "problem": (None, "poisson", [], {}, {"name": "poisson"}, {"name": 7, "parameters": {}}),
    "problem.name": ("../problem", "darcy", None, 7),
    "problem.parameters": (None, [], {"__class__": 1}, {"source": None}),
    "settings": (None, [], "none", {}),
    "settings.patches": ([10**6, 10**6], [0, 0], [-1, 4], "4x4", 4, None, [1.5, 2], [2]),
    "settings.evaluation_batch": (*_LARGE, *_NO_COUNT),
    "method": (None, 7, [], "../method", "x" * 10_000, "[red]\n"),
}
"""Wrong values by the place of the entry."""

_FINE: dict[str, tuple[Any, ...]] = {
    "spaces.1.periodic": ([True, True], [False, True]),  # nobody can tell
    "spaces.1.names": (["<b>\n[red]../u"],),
    "ranks": ([4, 4], [3, 4]),
    "problem": (None,),
    "problem.name": ("../problem", "darcy"),
    "settings": ({}, []),
    "settings.patches": ([10**6, 10**6], "4x4", 4, [2]),
    "settings.evaluation_batch": _LARGE,
    "method": LIES["method"],
}
HARMLESS = {(place, json.dumps(value)) for place, values in _FINE.items() for value in values}
"""What changes nothing that is predicted: it may be refused, or believed."""
