"""The report in a real browser, at the width of a desk and of a phone."""

from __future__ import annotations

import pytest

from tests.browser import SIZES, open_page
from tests.report.test_study_page import write_studies
from twoscale.report.study_page import write_report


@pytest.fixture(scope="module")
def page_path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    return write_report(write_studies(folder, "mechanism", "svd-solver"))


@pytest.fixture(params=SIZES)
def page(request, browser, page_path):
    """The report, opened."""
    with open_page(browser, page_path, SIZES[request.param]) as tab:
        yield tab


def test_every_picture_is_loaded(page):
    pictures = page.locator("main img")
    assert pictures.count() == 18
    page.wait_for_function("[...document.images].every((one) => one.complete)")
    widths = pictures.evaluate_all("(all) => all.map((one) => one.naturalWidth)")
    assert min(widths) > 100
    wider = "(all) => all.filter((one) => one.width > one.closest('figure').clientWidth).length"
    assert pictures.evaluate_all(wider) == 0


def test_nothing_makes_the_page_scroll_sideways(page):
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth") == page.evaluate(f"{root}.clientWidth")
    page.locator("summary").filter(has_text="values of the paper").first.click()
    assert page.evaluate(f"{root}.scrollWidth") == page.evaluate(f"{root}.clientWidth")


def test_headings_sort_up_and_down(page):
    table = page.locator("#mechanism table.sortable").first
    heading = table.locator("thead th").nth(2)

    def column():
        cells = table.locator("tbody tr td:nth-child(3)")
        return cells.evaluate_all("(all) => all.map((one) => Number(one.dataset.sort))")

    start = column()
    assert len(start) == 5
    assert start != sorted(start)
    for direction, expected in (("ascending", sorted(start)), ("descending", sorted(start)[::-1])):
        heading.locator("button").click()
        assert column() == expected
        assert heading.get_attribute("aria-sort") == direction
    table.locator("thead th button").first.click()
    names = table.locator("tbody th").all_inner_texts()
    assert names == sorted(names)


def test_a_figure_enlarges_and_closes(page):
    viewer = page.locator("#viewer")
    assert not viewer.is_visible()
    page.locator("#mechanism .enlarge").first.click()
    assert viewer.is_visible()
    title = page.locator("#mechanism figure h3").first.inner_text()
    assert viewer.locator("strong").inner_text() == title
    large = viewer.locator("img").bounding_box()["width"]
    assert large > page.locator("#mechanism .enlarge img").first.bounding_box()["width"]
    page.keyboard.press("ArrowRight")
    assert viewer.locator("strong").inner_text() != title
    page.keyboard.press("Escape")
    assert not viewer.is_visible()


def test_a_row_tells_where_its_numbers_come_from(page):
    page.locator("#mechanism button.origin").first.click()
    origins = page.locator("#origins")
    assert origins.is_visible()
    text = origins.inner_text()
    for words in ("Plain L2L", "mechanism.json: poisson-128 local", "An Imagined GPU"):
        assert words in text
    origins.get_by_label("Close").click()
    assert not origins.is_visible()


def test_contents_lead_to_the_studies(page):
    contents = page.locator("nav details")
    if contents.get_attribute("open") is None:
        contents.locator("summary").click()
    contents.get_by_text("Randomised or full").click()
    page.wait_for_function(
        "Math.abs(document.getElementById('svd-solver').getBoundingClientRect().top) < 100"
    )
