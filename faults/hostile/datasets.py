"""Datasets whose descriptions lie: sizes, chunks, types and checksums that fit the lie."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from faults.hostile.mutations import mutate_file, sign
from faults.hostile.reading import ODD, odd_file, read
from faults.templates import FIT
from faults.trials import Place, Trial

_NAME = "data.zarr"
_READERS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("check", _NAME), ()),
    (("fit", _NAME, *FIT, "--out", "result"), ()),
    (("evaluate", "small-run", "--data", _NAME), ("small-run",)),
)
_MUTATED = 120
_HARMLESS = ("a float of samples",)
_FILES = ("zarr.json", "zarr.json", "input/zarr.json", "output/zarr.json")
_CHUNK = "input/c/0/0/0"

LIES: dict[str, tuple[str, Any]] = {
    "a negative number of samples": ("samples", -1),
    "no samples": ("samples", 0),
    "half a sample": ("samples", 59.5),
    "a float of samples": ("samples", 60.0),
    "more samples than stored": ("samples", 61),
    "huge many samples": ("samples", 10**15),
    "a negative chunk": ("chunk", -16),
    "no chunk": ("chunk", 0),
    "half a chunk": ("chunk", 15.5),
    "a huge chunk": ("chunk", 10**15),
    "a text for the grid": ("grid", "16x16"),
    "a huge grid": ("grid", {"height": 10**9, "width": 10**9, "spacing": [1, 1]}),
    "a negative grid": ("grid", {"height": -16, "width": 16, "spacing": [1, 1]}),
    "a grid of floats": ("grid", {"height": 16.0, "width": 16.0, "spacing": [1, 1]}),
    "checksums that are a list": ("checksums", []),
    "checksums of numbers": ("checksums", {"input": [1, 2, 3, 4], "output": [1, 2, 3, 4]}),
    "a problem that is a list": ("problem", ["poisson"]),
    "another format": ("format", 7),
    "a version that is a list": ("format_version", [1]),
    "an incomplete one": ("complete", False),
}
SHAPES: dict[str, Any] = {
    "a huge array": [10**9, 16, 16],
    "a negative array": [-60, 16, 16],
    "an array of floats": [60.0, 16, 16],
    "a flat array": [60 * 256],
    "an array without shape": None,
}


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield datasets that lie, by hand and at random, to all who read datasets."""
    for command, needs in _READERS:
        shown = command[0]
        for words, (key, value) in LIES.items():
            make = partial(_attribute, key, value)
            harmless = words in _HARMLESS
            yield Trial(f"{shown}: {words}", partial(_read, make, command, needs, harmless))
        for words, shape in SHAPES.items():
            make = partial(_shape, shape)
            yield Trial(f"{shown}: {words}", partial(_read, make, command, needs, False))
        for kind in ODD:
            for file in ("zarr.json", "input/zarr.json", _CHUNK):
                make = partial(_odd, kind, file)
                words = f"{shown}: {kind} for {file}"
                yield Trial(words, partial(_read, make, command, needs, False))
    for _ in range(_MUTATED):
        command, needs = choose.choice(_READERS)
        make = partial(_mutate, choose.choice(_FILES))
        words = f"{command[0]}: a random value in the description"
        yield Trial(words, partial(_read, make, command, needs, True))


def _read(
    make: Callable[[Place, Path], None],
    words: tuple[str, ...],
    needs: tuple[str, ...],
    harmless: bool,
    place: Place,
) -> str | None:
    return read(lambda _: make(place, place.put(_NAME)), words, needs, place, harmless=harmless)


def _attribute(key: str, value: Any, place: Place, data: Path) -> None:
    description = json.loads((data / "zarr.json").read_text())
    description["attributes"][key] = value
    sign(description)
    (data / "zarr.json").write_text(json.dumps(description))


def _shape(shape: Any, place: Place, data: Path) -> None:
    """Let array and description agree on a wrong shape."""
    file = data / "input" / "zarr.json"
    array = json.loads(file.read_text())
    array["shape"] = shape
    file.write_text(json.dumps(array))
    if isinstance(shape, list):
        _attribute("samples", shape[0], place, data)


def _odd(kind: str, name: str, place: Place, data: Path) -> None:
    odd_file(kind, data / name)


def _mutate(name: str, place: Place, data: Path) -> None:
    mutate_file(data / name, place.random)
