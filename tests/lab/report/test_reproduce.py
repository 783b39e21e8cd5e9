"""The table of the paper's tables, their commands and GPU minutes."""

import pytest

from tests.lab.study.synthetic import make_cell, make_record, write_record
from twoscale_lab.report.reproduce import gpu_seconds, reproduce_table, table_numbers
from twoscale_lab.report.study_documents import NO_RECORDS
from twoscale_lab.study.paper.published import paper_tables


def total(cell):
    return cell["metrics"]["timings"]["total"]


def test_every_table_of_the_paper_has_a_number_of_its_own():
    numbers = [table.number for table in paper_tables().values() if table.number is not None]
    assert sorted(numbers) == list(range(1, 36))
    assert table_numbers("headline") == [1, 9, 10]
    assert table_numbers("beyond") == []


def test_a_fit_that_was_fine_tuned_counts_once():
    fit, tuned = (make_cell(f"poisson-128 two-scale{objective}") for objective in ("", "+A3"))
    own = sum(tuned["metrics"]["timings"][name] for name in ("finetuning", "inference"))
    own += tuned["metrics"]["timings"].get("finetune_prepare", 0)
    assert gpu_seconds([fit, tuned]) == pytest.approx(total(fit) + own)
    assert gpu_seconds([tuned]) == pytest.approx(total(tuned))
    assert gpu_seconds([make_cell("poisson-128 two-scale", 1), tuned]) > total(tuned)


def test_the_rows_come_from_the_records(tmp_path):
    assert reproduce_table(tmp_path) == NO_RECORDS
    for study, case in (("darcy", "darcy-256 local"), ("headline", "poisson-128 local")):
        write_record(tmp_path, make_record(study, [case], seeds=(0,)), fields=False)
    rows = reproduce_table(tmp_path).splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == ["| 1, 9, 10", "| 5, 13 to 15"]
    assert "| `twoscale study run headline --out studies` | 1 | 0." in rows[0]
