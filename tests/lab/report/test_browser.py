"""The report in a real browser, at the width of a desk and of a phone."""

from __future__ import annotations

import pytest

from tests.browser import SIZES, open_page

ROOT = "document.documentElement"
# For what does not depend on the width.
at_one_width = pytest.mark.parametrize("tab", ["desk"], indirect=True, scope="module")


@pytest.fixture(scope="module", params=SIZES)
def tab(request, browser, page):
    """A tab of one size; it must raise no error, write no error and ask for nothing."""
    with open_page(browser, page, SIZES[request.param]) as opened:
        opened.set_default_timeout(10_000)
        yield opened


@pytest.fixture
def report(tab, page):
    """The report, opened anew, with all studies folded."""
    tab.goto("about:blank")
    tab.goto(page.as_uri())
    tab.evaluate("sessionStorage.clear()")
    tab.reload()
    return tab


def open_folds(report):
    return report.locator("details.fold").evaluate_all(
        "(all) => all.filter((one) => one.open).map((one) => one.parentElement.id)"
    )


def test_studies_fold_and_stay_as_they_were(report):
    assert open_folds(report) == []
    report.locator("#mechanism summary").first.focus()
    report.keyboard.press("Enter")
    assert open_folds(report) == ["mechanism"]
    report.reload()
    assert open_folds(report) == ["mechanism"]
    report.locator("#unfold").click()
    assert len(open_folds(report)) == 3
    report.locator("#unfold").click()
    assert open_folds(report) == []


def test_a_link_opens_its_study(report):
    contents = report.locator("nav details")
    if contents.get_attribute("open") is None:
        contents.locator("summary").click()
    contents.get_by_text("Randomised or full").click()
    report.wait_for_function(
        "Math.abs(document.getElementById('svd-solver').getBoundingClientRect().top) < 160"
    )
    assert open_folds(report) == ["svd-solver"]


def test_every_picture_is_shown_and_nothing_scrolls_sideways(report):
    report.locator("#unfold").click()
    report.locator("main img").evaluate_all("(all) => all.forEach((i) => { i.loading = 'eager'; })")
    report.wait_for_function("[...document.images].every((one) => one.complete)")
    widths = report.locator("main img").evaluate_all("(all) => all.map((one) => one.naturalWidth)")
    assert len(widths) == 19
    assert min(widths) > 100
    report.locator("summary").filter(has_text="values of the paper").first.click()
    assert report.evaluate(f"{ROOT}.scrollWidth") == report.evaluate(f"{ROOT}.clientWidth")
    hidden = report.locator(".frame.right").evaluate_all(
        "(all) => all.every((one) => one.firstElementChild.scrollWidth > one.clientWidth)"
    )
    assert hidden  # a shadow at the right edge means that there is more


@at_one_width
def test_the_search_leaves_what_has_all_words(report):
    report.locator("#search").fill("overlap randomized")
    report.wait_for_function("document.body.classList.contains('searching')")
    assert open_folds(report) == ["paper", "svd-solver"] or open_folds(report) == ["svd-solver"]
    rows = report.locator("#svd-solver .table tbody tr:visible").all_inner_texts()
    assert rows
    assert all("overlap" in row and "randomized" in row for row in rows)
    assert " rows and " in report.locator("#found").inner_text()
    report.locator("#search").fill("")
    report.wait_for_function("!document.body.classList.contains('searching')")
    assert open_folds(report) == []
    assert report.locator("[hidden]").count() == 0


@at_one_width
def test_tables_sort_and_hide_columns(report):
    report.locator("#mechanism summary").first.click()
    block = report.locator("#mechanism .table").first
    table = block.locator("table")
    heading = table.locator("thead th").nth(2)

    def column():
        cells = table.locator("tbody tr td:nth-child(3)").all_inner_texts()
        return [float(text.split()[0]) for text in cells]

    start = column()
    assert len(start) == 5
    for direction, expected in (("ascending", sorted(start)), ("descending", sorted(start)[::-1])):
        heading.locator("button").click()
        assert column() == expected
        assert heading.get_attribute("aria-sort") == direction
    table.locator("thead th button").first.click()
    names = table.locator("tbody th").all_inner_texts()
    assert names == sorted(names)
    block.locator(".choice summary").click()
    block.get_by_label("SSIM").uncheck()
    assert not heading.is_visible()
    assert not table.locator("tbody td:nth-child(3)").first.is_visible()
    block.get_by_label("SSIM").check()
    assert heading.is_visible()


def test_a_figure_enlarges_and_shows_its_numbers(report):
    report.locator("#mechanism summary").first.click()
    viewer, sheet = report.locator("#viewer"), report.locator("#sheet")
    report.locator("#mechanism .enlarge").first.click()
    title = report.locator("#mechanism figure h3").first.inner_text()
    assert viewer.locator("strong").inner_text() == title
    report.keyboard.press("ArrowRight")
    assert viewer.locator("strong").inner_text() != title
    report.keyboard.press("Escape")
    assert not viewer.is_visible()
    report.locator("#mechanism button.numbers").first.click()
    assert "Plain L2L + A3" in sheet.inner_text()
    with report.expect_download() as download:
        sheet.get_by_text("Save CSV").click()
    assert download.value.suggested_filename == "mechanism-1-interaction.csv"
    text = download.value.path().read_text(encoding="utf-8")
    assert text.startswith("case,grid,seeds,quantity,value,sd")
    sheet.get_by_label("Close").click()
    assert not sheet.is_visible()


@at_one_width
def test_a_row_tells_where_its_numbers_come_from(report):
    report.locator("#mechanism summary").first.click()
    report.locator("#mechanism button.origin").first.click()
    text = report.locator("#sheet").inner_text()
    for words in ("Plain L2L", "mechanism.json: poisson-128 local", "An Imagined GPU"):
        assert words in text


@at_one_width
def test_printing_opens_everything(report):
    report.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert len(open_folds(report)) == 3
    report.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert open_folds(report) == []
