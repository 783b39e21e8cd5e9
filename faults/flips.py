"""Damage to every file of datasets, runs, studies and interrupted work, before it is read."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from faults.children import Outcome
from faults.contents import Broken, digest, meaning, timeless
from faults.rules import FINE, REFUSED, last_line, misbehaviour
from faults.templates import FIT, GENERATE, TUNE, Undisturbed
from faults.trials import Place, Trial

_RESULT = "result"


@dataclass(frozen=True)
class Reader:
    """A command that reads something damaged, and what its answer is: its output, or a result.

    A `strict` one has to refuse whatever has changed at all. What `confirms` an answer is a command
    that must succeed after it.
    """

    arguments: tuple[str, ...]
    needs: tuple[str, ...] = ()
    answer: str = "output"
    strict: bool = False
    confirms: tuple[str, ...] = ()

    def read(self, place: Place) -> tuple[Outcome, Any]:
        """Run the command; return its outcome and, if it succeeded, its answer."""
        outcome = place.run(*self.arguments)
        if outcome.status != FINE:
            return outcome, None
        if self.confirms:
            confirmation = place.run(*self.confirms)
            if confirmation.status != FINE:
                return confirmation, "refused"
        if self.answer == "output":
            return outcome, timeless(json.loads(outcome.out))
        if self.answer == "bytes":
            return outcome, digest(place.path / self.arguments[-1])
        return outcome, meaning(place.path / self.answer)


@dataclass(frozen=True)
class Victim:
    """Something that is damaged, those who read it, and where files of its kind come from."""

    name: str
    readers: tuple[Reader, ...]
    trials: int
    twin: str = ""
    below: tuple[str, ...] = ("",)


_OUT = ("--out", _RESULT)
_RUN_ON_DATA = ("--data", "data.zarr")


def _run_readers(name: str) -> tuple[Reader, ...]:
    return (
        Reader(("check", name, "--json"), strict=True),
        Reader(("evaluate", name, "--json")),
        Reader(("predict", name, "inputs.npy", "--out", "result.npy"), ("inputs.npy",), "bytes"),
    )


_GO_ON = Reader((*GENERATE, *_OUT), answer=f"{_RESULT}/zarr.json", confirms=("check", _RESULT))
_STUDY = ("study", "run", "tiny.yaml", "--scale", "small", "--out", "small-study")
_STUDY_READERS = (
    Reader(("study", "report", "small-study", "--out", "page.html"), answer="bytes"),
    Reader(("study", "compare", "small-study", "--json")),
    Reader(_STUDY, ("tiny.yaml",), "small-study/records/tiny.json"),
    Reader((*_STUDY, "--seeds", "0,1"), ("tiny.yaml",), "small-study/records/tiny.json"),
)

VICTIMS = (
    Victim(
        "data.zarr",
        (
            Reader(("check", "data.zarr", "--json")),
            Reader(("evaluate", "small-run", *_RUN_ON_DATA, "--json"), ("small-run",)),
            Reader(("fit", "data.zarr", *FIT, *_OUT), answer=_RESULT),
            Reader(("finetune", "small-run", *_RUN_ON_DATA, *TUNE, *_OUT), ("small-run",), _RESULT),
        ),
        150,
        twin="other.zarr",
    ),
    Victim(
        "small-run",
        (
            *_run_readers("small-run"),
            Reader(("finetune", "small-run", *TUNE, *_OUT), answer=_RESULT),
        ),
        220,
        twin="other-run",
    ),
    Victim(
        "mixed.zarr",
        (
            Reader(("check", "mixed.zarr", "--json")),
            Reader(("evaluate", "mixed-run", "--data", "mixed.zarr", "--json"), ("mixed-run",)),
            Reader(("fit", "mixed.zarr", *FIT, *_OUT), answer=_RESULT),
        ),
        60,
        twin="data.zarr",
    ),
    Victim("tuned", _run_readers("tuned"), 80, twin="small-run"),
    Victim("searched", _run_readers("searched"), 80, twin="small-run"),
    Victim(
        "small-study",
        _STUDY_READERS,
        90,
        below=("data", "cells"),
    ),
    Victim("small-study", _STUDY_READERS, 40, below=("records",)),
    Victim("half-generated", (_GO_ON,), 40),
    Victim("half-fitted", (Reader(("fit", "data.zarr", *FIT, *_OUT), answer=_RESULT),), 40),
    Victim("half-tuned", (Reader(("finetune", "small-run", *TUNE, *_OUT), answer=_RESULT),), 40),
)


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield damages of each victim's files in turn."""
    for victim in VICTIMS:
        for number in range(victim.trials):
            damage = choose.choice(list(DAMAGES))
            reader = choose.choice(victim.readers)
            words = f"{damage} in {victim.name}, {reader.arguments[0]}"
            quick = reader.arguments[0] in ("check", "evaluate", "predict", "generate")
            yield Trial(words, partial(_damage, victim, reader, damage, number), quick)


def _damage(victim: Victim, reader: Reader, damage: str, number: int, place: Place) -> str | None:
    """Damage one file, read it, and hold the answer against that of the undamaged one."""
    expected = _undamaged(victim, reader, place)
    folder = _set_up(victim, reader, place)
    files = sorted(
        path
        for part in victim.below
        for path in (folder / part).rglob("*")
        if path.is_file() and not any(one.is_symlink() for one in (path, *path.parents))
    )
    file = files[number % len(files)]
    twin = place.templates.get(victim.twin) if victim.twin else folder
    shown = file.relative_to(folder)
    before = file.read_bytes()
    after = DAMAGES[damage](before, place.random, _twin(twin / shown))
    if after is None:
        file.unlink()
    else:
        file.write_bytes(after)
    outcome, answer = None, None
    try:
        outcome, answer = reader.read(place)
    except (Broken, ValueError) as error:
        return f"{damage} in {shown}: the answer is not whole: {error}"
    wrong = misbehaviour(outcome)
    optional = after is None and file.suffix == ".npz"  # records may travel without their fields
    if not wrong and not optional and answer not in (None, expected):
        wrong = "the answer is another one, and nothing was said"
    strict = reader.strict and after != before and file.name != "SHA256SUMS"
    if not wrong and strict and outcome.status != REFUSED:
        wrong = "what has changed is called whole"
    return wrong and f"{damage} in {shown}: {wrong}"


def _set_up(victim: Victim, reader: Reader, place: Place) -> Path:
    """Put a victim into the place; interrupted work is the place itself."""
    for name in reader.needs:
        place.put(name)
    if victim.name.startswith("half-"):
        place.path.rmdir()
        place.put(victim.name, ".")
        return place.path
    return place.put(victim.name)


def _undamaged(victim: Victim, reader: Reader, place: Place) -> Any:
    """Return the answer of a reader to the undamaged victim."""

    def find() -> dict[str, Any]:
        spare = place.another()
        _set_up(victim, reader, spare)
        outcome, answer = reader.read(spare)
        if outcome.status != FINE:
            raise Undisturbed(f"undamaged, {outcome.command} refuses it: {last_line(outcome)}")
        return {"answer": answer}

    name = f"answer-{victim.name}-" + "-".join(reader.arguments[:2]) + str(len(reader.arguments))
    return place.templates.remembered(name, find)["answer"]


def _twin(path: Path) -> bytes:
    """Return the bytes of the file of the same name in another result, if there is one."""
    return path.read_bytes() if path.is_file() else b"{}"


Damage = Callable[[bytes, random.Random, bytes], bytes | None]
"""Returns what becomes of a file's bytes, None if the file vanishes."""


def _flip_bits(count: int) -> Damage:
    def flip(content: bytes, choose: random.Random, twin: bytes) -> bytes:
        changed = bytearray(content or b"\0")
        for _ in range(count):
            changed[choose.randrange(len(changed))] ^= 1 << choose.randrange(8)
        return bytes(changed)

    return flip


def _change_digit(content: bytes, choose: random.Random, twin: bytes) -> bytes:
    digits = [place for place, byte in enumerate(content) if chr(byte).isdigit() and byte < 128]
    changed = bytearray(content)
    if digits:
        place = choose.choice(digits)
        changed[place] = ord(choose.choice("0123456789".replace(chr(changed[place]), "")))
    return bytes(changed)


def _zero(content: bytes, choose: random.Random, twin: bytes) -> bytes:
    start = choose.randrange(len(content) + 1)
    length = min(choose.randrange(1, 4096), len(content) - start)
    return content[:start] + b"\0" * length + content[start + length :]


DAMAGES: dict[str, Damage] = {
    "a bit": _flip_bits(1),
    "another bit": _flip_bits(1),
    "many bits": _flip_bits(40),
    "a digit": _change_digit,
    "another digit": _change_digit,
    "truncation": lambda content, choose, twin: content[: choose.randrange(len(content) + 1)],
    "an addition": lambda content, choose, twin: content + choose.randbytes(9),
    "zeros": _zero,
    "a swap": lambda content, choose, twin: twin,
    "removal": lambda content, choose, twin: None,
}
