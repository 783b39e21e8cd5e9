"""A report of made-up records, written once for all tests of pages."""

from __future__ import annotations

import pytest

from tests.lab.study.synthetic import make_record, write_record
from twoscale_lab.report.study_page import write_report
from twoscale_lab.study.catalogue import load_study


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of two studies with all their cases; tests must not write to it."""
    place = tmp_path_factory.mktemp("studies")
    for name in ("mechanism", "svd-solver"):
        cases = [row.case.id for row in load_study(name).rows()]
        write_record(place / "records", make_record(name, cases))
    return place


@pytest.fixture(scope="session")
def page(folder, tmp_path_factory):
    """The report of these studies; tests must not write to it."""
    out = tmp_path_factory.mktemp("report") / "page.html"
    assert write_report(folder, out) == out
    return out
