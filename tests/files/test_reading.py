import math

import pytest

from twoscale.errors import TwoscaleError
from twoscale.files import read_json, to_json, write_json


def test_json_is_readable_and_without_nan(tmp_path):
    path = tmp_path / "x.json"
    content = {"a": (1, 2), "b": math.nan, "c": [math.inf, 0.5], 3: {"d": None}}
    write_json(path, content)
    assert read_json(path) == {"a": [1, 2], "b": None, "c": [None, 0.5], "3": {"d": None}}
    assert path.read_text() == to_json(content) + "\n"
    assert path.read_text().endswith("}\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "x.json is damaged or not JSON"),
        (b"", "x.json is damaged or not JSON"),
        (b"\xff\xfe\x00", "x.json is damaged or not JSON"),
        (b"[1, 2]", "x.json should hold a JSON object"),
    ],
)
def test_damaged_json_is_told(tmp_path, content, message):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(TwoscaleError, match=message):
        read_json(path)


def test_missing_json_is_told(tmp_path):
    with pytest.raises(TwoscaleError, match=r"x\.json does not exist"):
        read_json(tmp_path / "x.json")


def test_required_values_must_be_there_and_of_their_type(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": 1, "b": [2]})
    assert read_json(path, require={"a": int, "b": list}) == {"a": 1, "b": [2]}
    with pytest.raises(TwoscaleError, match=r"x\.json is damaged: it lacks a proper b, c"):
        read_json(path, require={"a": int, "b": dict, "c": str})
