import json
import math
import os
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.damage import changed, read_or_refused, repeatable
from twoscale.errors import TwoscaleError
from twoscale.files import open_file, read_json, read_text, to_json, write_json
from twoscale.files.reading import parse_json, read_bytes


def test_json_is_readable_and_without_nan(tmp_path):
    path = tmp_path / "x.json"
    content = {"a": (1, 2), "b": math.nan, "c": [math.inf, 0.5], 3: {"d": None}}
    write_json(path, content)
    assert read_json(path) == {"a": [1, 2], "b": None, "c": [None, 0.5], "3": {"d": None}}
    assert path.read_text() == to_json(content) + "\n"
    assert path.read_text().endswith("}\n")


def nested(opening, closing, depth):
    return b'{"a": ' + opening * depth + b"1" + closing * depth + b"}"


@pytest.mark.parametrize(
    ("words", "content"),
    [
        *(("damaged or not JSON", text) for text in (b"{", b"", b"\xff\xfe\x00", b'"\\ud800"')),
        *(("should hold a JSON object", text) for text in (b"[1, 2]", b'"text"')),
        ("nested too deeply", b'{"a": ' * 100_000),
        ("nested too deeply", nested(b'{"a": ', b"}", 200)),
        ("nested too deeply", nested(b"[", b"]", 200)),
        ("5000 digits", b'{"a": ' + b"9" * 5000 + b"}"),
        *((text, b'{"a": %s}' % text.encode()) for text in ("NaN", "-Infinity", "1e999")),
    ],
)
def test_damaged_json_is_told(tmp_path, content, words):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(TwoscaleError, match=rf"x\.json .*{words}"):
        read_json(path)


def test_required_values_must_be_there_and_of_their_type(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": 1, "b": [2], "c": True})
    assert read_json(path, require={"a": int, "b": list, "c": bool})["b"] == [2]
    with pytest.raises(TwoscaleError, match="b, c, d"):
        read_json(path, require={"a": int, "b": dict, "c": int, "d": str})
    for missing in (tmp_path / "y.json", path / "y.json"):
        with pytest.raises(TwoscaleError, match=r"y\.json does not exist"):
            read_json(missing)


def test_what_is_nested_within_reason_is_read():
    text = "[" * 100 + "]" * 100
    assert json.dumps(parse_json(text)) == text
    assert parse_json("[" + "[[]]," * 1000 + "[]]") == [[[]]] * 1000 + [[]]
    assert parse_json('"\\ud83d\\ude00"') == "\U0001f600"


# Things that are no files


def _folder(path):
    path.mkdir()


def _socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))  # the names of sockets are short


SPECIAL = {
    "a folder, not a file": _folder,
    "a pipe, not a file": os.mkfifo,
    "a socket, not a file": _socket,
    "a device, not a file": lambda path: path.symlink_to("/dev/zero"),
    "its symbolic links lead in a circle": lambda path: path.symlink_to(path),
    "is a link to something that does not exist": lambda path: path.symlink_to("nothing"),
}


@pytest.mark.parametrize(("words", "make"), SPECIAL.items(), ids=SPECIAL)
def test_things_that_are_no_files_are_told(tmp_path, monkeypatch, words, make):
    monkeypatch.chdir(tmp_path)
    make(tmp_path / "x")
    for read in (read_json, read_text):
        with pytest.raises(TwoscaleError, match=words):
            read(tmp_path / "x")


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 5000])
def test_names_that_no_file_has(tmp_path, name):
    with pytest.raises(TwoscaleError, match=r"not the name of a file|name too long"):
        read_text(tmp_path / name)


def test_a_pipe_put_in_the_place_of_a_file_is_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "x")
    (tmp_path / "y").touch()
    regular = os.stat(tmp_path / "y")
    monkeypatch.setattr(os, "stat", lambda path: regular)
    with pytest.raises(TwoscaleError, match="a pipe, not a file"):
        open_file(tmp_path / "x")


def test_files_without_permission_are_told_as_such(tmp_path, monkeypatch):
    write_json(tmp_path / "x.json", {})

    def refuse(*call):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # an administrator may read everything
    with pytest.raises(TwoscaleError, match=r"x\.json .*permission denied$"):
        read_json(tmp_path / "x.json")


# Sizes


def test_too_much_text_is_not_read(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.touch()
    empty = os.stat(path)
    path.write_bytes(b"a" * 100)
    assert len(read_bytes(path, limit=100)) == 100
    with pytest.raises(TwoscaleError, match="at most 99 B"):
        read_bytes(path, limit=99)
    with monkeypatch.context() as patch:  # the system's own files claim to be empty
        patch.setattr(os, "fstat", lambda descriptor: empty)
        with pytest.raises(TwoscaleError, match="too large"):
            read_bytes(path, limit=99)
    with path.open("r+b") as file:
        file.truncate(10**12)  # takes no space
    with pytest.raises(TwoscaleError, match="at most 64 MB"):
        read_json(path)


# Whatever a file holds

SOUND = json.dumps({"a": [1, 2.5, None, True], "b": {"c": "text"}, "d": -3}).encode()


@repeatable
@given(st.binary(max_size=60) | changed(SOUND) | st.text('[]{},:"\\u0d8e1nNaIf-', max_size=40))
def test_any_content_is_read_or_refused(content):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        found = read_or_refused(lambda: read_json(path))
    assert found is None or json.loads(to_json(found)) == found
