"""What a record must hold: names that are names, numbers that are numbers."""

import copy
import json
from pathlib import Path

import pytest

from tests.lab.study.synthetic import make_record
from twoscale import TwoscaleError
from twoscale_lab.study.folder import read_record
from twoscale_lab.study.record_check import check_record

RECORD = make_record("mine", ["poisson-16 two-scale+A1 epochs=5"], seeds=(0,))
RECORD["failed"] = [{"case": "poisson-16 local", "seed": 1, "key": "k", "error": "no"}]


def changed(place, value):
    record = copy.deepcopy(RECORD)
    *path, last = place
    part = record
    for key in path:
        part = part[key]
    part[last] = value
    return record


CELL = ("cells", 0)


@pytest.mark.parametrize(
    ("place", "values"),
    [
        (("study",), ["../outside", "/tmp/x", "", "a/b", "..", ".hidden", "x" * 51, 3, None]),
        (("scale",), ["large", 1]),
        (("command",), [3]),
        (("environments",), [{}, [3], [["a"]]]),
        (("cells",), [{}, [3], None]),
        (("failed",), [{}, [3], [{}]]),
        (("definition",), [3, []]),
        ((*CELL, "case"), ["x", "", 3, "a b\nc", "a b\0"]),
        ((*CELL, "key"), ["../k", "", 3, "a/b"]),
        ((*CELL, "problem"), ["../poisson", 3, None]),
        ((*CELL, "resolution"), [0, -1, 1.5, "16", 10**30, True]),
        ((*CELL, "training"), [0, 1.5, None, 10**30]),
        ((*CELL, "seed"), [-1, 0.0, "0", True, 2**63]),
        ((*CELL, "method"), ["a b", 3, None]),
        ((*CELL, "objective"), [3, "a/b"]),
        ((*CELL, "settings"), [[], 3, {"epochs": "many"}, {"no_such": 1}, {"predictor": []}]),
        ((*CELL, "environment"), [1, -1, "0", None]),
        ((*CELL, "metrics"), [[], 3, {"mre": "x"}, {"mre": [1]}, {"mre": True}, {"mre": 1e101}]),
        ((*CELL, "metrics", "mre"), [10**400, float("nan"), float("inf"), {"a": {"b": "c"}}]),
        ((*CELL, "metrics", "timings"), [3, {"total": None}, {"total": {}}, {"total": "1"}]),
        ((*CELL, "retained"), [[], {"output": 3}, {"output": {"ranks": {"coarse": 3}}}]),
        ((*CELL, "epochs"), [3, {"training": 3}]),
        ((*CELL, "weights"), [3, {"value": "x"}]),
        ((*CELL, "model_bytes"), ["x", {}]),
        ((*CELL, "processes"), [0, "1"]),
        (("failed", 0, "error"), [3, None]),
        (("failed", 0, "key"), ["../k"]),
    ],
    ids=lambda one: ".".join(map(str, one)) if isinstance(one, tuple) else "",
)
def test_what_is_wrong_is_told_with_file_and_place(place, values):
    for value in values:
        with pytest.raises(TwoscaleError) as told:
            check_record(Path("mine.json"), changed(place, value))
        first = [str(part) for part in place[:3]]
        assert str(told.value).startswith("mine.json is damaged at " + ".".join(first[:1]))
        assert "\n" not in str(told.value)


def test_a_good_record_may_hold_more_than_is_known(tmp_path):
    record = {**RECORD, "later": [1]}
    record["cells"] = [{**record["cells"][0], "later": {}}]
    (tmp_path / "mine.json").write_text(json.dumps(record))
    assert read_record(tmp_path / "mine.json") == record
