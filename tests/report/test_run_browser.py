"""The report of a run in a real browser, at the width of a desk and of a phone."""

from __future__ import annotations

import pytest

from tests.browser import SIZES, open_page
from tests.report.test_run_page import record
from twoscale.report.run_page import run_page


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    page = tmp_path_factory.mktemp("run") / "report.html"
    page.write_text(run_page(record((2, 16, 16), "both")), encoding="utf-8")
    return page


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_a_run_is_shown_without_trouble(browser, path, size):
    with open_page(browser, path, size) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") == size[0]
        assert tab.locator("p.best").count() == 3
        assert tab.locator(".steps pre").count() >= 3
        tab.evaluate("document.querySelectorAll('img').forEach((i) => (i.loading = 'eager'))")
        tab.wait_for_function("[...document.images].every((i) => i.complete || !i.src)")
        widths = tab.locator("main img").evaluate_all("(all) => all.map((i) => i.naturalWidth)")
        assert min(widths) > 100
        tab.locator("#histogram .numbers").click()
        assert tab.locator("#sheet tbody tr").count() == 40
