"""The documentation as a site: it builds without a warning and needs no network."""

from __future__ import annotations

import re

import pytest

from tests.browser import SIZES, open_page
from tests.pages import ROOT

OUTSIDE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"(?:https?:)?//[^\"]*")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built as `make docs` does: any warning is an error."""
    pytest.importorskip("material", reason="needs the extra docs: pip install '.[docs]'")
    pytest.importorskip("mkdocstrings", reason="needs the extra docs: pip install '.[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return folder


def test_every_page_is_built(site):
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    built = {str(page.relative_to(site).with_suffix(".md")) for page in site.rglob("*.html")}
    assert pages <= built


def test_nothing_is_fetched_from_other_hosts(site):
    for page in site.rglob("*.html"):
        assert OUTSIDE.findall(page.read_text(encoding="utf-8")) == []
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\([\"']?https?:", sheet.read_text(encoding="utf-8"))


@pytest.mark.parametrize("size", SIZES)
def test_the_start_page_is_readable(site, browser, size):
    with open_page(browser, site / "index.html", SIZES[size]) as page:
        page.wait_for_function("[...document.images].every((one) => one.complete)")
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth") == page.evaluate(f"{root}.clientWidth")
        assert page.locator("article img").first.evaluate("(one) => one.naturalWidth") > 300
        assert len(page.screenshot()) > 20_000


def test_the_search_works_on_files(site, browser):
    with open_page(browser, site / "index.html", SIZES["desk"]) as page:
        page.locator("input.md-search__input").click()
        page.keyboard.type("oracle")
        page.wait_for_selector(".md-search-result__item")
        assert page.locator(".md-search-result__item").count() > 2
