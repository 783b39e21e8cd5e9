"""Datasets whose descriptions lie: sizes, chunks, types and checksums that fit the lie."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from faults.hostile.mutations import mutate_file, put, sign
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
_HARMLESS = ("a float of samples", "other periodic axes", "names of channels")
_SIDE = {"height": 16, "width": 16, "channels": 1, "parameters": 0, "names": None, "rank": 3}
_SIDE["periodic"] = [False, False]
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
    "a text for the inputs": ("input", "16x16"),
    "no outputs": ("output", None),
    "a side without a rank": ("input", {k: v for k, v in _SIDE.items() if k != "rank"}),
    "a side with a stranger": ("input", {**_SIDE, "spacing": [1, 1]}),
    "a huge grid": ("output", {**_SIDE, "height": 10**9, "width": 10**9}),
    "a large grid": ("output", {**_SIDE, "height": 10**6, "width": 10**6}),
    "a negative grid": ("input.height", -16),
    "a grid of floats": ("input", {**_SIDE, "height": 16.0, "width": 16.0}),
    "another grid": ("input.width", 8),
    "huge many channels": ("output", {**_SIDE, "channels": 10**12, "rank": 4}),
    "two channels": ("output", {**_SIDE, "channels": 2, "rank": 4}),
    "two channels without an axis": ("output.channels", 2),
    "no channels": ("output.channels", 0),
    "negative channels": ("input.channels", -1),
    "half a channel": ("input.channels", 1.5),
    "a true channel": ("input.channels", True),
    "more parameters than channels": ("input.parameters", 2),
    "only parameters, and fields": ("input.parameters", 1),
    "parameters that are not stored": ("input", {**_SIDE, "channels": 2, "parameters": 1}),
    "negative parameters": ("input.parameters", -1),
    "parameters among the outputs": ("output", {**_SIDE, "channels": 2, "parameters": 1}),
    "a text for the periodic axes": ("input.periodic", "both"),
    "three periodic axes": ("input.periodic", [True, True, True]),
    "periodic axes that are numbers": ("output.periodic", [1, 0]),
    "other periodic axes": ("output.periodic", [True, True]),
    "two names for one channel": ("output.names", ["u", "v"]),
    "names that are numbers": ("output.names", [7]),
    "a text for names": ("output.names", "u"),
    "names of channels": ("output.names", ["<b>\n[red]../u"]),
    "five axes": ("input.rank", 5),
    "two axes": ("output.rank", 2),
    "no axes": ("output.rank", 0),
    "axes that are not stored": ("input.rank", 4),
    "a text for the axes": ("input.rank", "3"),
    "true axes": ("input.rank", True),
    "fields that are no fields": ("input.rank", None),
    "checksums that are a list": ("checksums", []),
    "checksums of numbers": ("checksums", {"input": [1, 2, 3, 4], "output": [1, 2, 3, 4]}),
    "a problem that is a list": ("problem", ["poisson"]),
    "a problem that is a text": ("problem", "poisson"),
    "a problem with a list of parameters": ("problem", {"name": "poisson", "parameters": []}),
    "a problem with unknown parameters": (
        "problem",
        {"name": "poisson", "parameters": {"__class__": 1}},
    ),
    "a problem with impossible parameters": ("problem.parameters", {"source": -1e308}),
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
    put(description["attributes"], key, value)
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
