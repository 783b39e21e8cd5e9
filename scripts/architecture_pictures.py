"""Draw the pictures of the architecture page: the house, a fit, and a prediction.

Run in the repository's root: `python -m scripts.architecture_pictures`. The files of both flows
are those that a small fit and a prediction enter. The rows of the house are the layers of
`tests/test_layers.py`. `tests/test_walk.py` holds all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from tests.test_layers import LAYERS
from tests.test_walk import walked

IMAGES = Path("docs/images")
_WIDTH, _MARGIN, _LINE = 860, 24, 18
_INK, _PALE, _EDGE = "#1b1f24", "#f7f8fa", "#c9d1d9"
_LIBRARY, _LABORATORY, _FLOW = "#dbeafe", "#fde9d0", "#e7f5e6"


class Step(NamedTuple):
    """A step of a flow: what happens, in files of which rooms, and what it hands on."""

    title: str
    rooms: Sequence[str]
    result: str


FIT = (
    Step("read arrays, hold pairs out", ("surrogate/inputs.py", "fields"), "SplitData: pairs"),
    Step("drive the fit", ("surrogate", "methods", "operators", "settings.py", "parts.py"), "spec"),
    Step("fit both representations", ("representation", "math", "domain"), "codes"),
    Step("fit or train the predictor", ("predictors", "networks", "training"), "operator"),
    Step("learn the range of inputs and a band", ("trust",), "FittedState"),
    Step("used by all: time, threads, memory", ("runtime", "files", "cluster", "errors.py"), ""),
)
PREDICTION = (
    Step("read arrays, check them", ("surrogate/inputs.py", "fields", "settings.py"), "a batch"),
    Step("predict batch by batch", ("surrogate", "runtime"), "fields of each batch"),
    Step("encode, map the code, decode", ("operators",), "codes"),
    Step(
        "the three parts",
        ("representation", "predictors", "networks", "domain", "math", "parts.py"),
        "an array of the user's kind",
    ),
)

ROOMS = {
    "cli": "commands",
    "explore": "pages to paint inputs",
    "report": "pages of runs",
    "serve": "HTTP server",
    "run": "run folders",
    "data": "datasets, readers, checks",
    "search": "choice of a method",
    "surrogate": "the object users hold",
    "export": "ONNX, torch.export",
    "trust": "bands, flags, certificates",
    "finetuning": "objectives of the field",
    "methods": "recipes by name",
    "operators": "three parts together",
    "predictors": "codes to codes",
    "training": "one loop",
    "problems": "equations",
    "representation": "fields to codes",
    "networks": "torch modules",
    "cluster": "Dask workers",
    "fields": "sources and pairs",
    "domain": "grids, spaces, patches",
    "math": "PCA, ridge, measures",
    "files": "safe writing",
    "runtime": "threads, devices, time",
}


def _text(x: float, y: float, words: str, *, size: int = 14, bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="middle" font-size="{size}" fill="{_INK}"{weight}>'
        f"{escape(words)}</text>"
    )


def _box(x: float, y: float, width: float, height: float, fill: str) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}" '
        f'stroke="{_EDGE}"/>'
    )


def _svg(title: str, height: float, content: Sequence[str]) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:g}" '
            f'width="{_WIDTH}" height="{height:g}" role="img" '
            'font-family="Helvetica, Arial, sans-serif">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{_WIDTH}" height="{height:g}" rx="12" fill="{_PALE}"/>',
            *content,
            "</svg>\n",
        ]
    )


def house() -> str:
    """Return the picture of both buildings: one row for each layer, imports point downwards."""
    rows = [({"twoscale_lab: studies, benchmarks, published numbers, documents"}, _LABORATORY)] + [
        (names, _LIBRARY) for names in reversed(LAYERS)
    ]
    content, y = [], _MARGIN
    for names, fill in rows:
        rooms = sorted(name for name in names if name in ROOMS or fill == _LABORATORY)
        if not rooms:
            continue
        width = (_WIDTH - 2 * _MARGIN - 8 * (len(rooms) - 1)) / len(rooms)
        for place, name in enumerate(rooms):
            x = _MARGIN + place * (width + 8)
            words = f"{name}: {ROOMS[name]}" if name in ROOMS else name
            content.append(_box(x, y, width, 28, fill))
            content.append(_text(x + width / 2, y + 19, words))
        y += 34
    return _svg("The rooms of twoscale; imports point downwards", y + _MARGIN - 6, content)


def flow(title: str, start: str, steps: Sequence[Step], files: Sequence[str]) -> str:
    """Return the picture of a flow of data: steps from top to bottom with the files they enter.

    A file belongs to the first step that names it or its room.
    """
    content, y = [_text(_WIDTH / 2, _MARGIN + 14, start, bold=True)], _MARGIN + 22
    left = sorted(files)
    for step in steps:
        own = [file for file in left if file in step.rooms or file.split("/")[0] in step.rooms]
        left = [file for file in left if file not in own]
        lines = _wrapped(own, 100)
        height = 30 + _LINE * len(lines)
        content.append(_arrow(y))
        y += 22
        content.append(_box(_MARGIN, y, _WIDTH - 2 * _MARGIN, height, _FLOW))
        content.append(_text(_WIDTH / 2, y + 20, step.title, bold=True))
        for number, line in enumerate(lines):
            content.append(_text(_WIDTH / 2, y + 39 + _LINE * number, line, size=12))
        y += height
        if step.result:
            content.append(_text(_WIDTH / 2, y + 34, step.result))
            content.append(_arrow(y))
            y += 40
    if left:
        raise ValueError(f"no step of '{title}' names {', '.join(left)}: add their rooms to one")
    return _svg(title, y + _MARGIN, content)


def _arrow(y: float) -> str:
    x = _WIDTH / 2
    return (
        f'<path d="M{x} {y + 3:g}V{y + 17:g}M{x - 4} {y + 12:g}L{x} {y + 17:g}L{x + 4} {y + 12:g}" '
        f'stroke="{_INK}" fill="none"/>'
    )


def _wrapped(files: Sequence[str], letters: int) -> list[str]:
    """Return names of files in lines of at most so many letters."""
    lines = [""]
    for name in files:
        if lines[-1] and len(lines[-1]) + len(name) + 3 > letters:
            lines.append("")
        lines[-1] += f" · {name}" if lines[-1] else name
    return lines


def pictures() -> dict[str, str]:
    """Return the pictures by the names of their files."""
    found = walked()
    start = "arrays of any kind"
    return {
        "house.svg": house(),
        "fit.svg": flow("A fit, step by step", start, FIT, found["fit"].files),
        "prediction.svg": flow("A prediction", start, PREDICTION, found["predict"].files),
    }


def main() -> None:
    for name, picture in pictures().items():
        (IMAGES / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
