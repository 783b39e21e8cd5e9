import base64

import pytest

from twoscale.report import figures
from twoscale.report.page import Cell, Picture, Row, Section, Table, Tile, write_page


@pytest.fixture
def figure():
    return figures.bars({"error": {"local": 1.0, "two-scale": 0.1}})


def test_a_page_holds_its_pictures_and_escapes_its_text(figure, tmp_path):
    picture = Picture("bars", "Bars", "What to see", figure)
    assert picture.png[:4] == b"\x89PNG"
    assert picture.png is picture.png
    path = tmp_path / "page.html"
    table = Table.of_text(["method", "MRE %"], [["<local>", "1.0"]], note="a note")
    write_page(
        path,
        title="Title",
        summary=["Summary"],
        sections=[Section("", tables=[table], pictures=[picture])],
        footer="Footer",
    )
    text = path.read_text(encoding="utf-8")
    assert base64.b64encode(picture.png).decode() in text
    assert "&lt;local&gt;" in text
    for words in ("Title", "Summary", "What to see", "a note", "Footer"):
        assert words in text
    assert "http" not in text
    assert "<nav" not in text


def test_a_vector_picture_is_shown_as_svg_and_written_as_both(figure, tmp_path):
    picture = Picture("bars", "Bars", "What to see", figure, vector=True)
    assert picture.source.startswith("data:image/svg+xml;base64,")
    picture.write(tmp_path, kinds=("png", "svg"))
    assert (tmp_path / "bars.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "bars.png").read_bytes() == picture.png


def test_several_sections_get_contents_and_tiles(tmp_path):
    path = tmp_path / "page.html"
    cell = Cell("1.2", 1.2, paper="1.3", verdict="off", note="seed 0: 1.2")
    origin = Table.of_text(["seed"], [["0"]], note="here.json")
    table = Table(["case", "MRE"], [Row([Cell("local"), cell], origin)], "A table")
    write_page(
        path,
        title="Title",
        summary=["One.", "Two."],
        tiles=[Tile("94 %", "agree")],
        sections=[Section("First", tables=[table], anchor="first"), Section("Second")],
        footer="",
    )
    text = path.read_text(encoding="utf-8")
    assert '<a href="#first">First</a>' in text
    assert "<strong>94 %</strong>" in text
    assert 'data-sort="1.2" title="seed 0: 1.2"' in text
    assert "differs from the paper" in text
    assert "<template>" in text
    assert "here.json" in text
