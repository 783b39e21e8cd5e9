import re

from tests.lab.study.synthetic import make_record, write_record
from twoscale.report.display import ABSENT
from twoscale_lab.report.study_documents import beyond_table, headline_table, markdown, results_page

HEADLINE = ["poisson-128 local", "poisson-128 two-scale"]


def test_without_records_the_page_says_so(tmp_path):
    page = results_page(tmp_path / "nothing")
    assert page.startswith("# Results\n")
    assert page.endswith("There are no records yet.\n")
    assert (
        headline_table(tmp_path)
        == beyond_table(tmp_path, "In short")
        == "There are no records yet."
    )


def test_the_page_has_every_table_with_the_paper_beside(tmp_path):
    write_record(tmp_path, make_record("headline", HEADLINE), fields=False)
    page = results_page(tmp_path)
    assert "## Seven methods on Poisson 128²" in page
    assert "**Error and cost**" in page
    rows = [line for line in page.splitlines() if line.startswith("| Plain L2L |")]
    assert len(rows) == 6  # one in the table of main methods, one in each table of the study
    assert "| 4.829 ± 0.094 ✓ |" in rows[0]
    assert f"| FNO | Poisson 128² | {ABSENT} | {ABSENT} | 0.242 ± 0.013 |" in page
    assert "An Imagined GPU" in page
    assert "0123456789ab" in page
    assert page.count("\n## Comparison with the paper\n") == 1


def test_a_partial_and_a_small_study_are_fine(tmp_path):
    record = make_record("darcy", ["darcy-64 local"], scale="small", seeds=(0,), samples=1250)
    write_record(tmp_path, record, fields=False)
    page = results_page(tmp_path)
    assert "Comparison with the paper" not in page
    assert "| Plain L2L | Darcy 64² | 1 |" in page


def test_the_readme_takes_its_table_from_the_records_when_there_are_any(tmp_path):
    write_record(tmp_path, make_record("headline", HEADLINE), fields=False)
    write_record(tmp_path, make_record("darcy", ["darcy-256 local"]), fields=False)
    lines = headline_table(tmp_path).splitlines()
    assert [line.split(" |")[0] for line in lines[2:]] == [
        "| **Poisson 128²**",
        "| Plain L2L",
        "| Two-scale",
        "| **Darcy 256²**",
        "| Plain L2L",
    ]
    assert len({line.count("|") for line in lines}) == 1


def test_a_bar_within_a_cell_does_not_end_it():
    assert markdown(["a"], [["|x|"]])[-1] == "| \\|x\\| |"


def test_shares_of_a_time_are_marked(tmp_path):
    record = make_record("headline", HEADLINE)
    for cell in record["cells"]:
        alone = "local" in cell["case"] and cell["seed"] == 0
        cell["metrics"]["trained_together"] = 1 if alone else 5
    write_record(tmp_path, record, fields=False)
    rows = results_page(tmp_path).splitlines()
    (plain,) = [line for line in rows if line.startswith("| Plain L2L") and " 181 " in line]
    (two_scale,) = [line for line in rows if line.startswith("| Two-scale |") and " 219 " in line]
    assert "†" not in plain
    assert two_scale.count("†") == 1


def test_values_and_changes_are_counted_apart(tmp_path):
    cases = ["poisson-128 local", "poisson-128 two-scale"]
    write_record(tmp_path, make_record("mechanism", cases), fields=False)
    page = results_page(tmp_path)
    found = re.search(r"Plain values: (\d+) of \d+ match .*Changes: (\d+) of", page)
    assert all(int(count) > 0 for count in found.groups())


def test_the_readme_shows_what_is_measured_of_the_study_beyond_the_paper(tmp_path):
    write_record(tmp_path, make_record("beyond", ["poisson-128 fno", *HEADLINE]), fields=False)
    lines = beyond_table(tmp_path, "In short").splitlines()
    assert [line.split(" |")[0] for line in lines[2:]] == ["| Two-scale", "| FNO"]
    assert "±" in lines[2].split(" | ")[3]
    assert "±" not in lines[2].split(" | ", 4)[4]
