"""Random changes of records and definitions end in one sentence or in a right result."""

import contextlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml
from hypothesis import given, settings

from tests.lab.study.synthetic import make_record
from tests.lab.study.tiny import TEXT, tiny_study
from tests.mutations import mutated
from twoscale import TwoscaleError
from twoscale_lab.names import SCALES
from twoscale_lab.study.catalogue import own_definition, parse_study, recorded_study
from twoscale_lab.study.folder import StudyFolder, read_record
from twoscale_lab.study.paper.comparison import agreement, compare

MEASURED = make_record("mechanism", ["poisson-128 local", "poisson-128 two-scale+A3"], seeds=(0, 1))
MINE = make_record("mine", ["poisson-16 local"], seeds=(0,)) | own_definition(tiny_study())
MINE["failed"] = [{"case": "poisson-16 local", "seed": 1, "key": "k", "error": "no"}]


def read(record):
    """Return a record after a way through a file, or None if it is refused."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "mine.json"
        file.write_text(json.dumps(record))
        try:
            found = read_record(file)
        except TwoscaleError:
            return None
        assert StudyFolder(folder).path == Path(folder)
        return found


@settings(max_examples=80, derandomize=True, deadline=None)
@given(mutated(MEASURED))
def test_a_changed_record_is_compared_or_refused(record):
    found = read(record)
    if found is not None:
        assert found == record
        with contextlib.suppress(TwoscaleError):
            assert agreement(compare([found]))


@settings(max_examples=150, derandomize=True, deadline=None)
@given(mutated(MINE))
def test_a_changed_record_of_ones_own_study_is_shown_or_refused(record):
    found = read(record)
    if found is not None:
        with contextlib.suppress(TwoscaleError):
            study = recorded_study(found)
            assert study is None or study.rows()


@settings(max_examples=80, derandomize=True, deadline=None)
@given(mutated(yaml.safe_load(TEXT)))
def test_a_changed_definition_is_a_study_or_refused(content):
    try:
        study = parse_study(yaml.safe_dump(content), name="mine")
    except TwoscaleError:
        return
    for scale in SCALES:
        assert study.at(scale).rows()
