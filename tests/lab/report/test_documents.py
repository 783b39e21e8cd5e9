"""Generated parts of the documentation, from made-up records; `test_records` has the real ones."""

import re
from pathlib import Path

import pytest

from tests.lab.study.leaderboard.board import board_record
from tests.lab.study.synthetic import make_cell, make_record, write_record
from twoscale import TwoscaleError
from twoscale.report.display import ABSENT
from twoscale_lab.report.documents import Documents, gpu_seconds, table_numbers, write_images
from twoscale_lab.report.tables import markdown
from twoscale_lab.study.paper.published import paper_tables

ROOT = Path(__file__).parents[3]
HEADLINE = ["poisson-128 local", "poisson-128 two-scale"]


@pytest.fixture
def rendered(tmp_path):
    """Give a template's text with some records of studies."""

    def render(template, *records):
        folder = tmp_path / "results" / "study"
        for record in records:
            write_record(folder, record, fields=False)
        return Documents(tmp_path).render(template)

    return render


def test_results_have_every_table_with_the_paper_beside(rendered):
    page = rendered("docs/results.md", make_record("headline", HEADLINE))
    assert "## Seven methods on Poisson 128²" in page
    assert "**Error and cost (Poisson 128²)**" in page
    rows = [line for line in page.splitlines() if line.startswith("| Plain L2L |")]
    assert len(rows) == 6  # one in the table of main methods, one in each table of the study
    assert "| 4.829 ± 0.094 ✓ |" in rows[0]
    (missing, *_) = [line for line in page.splitlines() if line.startswith("| FNO |")]
    assert f"| {ABSENT} | 0.242 ± 0.013 |" in missing
    assert "An Imagined GPU" in page
    assert "0123456789ab" in page
    assert page.count("\n## Comparison with the paper\n") == 1
    assert len({line.count("|") for line in page.splitlines() if "Plain L2L |" in line}) > 1


def test_a_partial_and_a_small_study_are_fine(rendered):
    record = make_record("darcy", ["darcy-64 local"], scale="small", seeds=(0,), samples=1250)
    page = rendered("docs/results.md", record)
    assert "Plain L2L" in page
    assert "(Darcy 64²)" in page


def test_the_main_methods_have_a_table(rendered):
    records = make_record("headline", HEADLINE), make_record("darcy", ["darcy-256 local"])
    page = rendered("docs/results.md", *records)
    lines = page[page.index("The paper's main methods") :].splitlines()[2:7]
    assert [line.split(" | ")[:2] for line in lines[2:]] == [
        ["| Plain L2L", "Poisson 128²"],
        ["| Two-scale", "Poisson 128²"],
        ["| Plain L2L", "Darcy 256²"],
    ]
    assert len({line.count("|") for line in lines}) == 1


def test_a_bar_within_a_cell_does_not_end_it():
    assert markdown(["a"], [["|x|"]]).splitlines()[-1] == "| \\|x\\| |"


def test_shares_of_a_time_are_marked(rendered):
    record = make_record("headline", HEADLINE)
    for cell in record["cells"]:
        alone = "local" in cell["case"] and cell["seed"] == 0
        cell["metrics"]["trained_together"] = 1 if alone else 5
    rows = rendered("docs/results.md", record).splitlines()
    (plain,) = [line for line in rows if line.startswith("| Plain L2L") and " 181 " in line]
    (two_scale,) = [line for line in rows if line.startswith("| Two-scale |") and " 219 " in line]
    assert "†" not in plain
    assert two_scale.count("†") == 1


def test_values_and_changes_are_counted_apart(rendered):
    page = rendered("docs/results.md", make_record("mechanism", HEADLINE))
    found = re.search(r"Plain values: (\d+) of \d+ match .*Changes: (\d+) of", page)
    assert all(int(count) > 0 for count in found.groups())


def test_representations_of_equal_codes_are_those_that_were_measured(rendered):
    case = "poisson-128 global code_size=162 input_variance=0.999 objective=field predictor=affine"
    lines = rendered("equal.md", make_record("beyond", ["poisson-128 fno", case])).splitlines()
    assert [line.count("±") for line in lines[2:]] == [2]  # of both errors


def test_a_case_of_the_readme_that_is_gone_is_named(rendered):
    with pytest.raises(TwoscaleError, match=r"has no FNO on poisson-128, .*: name others"):
        rendered("results.md", make_record("beyond", ["poisson-128 two-scale"]))


def test_the_leaderboard_lists_published_errors_before_ours_exist(rendered):
    text = rendered("leaderboard.md", make_record("headline", HEADLINE))
    assert "| 0.28 (MgFNO) | 1.08 (FNO) |" in text
    assert "kernel 1.00 [batlle2024]" in text
    assert "- [batlle2024] Batlle, Darcy, Hosseini, Owhadi (2024): Kernel Methods" in text
    assert "None of our errors is measured yet." in text


def test_the_results_say_where_we_stand(rendered):
    record = board_record("darcy-fno*", error=0.0052)
    assert "| 0.273 ± 0.018 (search) |" in rendered("docs/results.md", record)


def test_the_pictures_come_from_the_records_and_a_demo(tmp_path):
    images, drawn = tmp_path / "docs/images", tmp_path / "demo/figures"
    for folder in (images, drawn):
        folder.mkdir(parents=True)
    (tmp_path / "results").symlink_to(ROOT / "results")
    (drawn / "median.png").write_bytes(b"a prediction")
    write_images(tmp_path, tmp_path / "demo")
    assert (images / "hero.png").read_bytes() == b"a prediction"
    assert (images / "error_time.png").read_bytes()[:4] == b"\x89PNG"


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


def test_the_commands_that_repeat_the_paper(rendered):
    cases = {"darcy": "darcy-256 local", "headline": "poisson-128 local"}
    records = [make_record(study, [case], seeds=(0,)) for study, case in cases.items()]
    rows = rendered("reproduce.md", *records).splitlines()[2:4]
    assert [row.split(" | ")[0] for row in rows] == ["| 1, 9, 10", "| 5, 13 to 15"]
    assert "| `twoscale study run headline --out studies` | 1 | 0." in rows[0]
