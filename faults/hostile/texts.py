"""Definitions of studies and their records: wrong types, bombs, and names that are paths."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from faults.hostile.mutations import mutate_file, mutated, sign
from faults.hostile.reading import ODD, odd_file, read
from faults.templates import TINY_STUDY
from faults.trials import Place, Trial

_DRY = ("study", "run", "x.yaml", "--scale", "small", "--dry-run", "--out", "result")
_RECORD = "records/tiny.json"
_REPORT: tuple[str, ...] = ("study", "report", "small-study", "--out", "deep/er/page.html")
_COMPARE: tuple[str, ...] = ("study", "compare", "small-study", "--json")
_AGAIN = ("study", "run", "tiny.yaml", "--scale", "small", "--out", "small-study")
_MUTATED_STUDIES, _MUTATED_RECORDS = 80, 110

_BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
STUDIES: dict[str, str] = {
    "an alias bomb": _BOMB,
    "an alias of itself": "&a [*a]",
    "deep nesting": "[" * 50_000,
    "deep mappings": "{a: " * 20_000,
    "a tag of Python's": "!!python/object/apply:os.system ['touch executed']",
    "a list": "[1, 2]",
    "nothing": "",
    "a number of 5000 digits": TINY_STUDY.replace("samples: 60", "samples: " + "9" * 5000),
    "a huge number of seeds": TINY_STUDY.replace("seeds: [0]", "seeds: " + str([0] * 10**5)),
    "a negative seed": TINY_STUDY.replace("seeds: [0]", "seeds: [-1]"),
    "a name with slashes": "name: ../../outside\n" + TINY_STUDY,
    "an absolute name": "name: /tmp/outside\n" + TINY_STUDY,
    "a name that is a number": "name: 7\n" + TINY_STUDY,
    "a label with attributes": TINY_STUDY.replace(
        "{method: local}", "{method: local, label: '{method.__class__.__mro__}'}"
    ),
    "a label of huge width": TINY_STUDY.replace(
        "{method: local}", "{method: local, label: '{method:>999999999}'}"
    ),
    "a label with an index": TINY_STUDY.replace(
        "{method: local}", "{method: local, label: '{method[0]}{0}'}"
    ),
    "zero bytes": "title: \0",
    "tabs": "title:\n\t- x",
    "two documents": "--- {}\n--- {}",
    "a merge of nothing": "<<: 3\n" + TINY_STUDY,
    "a key that is a list": "? [1, 2]\n: 3\n" + TINY_STUDY,
    "a date": "title: 2020-99-99\n" + TINY_STUDY,
}
NAMES = ("../../outside", "/dev/shm/outside", "a/b", "..", "", "x\0y", "n" * 300, "<b>", "a\nb", 7)


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield hostile studies and records, by hand and at random."""
    for words, text in STUDIES.items():
        make = partial(_write_study, text)
        yield Trial(f"study: {words}", partial(_read, make, _DRY, (), False))
    for kind in ODD:
        make = partial(_odd_study, kind)
        yield Trial(f"study: {kind}", partial(_read, make, _DRY, (), False))
        for command in (_REPORT, _COMPARE):
            make = partial(_odd_record, kind)
            words = f"{command[0]}: {kind} for a record"
            yield Trial(words, partial(_read, make, command, ("small-study",), False))
    for name in NAMES:
        for command in (_REPORT, _COMPARE):
            make = partial(_named_record, name)
            words = f"{command[0]}: a record of {ascii(name)[:40]}"
            yield Trial(words, partial(_read, make, command, ("small-study",), False))
    for _ in range(_MUTATED_STUDIES):
        yield Trial("study: a random value", partial(_read, _mutated_study, _DRY, (), True))
    for _ in range(_MUTATED_RECORDS):
        command = choose.choice((_REPORT, _COMPARE, _AGAIN))
        words = f"{' '.join(command[:2])}: a random value in a record"
        needs = ("small-study", "tiny.yaml")
        yield Trial(words, partial(_read, _mutated_record, command, needs, True))


def _read(
    make: Callable[[Place], None],
    words: tuple[str, ...],
    needs: tuple[str, ...],
    harmless: bool,
    place: Place,
) -> str | None:
    return read(make, words, needs, place, harmless=harmless)


def _write_study(text: str, place: Place) -> None:
    (place.path / "x.yaml").write_text(text)


def _odd_study(kind: str, place: Place) -> None:
    odd_file(kind, place.path / "x.yaml")


def _record(place: Place) -> Path:
    return place.path / "small-study" / _RECORD


def _odd_record(kind: str, place: Place) -> None:
    odd_file(kind, _record(place))


def _named_record(name: Any, place: Place) -> None:
    record = json.loads(_record(place).read_text())
    record["study"] = name
    if isinstance(record.get("definition"), dict):
        record["definition"]["name"] = name
    sign(record)
    _record(place).write_text(json.dumps(record))


def _mutated_study(place: Place) -> None:
    text = mutated(yaml.safe_load(TINY_STUDY), place.random)
    (place.path / "x.yaml").write_text(text)


def _mutated_record(place: Place) -> None:
    mutate_file(_record(place), place.random)
