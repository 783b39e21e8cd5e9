"""The report of a run in a real browser, at the width of a desk and of a phone."""

from __future__ import annotations

import pytest

from tests.report.test_browser import ARGUMENTS, BROWSER, ROOT, SIZES, playwright
from tests.report.test_run_page import record
from twoscale.report.run_page import run_page

pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs the browser chromium")


def test_a_run_is_shown_without_trouble(tmp_path):
    page = tmp_path / "report.html"
    page.write_text(run_page(record((2, 16, 16), "both")), encoding="utf-8")
    troubles: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        for width, height in SIZES.values():
            tab = browser.new_page(viewport={"width": width, "height": height})
            tab.on("pageerror", lambda error: troubles.append(str(error)))
            tab.on("console", lambda message: troubles.append(message.text))
            tab.on("request", lambda r: troubles.append(r.url) if r.url[:4] == "http" else None)
            tab.goto(page.as_uri())
            assert tab.evaluate(f"{ROOT}.scrollWidth") == width
            assert tab.locator("p.best").count() == 3
            assert tab.locator(".steps pre").count() >= 3
            tab.evaluate("document.querySelectorAll('img').forEach((i) => (i.loading = 'eager'))")
            tab.wait_for_function("[...document.images].every((i) => i.complete || !i.src)")
            wide = "(all) => all.map((i) => i.naturalWidth)"
            assert min(tab.locator("main img").evaluate_all(wide)) > 100
            tab.locator("#histogram .numbers").click()
            assert tab.locator("#sheet tbody tr").count() == 40
        browser.close()
    assert troubles == []
