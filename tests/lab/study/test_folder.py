"""The folder of studies: records that stand for the runs they were made of."""

import json
from types import SimpleNamespace

import pytest

from tests.lab.study.tiny import tiny_study
from twoscale import TwoscaleError
from twoscale_lab.study.folder import (
    Result,
    StudyFolder,
    StudyRecord,
    read_record,
    read_records,
)

HEAD = {"study": "tiny", "scale": "paper", "command": "twoscale study run tiny"}
WHOLE = {
    "case": "poisson-16 local",
    "key": "k",
    "seed": 0,
    "metrics": {},
    "environment": 0,
    "problem": "poisson",
}
WHOLE |= {"resolution": 16, "training": 80, "method": "local", "objective": None}
HERE, THERE = {"device": "cpu"}, {"device": "cuda"}


def results():
    return [
        (cell, Result({"config_hash": cell.key, "metrics": {"mre": 0.1 * cell.seed}}, machine))
        for cell, machine in zip(
            tiny_study().cells(), [HERE, THERE, THERE, HERE, HERE, HERE], strict=True
        )
    ]


@pytest.fixture
def record(tmp_path):
    """The record of these results, written to a study folder."""
    found = {cell.key: result for cell, result in results()}
    folder = SimpleNamespace(result=lambda cell: found.get(cell.key))
    cells = [cell for cell, _ in results()]
    return StudyRecord(tmp_path / "records" / "tiny.json", HEAD, cells, folder).write()


def test_a_record_says_what_was_run_and_where(record):
    assert record["environments"] == [HERE, THERE]
    assert [cell["environment"] for cell in record["cells"]] == [0, 1, 1, 0, 0, 0]
    cell = record["cells"][5]
    assert cell["case"] == "poisson-16 two-scale+A1"
    assert cell["objective"] == "A1"
    assert (cell["training"], cell["samples"]) == (80, 100)
    assert cell["metrics"] == {"mre": 0.1}


def test_records_come_back_as_results(record, tmp_path):
    assert read_record(tmp_path / "records" / "tiny.json") == record
    assert read_records(tmp_path) == read_records(tmp_path / "records") == [record]
    folder = StudyFolder(tmp_path)
    assert all(folder.result(cell) == result for cell, result in results())
    assert [path.name for path in (tmp_path / "records").iterdir()] == ["tiny.json"]
    # A record without its run counts as finished.
    assert not any(folder.has_run(cell) for cell, _ in results())
    assert folder.result(tiny_study().cells(seeds=[9])[0]) is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is damaged or not JSON"),
        (json.dumps({"format": 1, "study": "tiny"}), "is damaged at scale: Field required"),
        (
            json.dumps({"format": 9, **HEAD, "environments": [], "cells": []}),
            "has record format 9; this twoscale reads 1",
        ),
        (
            json.dumps({"format": 1, **HEAD, "environments": [], "cells": [{"case": "x"}]}),
            "is damaged at cells.0.case: String should match",
        ),
        (
            json.dumps({"format": 1, **HEAD, "environments": [], "cells": [WHOLE]}),
            "is damaged at cells.0.environment: there is no environment 0",
        ),
        (
            json.dumps({"format": 1, **HEAD, "environments": [], "cells": [], "failed": [{}]}),
            "is damaged at failed.0.case: Field required",
        ),
    ],
)
def test_a_damaged_record_is_told(content, message, tmp_path):
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "tiny.json").write_text(content)
    with pytest.raises(TwoscaleError, match=message):
        StudyFolder(tmp_path)


@pytest.mark.parametrize("name", ["data", "cells", "logs", "records"])
def test_a_file_in_the_place_of_a_folder_is_kept(name, tmp_path):
    (tmp_path / name).write_text("mine")
    with pytest.raises(TwoscaleError, match="is not a folder"):
        StudyFolder(tmp_path / name)
    with pytest.raises(TwoscaleError, match=f"{name} is in the way"):
        StudyFolder(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_one_at_a_time(tmp_path):
    refused = pytest.raises(
        TwoscaleError, match=r"another command is running a study in .*process \d+ on"
    )
    with StudyFolder(tmp_path).locked(), refused, StudyFolder(tmp_path).locked():
        pass
    with StudyFolder(tmp_path).locked():
        pass
    assert list(tmp_path.iterdir()) == []
