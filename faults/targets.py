"""Every command that writes against everything that may lie at its target, or beside it."""

from __future__ import annotations

import ctypes
import os
import random
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from faults.commands import (
    DEMO,
    FINETUNE,
    FIT_ONE,
    FIT_SEEDS,
    GENERATE_DATA,
    IMPORT_NPZ,
    OVER,
    PREDICT,
    REPORT,
    SEARCH,
    STUDY,
    Case,
)
from faults.contents import Broken, added, changed, meaning, snapshot
from faults.rules import FINE, misbehaviour
from faults.trials import Place, Skipped, Trial

_NOBODY = 65534

_COMMANDS = {
    "dataset": (GENERATE_DATA, IMPORT_NPZ),
    "run": (FIT_ONE, FINETUNE, SEARCH),
    "file": (PREDICT, REPORT),
    "folder": (FIT_SEEDS, STUDY, DEMO),
}
_KIND = {case.name: kind for kind, cases in _COMMANDS.items() for case in cases}


def _text(place: Place, path: Path) -> None:
    path.write_text("a user's own words\n")


def _folder(place: Place, path: Path) -> None:
    (path / "sub").mkdir(parents=True)
    (path / "notes.txt").write_text("a user's own notes\n")
    (path / "sub" / "data.bin").write_bytes(bytes(range(256)))


def _template(name: str) -> Callable[[Place, Path], object]:
    return lambda place, path: place.put(name, str(path.relative_to(place.path)))


def _link_to(kind: str) -> Callable[[Place, Path], None]:
    def make(place: Place, path: Path) -> None:
        aim = place.path / "elsewhere"
        THINGS[kind].make(place, aim)
        path.symlink_to(aim)

    return make


def _device(place: Place, path: Path) -> None:
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))  # what swallows everything
    except PermissionError as error:
        raise Skipped("devices at the target: making one is not allowed here") from error


@dataclass(frozen=True)
class Thing:
    """Something that may lie at a target: how it is made, and as what it may be replaced."""

    make: Callable[[Place, Path], object]
    kind: str = ""


THINGS: dict[str, Thing] = {
    "nothing": Thing(lambda place, path: None),
    "a file": Thing(_text, "file"),
    "an empty file": Thing(lambda place, path: path.touch(), "file"),
    "an empty folder": Thing(lambda place, path: path.mkdir()),
    "a full folder": Thing(_folder),
    "a dataset": Thing(_template("other.zarr"), "dataset"),
    "a run": Thing(_template("other-run"), "run"),
    "runs": Thing(_template("runs")),
    "a study": Thing(_template("small-study")),
    "a prediction": Thing(_template("prediction.npy"), "file"),
    "a page": Thing(_template("page.html"), "file"),
    "a link to a file": Thing(_link_to("a file"), "file"),
    "a link to an empty folder": Thing(_link_to("an empty folder")),
    "a link to a full folder": Thing(_link_to("a full folder")),
    "a link to a dataset": Thing(_link_to("a dataset"), "dataset"),
    "a link to a run": Thing(_link_to("a run"), "run"),
    "a dangling link": Thing(lambda place, path: path.symlink_to("no-such-thing")),
    "a loop of links": Thing(lambda place, path: path.symlink_to(path.name)),
    "a pipe": Thing(lambda place, path: os.mkfifo(path)),
    "a device": Thing(_device),
}

NAMES = {
    "a name of 255 bytes": "n" * 255,
    "a name of 240 bytes": "n" * 240,
    "a name with a newline": "two\nlines",
    "a name with quotes": 'it\'s "so" `echo`',
    "a name beyond ASCII": "Ergebnis-ö-数",
    "a name that is no text": os.fsdecode(b"not-\xff-text"),
    "a name with markup": "[bold]{x}%s[/]",
    "the current folder": ".",
    "the parent folder": "..",
    "no name": "",
    "a path through a file": "plain.txt/result",
    "a path of new folders": "one/two/three",
    "a trailing slash": "result/",
    "a name that begins with a dash": "./-x",
    "the name of a work folder": ".x.twoscale-work",
    "a name that ends in old": "result.old",
}


def trials(choose: random.Random) -> Iterator[Trial]:
    """Yield commands against things at their target, and against odd names."""
    for cases in _COMMANDS.values():
        for case in cases:
            for thing in THINGS:
                for flags in ((), (OVER,)) if case is not STUDY else ((),):
                    words = " ".join((case.name, *flags, "onto", thing))
                    quick = case.cost == "quick"
                    yield Trial(words, partial(_onto, case, thing, flags), quick)
            for words, name in NAMES.items():
                quick = case.cost == "quick"
                yield Trial(f"{case.name}, {words}", partial(_named, case, name), quick)
            yield Trial(f"{case.name} in a locked folder", partial(_locked, case))


def _onto(case: Case, thing: str, flags: tuple[str, ...], place: Place) -> str | None:
    """Run a command whose target is already something."""
    target = "result"
    case = replace(case, target=target, arguments=(*case.arguments, *flags))
    case.set_up(place)
    path = place.path / target
    THINGS[thing].make(place, path)
    _put_siblings(place, path)
    replaceable = ""
    if flags and (THINGS[thing].kind == _KIND[case.name] or (case.inside and thing == "runs")):
        replaceable = str(path.resolve())
    elif case.name == STUDY.name and thing == "a study":
        replaceable = str(path / "records")  # the record of a study grows with it
    return _check(case, place, replaceable=replaceable)


def _put_siblings(place: Place, path: Path) -> None:
    """Put things of a user's beside a target whose names look as if they were ours."""
    own = place.random.choice(("", "folder", "file", "link"))
    for suffix in (".old", ".partial", ".tmp", ".new", "~"):
        maker = place.random.choice((_text, _folder))
        maker(place, path.with_name(path.name + suffix))
    (path.parent / "figures").mkdir()
    (path.parent / "figures" / "tiny-1-qualitative.png").write_text("a user's own picture\n")
    work = path.with_name(f".{path.name}.twoscale-work")
    if own == "folder":
        _folder(place, work)
    elif own == "file":
        _text(place, work)
    elif own == "link":
        _folder(place, path.with_name("linked"))
        work.symlink_to("linked")


def _named(case: Case, name: str, place: Place) -> str | None:
    """Run a command with an odd name for its target."""
    (place.path / "plain.txt").write_text("plain\n")
    return _check(replace(case, target=name), place, replaceable="", set_up=True)


def _locked(case: Case, place: Place) -> str | None:
    """Run a command as somebody who must not write to the folder of its target."""
    case.set_up(place)
    locked = place.path / "locked"
    _folder(place, locked)
    locked.chmod(0o555)
    case = replace(case, target="locked/result", prepare=_give_up_powers)
    return _check(case, place, replaceable="", must_refuse=True)


def _give_up_powers() -> None:
    """Obey permissions from now on, also as root: by Linux's system call for capabilities."""
    if os.geteuid() == 0:
        header, none = struct.pack("Ii", 0x20080522, 0), bytes(24)
        if ctypes.CDLL(None).capset(header, none) != 0:
            os._exit(70)


def _check(
    case: Case, place: Place, *, replaceable: str, set_up: bool = False, must_refuse: bool = False
) -> str | None:
    """Run a command; nothing may be lost but what it may replace, and nothing come unasked."""
    if set_up:
        case.set_up(place)
    before = snapshot(place.path)
    place_of_result = os.path.realpath(place.path / case.target)
    kept = {
        name: kind
        for name, kind in before.items()
        if not (replaceable and _below(str(place.path / name), replaceable))
    }
    outcome = place.run(*case.command, prepare=case.prepare)
    after = snapshot(place.path)
    wrong = misbehaviour(outcome) or changed(kept, after)
    if wrong:
        return wrong
    if must_refuse and outcome.status == FINE:
        return "it wrote where it must not"
    if outcome.status != FINE and not case.growing:
        return added(before, after)
    figures = os.path.join(os.path.dirname(place_of_result), "figures")
    allowed = (place_of_result, *((figures,) if case.beside else ()))
    for name in sorted(set(after) - set(before)):
        path = str(place.path / name)
        if not any(_below(path, one) or _below(one, path) for one in allowed):
            return f"it left {name!a}"
    parts = case.parts if not case.growing else ()  # those add to what is there
    try:
        for part in parts:
            meaning(place.path / part)
    except Broken as error:
        return f"the result is not whole: {error}"
    return None


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + os.sep)
