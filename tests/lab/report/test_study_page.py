"""The report of studies: complete, self-contained, honest about what is missing."""

import re
from urllib.parse import unquote

import pytest

from tests.lab.study.synthetic import make_record, write_record
from twoscale.report.display import ABSENT
from twoscale_lab.report.results import read_studies, read_study
from twoscale_lab.report.study_page import write_report
from twoscale_lab.report.summary import best_result, sentences, tiles
from twoscale_lab.report.tables import UNSHARED_NOTE, agreement_table, study_tables
from twoscale_lab.study.catalogue import load_study

FAILED = {"case": "poisson-128 fno", "seed": 1, "key": "k", "error": "out of <memory>"}


@pytest.mark.parametrize("name", ["mechanism", "svd-solver"])
def test_every_table_and_figure_of_a_study_is_on_the_page(page, name):
    text = page.read_text(encoding="utf-8")
    study = load_study(name)
    assert study.question.strip() in text
    for table in study.tables:
        assert f"{table.title} (Poisson 128²)</span></caption>" in text.replace("&#39;", "'")
    for position, figure in enumerate(study.figures, 1):
        picture = f"{name}-{position}-{figure.kind}"
        assert text.count(f'<figure id="{picture}"') == 1
        for kind in ("png", "svg"):
            assert (page.parent / "figures" / f"{picture}.{kind}").stat().st_size > 5000
    assert "Not drawn" not in text


def test_the_page_refers_to_nothing_outside(page):
    whole = page.read_text(encoding="utf-8")
    drawings = [unquote(one) for one in re.findall(r'data:image/svg\+xml,([^"]+)', whole)]
    references = [re.findall(r"(?:href='|url\()(.)", one) for one in drawings]
    assert {mark for marks in references for mark in marks} == {"#"}
    text = re.sub(r'(data:image/)[^"]+', r"\1", whole)
    assert "http" not in text
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', text)
    assert all(source.startswith(("data:image/", "#")) for source in sources)
    assert not re.search(r"url\(|@import|<link", text)
    assert re.match(r"<!doctype html>", text)
    described = re.findall(r"<img src=\"data:[^\"]+\" alt=\"[^\"]{20,}\"", text)
    assert len(described) == len(re.findall(r"<figure", text)) == 19


def test_the_page_starts_with_error_against_time(page):
    text = page.read_text(encoding="utf-8")
    best = text.index("On Poisson 128², Two-scale + A3 has the lowest error: ")
    first = text.index('<figure id="error-time"')
    assert best < first < text.index("<h2>")
    assert "srcset=" in text[first : text.index("</figure>", first)]
    csv = (page.parent / "figures" / "error-time.csv").read_text()
    assert csv.startswith("case,grid,seeds,quantity,value,sd\n")
    assert "\nPlain L2L,Poisson 128²,3," in csv


def test_studies_fold_and_pictures_have_their_numbers(page):
    text = page.read_text(encoding="utf-8")
    assert "Equivalence audit</span></caption>" in text
    assert "Two-scale: randomized against hybrid" in text
    assert text.index(UNSHARED_NOTE) < text.index("<h2>")
    assert text.count('<details class="fold">') == 3  # the comparison and two studies
    assert text.count('class="numbers">Numbers</button>') == text.count("<figure")


def test_a_number_has_its_paper_value_verdict_and_origin(page, folder):
    text = page.read_text(encoding="utf-8")
    assert "agrees with the paper" in text
    assert '<small>paper 4.829 ± 0.094 <i class="match"></i></small>' in text  # Plain L2L
    case = read_study(folder / "records" / "mechanism.json").cases[0]
    for cell in case.cells:
        for word in ("key", "config_hash"):
            assert str(cell[word]) in text
    for words in ("mechanism.json: poisson-128 local", "0123456789ab", "An Imagined GPU"):
        assert words in text


def test_the_summary_says_what_matters(folder):
    studies = read_studies(folder)
    found = sentences(studies)
    words = "with default settings, Two-scale + A3 has the lowest error, "
    assert found[0].startswith(f"Poisson 128²: {words}")
    assert " Plain L2L has 4." in found[0]
    assert "times that error" in found[0]
    assert any("paper's tables of these studies have" in sentence for sentence in found)
    assert any(" of 40 decisions of the paper's equivalence audit" in one for one in found)
    values = [tile.value for tile in tiles(studies)]
    assert values[:2] == ["2", "27"]  # three seeds of twelve cases, of which three are in both
    rows = agreement_table(studies).texts
    assert rows[-1][0] == "All studies"
    assert len(rows) == 3


def test_cases_come_as_the_study_names_them_place_by_place(tmp_path):
    """Whatever the order in which their cells were finished."""
    study = load_study("resolution")
    cases = [row.case.id for row in study.rows()]
    write_record(tmp_path, make_record("resolution", reversed(cases)), fields=False)
    (result,) = read_studies(tmp_path).results
    assert [case.id for case in result.cases] == cases
    first, *_ = study_tables(result, study)
    grids = [int(row[1].split()[1].rstrip("²")) for row in first.texts]
    assert grids == sorted(grids)


def test_cells_that_studies_share_are_counted_once(tmp_path):
    for name in ("one", "two"):
        write_record(tmp_path, make_record(name, ["poisson-128 local"]), fields=False)
    assert tiles(read_studies(tmp_path))[1].value == "3"


@pytest.mark.usefixtures("without_drawing")
def test_a_small_study_is_not_held_against_the_paper(tmp_path):
    record = make_record("mechanism", ["poisson-32 local"], scale="small", samples=1250)
    write_record(tmp_path, record, fields=False)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "not comparable to the paper" in text
    assert '<i class="' not in text
    assert "Poisson 32²" in text


@pytest.mark.usefixtures("without_drawing")
def test_what_failed_or_is_missing_is_said(tmp_path):
    record = make_record("mechanism", ["poisson-128 local"], failed=[FAILED])
    write_record(tmp_path, record, fields=False)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "Failed: poisson-128 fno, seed 1: out of &lt;memory&gt;" in text
    assert "1 run failed" in text
    assert "Not drawn: One field (the record of mechanism has no fields of poisson-128" in text
    assert "Not drawn: What fine-tuning changes (the record has no case with its base)" in text
    assert "not measured" in text  # the paper's numbers of cases that were not run


def test_cases_that_were_not_run_have_rows(tmp_path):
    path = write_record(tmp_path, make_record("mechanism", ["poisson-128 local"]), fields=False)
    table = study_tables(read_study(path), load_study("mechanism"))[0]
    assert [row[-1] for row in table.texts] == ["3", *4 * [ABSENT]]


def test_a_study_of_ones_own_gets_the_usual_table(tmp_path):
    write_record(tmp_path, make_record("mine", ["poisson-128 local", "poisson-64 local"]))
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "<h2>mine</h2>" in text
    assert "All cases" in text
    assert "Poisson 64²" in text


def test_records_are_found_in_both_kinds_of_folder(folder):
    for place in (folder, folder / "records"):
        assert [one.name for one in read_studies(place).results] == ["mechanism", "svd-solver"]


def test_the_summary_says_where_one_method_overtakes_another(tmp_path):
    sizes = (1250, 2000, 4000)
    cases = [f"poisson-128 {m} training={k}" for m in ("overlap", "two-scale") for k in sizes]
    record = make_record("sample-efficiency", cases, seeds=(0,))
    errors = (0.02, 0.02, 0.02, 0.04, 0.02828427, 0.01)
    for cell, error in zip(record["cells"], errors, strict=True):
        cell["metrics"]["mre"] = error
    write_record(tmp_path, record, fields=False)
    crossing = "Poisson 128²: Two-scale has a lower error than L2L + overlap from about"
    assert f"{crossing} 2,520 training fields on." in sentences(read_studies(tmp_path))


def test_the_summary_says_what_is_not_measured_yet(tmp_path):
    cases = [f"darcy-256 {method}" for method in ("global", "local", "overlap")]
    write_record(tmp_path, make_record("darcy", cases), fields=False)
    (sentence,) = [one for one in sentences(read_studies(tmp_path)) if one.startswith("Darcy")]
    assert sentence.endswith(" Not measured yet: FNO, Two-scale, Two-scale + A3.")


def test_the_summary_tells_of_predictors_beyond_the_papers(tmp_path):
    affine = "poisson-128 two-scale objective=field predictor=affine"
    cases = ["poisson-128 local", "poisson-128 fno", affine, f"{affine} training=1250"]
    record = make_record("beyond", cases, seeds=(0,))
    for cell, error in zip(record["cells"], (0.05, 0.004, 0.001, 0.0005), strict=True):
        cell["metrics"]["mre"] = error
    write_record(tmp_path, record, fields=False)
    (sentence,) = [one for one in sentences(read_studies(tmp_path)) if "beyond the paper" in one]
    words = "Poisson 128²: the best case beyond the paper is Two-scale + affine, with 0.100 % in "
    assert sentence.startswith(words)
    assert sentence.endswith(" FNO has 4.0 times that error.")
    (best,) = best_result(read_studies(tmp_path))
    assert best.startswith("On Poisson 128², Two-scale + affine has an error of 0.100 % after ")
    assert best.endswith(" s.")
    assert " s on one An Imagined GPU. FNO has 0.400 % after " in best


GLOBAL = [f"poisson-128 global output_variance={part}" for part in (0.9, 0.99, 0.999)]
LOCAL = [f"poisson-128 local output_variance={part}" for part in (0.9, 0.99, 0.999)]


@pytest.mark.parametrize(
    ("local", "sizes"),
    [
        # Not as good as global PCA with 10 numbers; better than with 10; not as good as with 90.
        ([(20, 0.09), (40, 0.03), (100, 0.02)], "codes of 5 to below 40 and of 90 or more"),
        ([(5, 0.1), (10, 0.01), (90, 0.001)], "no size of the code"),
        ([(5, 0.3), (10, 0.09), (90, 0.011)], "codes of 5 or more"),
    ],
)
def test_the_summary_says_where_global_pca_represents_best(tmp_path, local, sizes):
    record = make_record("frontier", GLOBAL + LOCAL, seeds=(0,))
    codes = [(5, 0.2), (10, 0.08), (90, 0.01), *local]
    for cell, (code, oracle) in zip(record["cells"], codes, strict=True):
        cell["metrics"] |= {"output_code": code, "oracle_mre": oracle}
    write_record(tmp_path, record, fields=False)
    (sentence,) = [one for one in sentences(read_studies(tmp_path)) if "global PCA" in one]
    most = max(code for code, _ in codes)
    assert sentence.startswith("Poisson 128²: ")
    assert f" oracle error for {sizes}. " in sentence
    assert sentence.endswith(f" 5 to {most} numbers.")
    named = tmp_path / "mine"  # no study of code sizes
    write_record(named, make_record("mine", GLOBAL + LOCAL), fields=False)
    assert not any("global PCA" in one for one in sentences(read_studies(named)))
