"""Files, opened with care; text and JSON, read, checked and written."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from twoscale.errors import TwoscaleError
from twoscale.files.moves import replace_file
from twoscale.runtime.memory import is_out_of_memory, size_text

TEXT_LIMIT = 64 * 10**6  # bytes of a text that is read as a whole; parsed, it takes 20 times that
_DEPTH_LIMIT = 100  # levels of nested JSON: recursive code that walks it has room for these
_DIGITS_LIMIT = 100  # of a whole number in JSON: more would not fit a float

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFSOCK: "a socket",
}


def open_file(path: Path) -> BinaryIO:
    """Return a regular file, opened for reading; anything else is refused in one sentence.

    The check comes before the opening, which would wait for ever on a pipe, and again after it.
    """
    try:
        _refuse_special(path, os.stat(path))
        file = os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
        try:
            _refuse_special(path, os.fstat(file.fileno()))
        except BaseException:
            file.close()
            raise
    except OSError as error:
        raise unreadable(path, error) from error
    except TwoscaleError:
        raise
    except ValueError as error:  # of characters that no name has
        raise TwoscaleError(f"{str(path)!r} is not the name of a file") from error
    return file


def _refuse_special(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise TwoscaleError(f"{path} is {kind}, not a file: give a regular file")


def unreadable(path: Path | str, error: OSError) -> TwoscaleError:
    """Return the sentence for what the system refuses to read."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        subject = f"{path} is a link to something that" if os.path.islink(path) else str(path)
        return TwoscaleError(f"{subject} does not exist")
    if error.errno == errno.ELOOP:
        return TwoscaleError(f"{path} cannot be read: its symbolic links lead in a circle")
    reason = (error.strerror or str(error)).lower()
    return TwoscaleError(f"{path} cannot be read: {reason}")


@contextmanager
def parsing(path: Path | str, kind: str) -> Iterator[None]:
    """Turn whatever a library raises on bad bytes into "path is damaged or not `kind`"."""
    try:
        yield
    except TwoscaleError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            raise unreadable(path, error) from error
        if is_out_of_memory(error):
            raise TwoscaleError(
                f"{path} cannot be read: it claims to hold more than fits the memory"
            ) from error
        reason = (str(error) or type(error).__name__).splitlines()[0][:200]
        raise TwoscaleError(f"{path} is damaged or not {kind}: {reason}") from error


def read_bytes(path: Path, *, limit: int = TEXT_LIMIT) -> bytes:
    """Return what a file holds; one of more than `limit` bytes is refused."""
    with open_file(path) as file, parsing(path, "readable"):
        size = os.fstat(file.fileno()).st_size
        content = b"" if size > limit else file.read(limit + 1)  # it may grow meanwhile
    if max(size, len(content)) > limit:
        raise TwoscaleError(
            f"{path} is too large: at most {size_text(limit)} are read of such a file"
        )
    return content


def read_text(path: Path) -> str:
    """Return the UTF-8 text a file holds; one of more than 64 MB is refused."""
    content = read_bytes(path)
    with parsing(path, "UTF-8 text"):
        return content.decode()


def read_json(path: Path, *, require: dict[str, type] | None = None) -> dict[str, Any]:
    """Return the object a JSON file holds, which must have values of the `require`d types."""
    return json_object(read_bytes(path), str(path), require=require)


def json_object(
    content: bytes, name: str, *, require: dict[str, type] | None = None
) -> dict[str, Any]:
    """Return the object that the bytes of a JSON file of this name hold, as `read_json` does."""
    with parsing(name, "JSON"):
        parsed = parse_json(content.decode())
    if not isinstance(parsed, dict):
        raise TwoscaleError(f"{name} should hold a JSON object")
    wrong = [key for key, kind in (require or {}).items() if not is_a(parsed.get(key), kind)]
    if wrong:
        raise TwoscaleError(f"{name} is damaged: it lacks a proper {', '.join(wrong)}")
    return parsed


def is_a(value: Any, kind: type) -> bool:
    """Say whether a JSON value is of a type; true and false are no numbers."""
    return isinstance(value, kind) and (kind is not int or not isinstance(value, bool))


def parse_json(text: str) -> Any:
    """Return the value of a JSON text, or raise a ValueError on what we never write.

    That is: NaN and infinity, numbers too large for a float, nesting too deep for recursive code,
    and halves of surrogate pairs, which no file can be written with.
    """

    def finite(word: str) -> float:
        value = float(word)
        if not math.isfinite(value):
            raise ValueError(f"{word[:20]} is no number of JSON, or beyond all numbers")
        return value

    def whole(digits: str) -> int:
        if len(digits) > _DIGITS_LIMIT:
            raise ValueError(f"a whole number has {len(digits)} digits")
        return int(digits)

    try:
        value = json.loads(text, parse_constant=finite, parse_float=finite, parse_int=whole)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if text.count("[") + text.count("{") > _DEPTH_LIMIT:
        _refuse_depth(value)
    if "\\ud" in text or "\\uD" in text:
        json.dumps(value, ensure_ascii=False).encode()
    return value


def _refuse_depth(value: Any) -> None:
    """Go through a value level by level, without recursion."""
    level = [value]
    for _ in range(_DEPTH_LIMIT):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise ValueError("it is nested too deeply")


def to_json(content: Any) -> str:
    """Return readable JSON; numbers that JSON has no word for become null."""
    return json.dumps(plain_json(content), indent=2, allow_nan=False)


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file."""
    path.write_text(to_json(content) + "\n")


def rewrite_json(path: Path, content: Any) -> None:
    """Write a JSON file in one step: whoever reads it finds the old one or the new one."""
    prepared = path.with_suffix(".new")
    write_json(prepared, content)
    replace_file(prepared, path)


def plain_json(value: Any) -> Any:
    """Return a value as JSON will hold it.

    Tuples and arrays become lists, keys text, and numbers that are not finite null.
    """
    if isinstance(value, dict):
        return {str(k): plain_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(v) for v in value]
    if isinstance(value, np.ndarray):
        return plain_json(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
