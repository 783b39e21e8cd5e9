"""The tables of audits and of growth say what the figures show."""

from dataclasses import replace

import pytest

from tests.lab.study.synthetic import make_record, write_record
from twoscale.report.display import ABSENT
from twoscale_lab.report.audits import audit_tables, same_decisions, study_audits
from twoscale_lab.report.related import crossing_tables, crossings, scalings
from twoscale_lab.report.results import read_study
from twoscale_lab.study.catalogue import load_study


@pytest.fixture
def study(tmp_path):
    """Give a made-up study with all its cases, and its definition; times as they are given."""

    def read(name, seconds=None):
        definition = load_study(name)
        record = make_record(name, [row.case.id for row in definition.rows()])
        for cell in record["cells"] if seconds else ():
            cell["metrics"]["timings"] = {"total": seconds(cell["method"], cell["resolution"])}
        path = write_record(tmp_path, record, fields=False)
        return read_study(path), definition

    return read


def test_every_decision_of_the_papers_audit_has_a_row(study):
    (table,) = audit_tables(*study("svd-solver"))
    rows = table.texts
    assert len(rows) == 45
    assert all(row[-1].split()[0] in ("equivalent", "inconclusive", "pass") for row in rows)
    first = dict(zip(table.header, rows[0], strict=True))
    assert first["quantity"] == "relative error"
    assert first["margin"] == "± 5.00 %"
    assert first["seeds"] == "3"
    assert " % to " in first["90 % interval"]


def test_decisions_are_counted_without_times(study):
    audits = study_audits(*study("svd-solver"))
    same, judged = same_decisions(audits)
    assert judged == 40
    assert same == sum(one.agrees for one in audits if one.quantity != "pca_fit")
    decided = replace(audits[0].audit, decision="different")
    assert same_decisions([replace(audits[0], audit=decided)]) == (0, 1)
    assert same_decisions([replace(audits[0], paper=None)]) == (0, 0)


def test_an_audit_of_one_seed_has_no_interval(study):
    result, definition = study("svd-solver")
    cases = tuple(replace(case, cells=case.cells[:1]) for case in result.cases)
    (table,) = audit_tables(replace(result, cases=cases), definition)
    assert {(row[3], row[6]) for row in table.texts} == {(ABSENT, "inconclusive")}


def growth(method, size):
    """Two-scale and plain patches cross at 192, plain patches and FNO at 1024."""
    laws = {"two-scale": 192.0 * size, "local": float(size**2), "fno": size**3 / 1024}
    return laws.get(method, 1e-3 * size)


def test_crossings_are_where_the_laws_meet_marked_outside_the_grids(study):
    (table,) = crossing_tables(*study("resolution", growth))
    found = {(row[0], row[2]): row for row in table.texts}
    assert found["Two-scale", "Plain L2L"][1::2] == ["1.000 ± 0.000", "2.000 ± 0.000"]
    assert found["Two-scale", "Plain L2L"][4] == "192"
    assert found["Plain L2L", "FNO"][4] == "1,024 ‡"
    assert len(found) == 15


def test_two_grids_give_an_exponent_without_error(study):
    result, definition = study("resolution", growth)
    part = result.where(lambda case: case.method != "fno" or case.resolution < 256)
    (table,) = crossing_tables(part, definition)
    assert {row[3] for row in table.texts if row[2] == "FNO"} == {"3.000, two grids"}


@pytest.mark.parametrize(("grids", "outside"), [((64, 128, 256), False), ((64, 128), True)])
def test_a_crossing_is_extrapolated_outside_the_grids_of_both(grids, outside, study):
    result, _ = study("resolution", growth)
    part = result.select(["two-scale", "local"])
    part = part.where(lambda case: case.method != "local" or case.resolution in grids)
    (crossing,) = crossings(scalings(part))
    assert crossing.at == pytest.approx(192)
    assert crossing.is_extrapolated == outside


def test_studies_without_such_figures_have_no_such_tables(study):
    for tables in (audit_tables, crossing_tables):
        assert tables(*study("headline")) == tables(study("headline")[0], None) == []
