import base64
import io
import re
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from tests.report.drawn import bars
from twoscale.report.page import (
    ChartTable,
    PageTable,
    Picture,
    Section,
    TableCell,
    Tile,
    page_text,
)


@pytest.fixture
def figure():
    return bars("error", {"local": 1.0, "two-scale": 0.1})


def test_a_page_holds_its_pictures_and_escapes_its_text(figure):
    picture = Picture("bars", "Bars", "What to see", figure)
    assert picture.png[:4] == b"\x89PNG"
    assert picture.png is picture.png
    table = PageTable(["method", "MRE %"], [["<local>", "1.0"]], note="a note")
    text = page_text(
        title="Title",
        summary=["Summary"],
        sections=[Section("", tables=[table], pictures=[picture])],
        footer="Footer",
    )
    assert f'<img src="{picture.source}"' in text
    assert "&lt;local&gt;" in text
    for words in ("Title", "Summary", "What to see", "a note", "Footer"):
        assert words in text
    assert not re.search("https?:", text), "letters of a picture's bytes may spell http"
    assert "<nav" not in text


def test_a_vector_picture_is_shown_as_svg_and_written_as_both(figure, tmp_path):
    picture = Picture("bars", "Bars", "What to see", figure, vector=True)
    assert picture.source.startswith("data:image/svg+xml,")
    picture.write(tmp_path, kinds=("png", "svg"))
    assert (tmp_path / "bars.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "bars.png").read_bytes() == picture.png


def test_the_page_shows_the_pixels_of_the_png(figure):
    picture = Picture("bars", "Bars", "What to see", figure)
    kind, _, content = picture.source.partition(";base64,")
    assert kind == "data:image/webp"
    shown, written = (
        np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        for data in (base64.b64decode(content), picture.png)
    )
    assert shown.shape == written.shape
    assert np.abs(shown.astype(float) - written).mean() < 2  # of 255


def test_a_drawing_survives_in_its_address(figure):
    """Nothing ends the attribute or the address early, and every shape is there."""
    picture = Picture("bars", "Bars", "What to see", figure, vector=True)
    _, _, address = picture.source.partition(",")
    assert not set('"#&\n') & set(address)
    shown, written = (
        [(one.tag, one.get("id"), " ".join(one.get("d", "").split())) for one in root.iter()]
        for root in (ElementTree.fromstring(unquote(address)), ElementTree.fromstring(picture.svg))
    )
    assert shown == [one for one in written if "svg}" in one[0] and "metadata" not in one[0]]


def test_several_sections_get_contents_and_tiles():
    cell = TableCell("1.2", 1.2, paper="1.3", verdict="off", note="seed 0: 1.2")
    origin = ChartTable(["seed"], [["0"]], "here.json")
    rows = [[name, cell] for name in ("local", "overlap")]
    table = PageTable(["case", "MRE"], rows, "A table", origins=[origin, origin])
    text = page_text(
        title="Title",
        summary=["One.", "Two."],
        tiles=[Tile("94 %", "agree")],
        sections=[Section("First", tables=[table], anchor="first"), Section("Second")],
        footer="",
    )
    assert '<a href="#first">First</a>' in text
    assert "<strong>94 %</strong>" in text
    assert '<td title="seed 0: 1.2">1.2<small>paper 1.3 <i class="off"></i></small></td>' in text
    assert "differs from the paper" in text
    assert text.count('{"header":["seed"],"rows":[["0"]],"note":"here.json"}') == 1
    assert text.count('data-sheet="0"') == 2


@pytest.mark.parametrize(
    ("cell", "key"),
    [
        (TableCell("1,024.5 ± 3", 1024.5), ""),
        (TableCell("-2.9e-05", -2.9e-5), ""),
        (TableCell("(1.4 ± 0.1)e-02", 0.014), ' data-sort="0.014"'),
        (TableCell("~ +2.9", 2.9), ' data-sort="2.9"'),
        (TableCell("words"), ""),
    ],
)
def test_a_sort_key_is_stored_only_where_the_text_does_not_give_it(cell, key):
    table = PageTable(["case", "value"], [["local", cell]])
    text = page_text(title="T", summary=[], sections=[Section("", tables=[table])], footer="")
    assert f"<td{key}>{cell.text}" in text


def test_a_section_folds_only_if_asked():
    sections = [Section("First", "Why?", fold=True), Section("Second", "What?")]
    text = page_text(title="Title", summary=[], sections=sections, footer="")
    assert text.count('<details class="fold"><summary><h2>First</h2><p class="lead">Why?') == 1
    assert text.count('class="fold"') == 1
    assert 'id="unfold"' in text
    assert 'id="unfold"' not in page_text(
        title="Title", summary=[], sections=[Section("A"), Section("B")], footer=""
    )


def test_the_numbers_of_a_picture_are_on_the_page_and_beside_it(figure, tmp_path):
    numbers = ChartTable(["case", "error, %"], [["</script>", "1.0"]])
    picture = Picture("bars", "Bars", "What to see", figure, table=numbers)
    sections = [Section("", pictures=[picture])]
    text = page_text(title="Title", summary=[], sections=sections, footer="")
    assert "Numbers</button>" in text
    assert r'["\u003c/script\u003e","1.0"]' in text
    picture.write(tmp_path)
    assert (tmp_path / "bars.csv").read_text() == 'case,"error, %"\n</script>,1.0\n'


def test_the_first_picture_has_a_narrow_variant(figure):
    narrow = bars("error", {"local": 1.0})
    picture = Picture("bars", "Bars", "What to see", figure, vector=True, narrow=narrow)
    text = page_text(title="T", summary=[], sections=[], footer="", first=picture, best=["Best."])
    assert text.index("Best.") < text.index("<figure")
    assert " " not in picture.narrow_source
    assert f'srcset="{picture.narrow_source}"' in text
