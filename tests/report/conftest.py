"""A report of made-up records, written once for all tests of pages."""

from __future__ import annotations

import pytest

from tests.study.synthetic import make_record, write_record
from twoscale.report.study_page import write_report
from twoscale.study.catalogue import load_study


def write_studies(folder, *names, scale="paper", **options):
    """Write made-up records of studies, with all their cases."""
    for name in names:
        study = load_study(name).at(scale)
        cases = [row.case.id for row in study.rows()]
        samples = 10_000 if scale == "paper" else 1250
        record = make_record(name, cases, scale=scale, samples=samples, **options)
        write_record(folder / "records", record)
    return folder


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder of two studies; tests must not write to it."""
    return write_studies(tmp_path_factory.mktemp("studies"), "mechanism", "svd-solver")


@pytest.fixture(scope="session")
def page(folder, tmp_path_factory):
    """The report of these studies; tests must not write to it."""
    out = tmp_path_factory.mktemp("report") / "page.html"
    assert write_report(folder, out) == out
    return out
