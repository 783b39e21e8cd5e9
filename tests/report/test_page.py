"""Pages and their pictures: all is inside, escaped and small; a chart is told if it fails."""

import base64
import io
import re
from collections import Counter
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from twoscale.errors import TwoscaleError
from twoscale.report.axes import chart_style
from twoscale.report.display import ABSENT
from twoscale.report.page import (
    ChartTable,
    PageTable,
    Picture,
    Section,
    TableCell,
    Tile,
    page_text,
)
from twoscale.report.picture import Drawing, chart, save_figure


@chart_style()
def bars(**heights):
    """Return a small figure with one bar per method."""
    figure = Figure(figsize=(4, 3), layout="constrained")
    axis = figure.subplots()
    axis.bar_label(axis.bar(list(heights), list(heights.values())), fmt="%.2g")
    axis.set(title="it's an error", yscale="log")
    return figure


@pytest.fixture(scope="module")
def vector():
    return Picture("bars", "Bars", "What to see", bars(local=1.0, ours=0.1), vector=True)


@pytest.fixture(scope="module")
def pixels():
    return Picture("bars", "Bars", "What to see", bars(local=1.0, ours=0.1))


def text_of(*sections, **options):
    return page_text(title="Title", sections=sections, footer="", **{"summary": []} | options)


def test_a_page_holds_its_pictures_and_escapes_its_text(pixels):
    table = PageTable(["method", "MRE %"], [["<local>", "1.0"]], note="a note")
    text = text_of(Section("", tables=[table], pictures=[pixels]), summary=["Summary"])
    assert f'<img src="{pixels.source}"' in text
    for words in ("Title", "Summary", "What to see", "a note", "&lt;local&gt;"):
        assert words in text
    assert not re.search("https?:", text), "letters of a picture's bytes may spell http"
    assert "<nav" not in text


def test_several_sections_get_contents_tiles_and_origins():
    cell = TableCell("1.2", 1.2, paper="1.3", verdict="off", note="seed 0: 1.2")
    origin = ChartTable(["seed"], [[0]], "here.json")
    rows = [[name, cell] for name in ("local", "overlap")]
    table = PageTable(["case", "MRE"], rows, "A table", origins=[origin, origin])
    sections = [Section("First", tables=[table], anchor="first"), Section("Second")]
    text = text_of(*sections, tiles=[Tile("94 %", "agree")])
    assert '<a href="#first">First</a>' in text
    assert "<strong>94 %</strong>" in text
    assert '<td title="seed 0: 1.2">1.2<small>paper 1.3 <i class="off"></i></small></td>' in text
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
    text = text_of(Section("", tables=[PageTable(["case", "value"], [["local", cell]])]))
    assert f"<td{key}>{cell.text}" in text


def test_a_section_folds_only_if_asked():
    text = text_of(Section("First", "Why?", fold=True), Section("Second", "What?"))
    assert text.count('<details class="fold"><summary><h2>First</h2><p class="lead">Why?') == 1
    assert text.count('class="fold"') == text.count('id="unfold"') == 1
    assert 'id="unfold"' not in text_of(Section("A"), Section("B"))


def test_a_table_is_on_the_page_and_beside_its_picture(tmp_path):
    rows = [["</script>", 0.0123456], ["", None], ["", np.nan], ["", np.int64(12)], ["", True]]
    table = ChartTable(["case", "error, %"], rows)
    picture = Picture("bars", "Bars", "", bars(local=1.0), table=table)
    text = text_of(Section("", pictures=[picture]))
    assert "Numbers</button>" in text
    assert r'["\u003c/script\u003e","0.012346"]' in text
    picture.write(tmp_path)
    lines = (tmp_path / "bars.csv").read_text().splitlines()
    assert lines[:2] == ['case,"error, %"', "</script>,0.012346"]
    assert [line[1:] for line in lines[2:]] == [ABSENT, ABSENT, "12", "yes"]
    assert ChartTable.of({"a": [1, 2], "b": [3.0]})["b"] == pytest.approx([3, np.nan], nan_ok=True)


def test_the_first_picture_has_a_narrow_variant():
    picture = Picture("bars", "Bars", "", bars(local=1.0), vector=True, narrow=bars(local=2.0))
    text = text_of(first=picture, best=["Best."])
    assert text.index("Best.") < text.index("<figure")
    assert " " not in picture.narrow_source
    assert f'srcset="{picture.narrow_source}"' in text


def test_a_chart_is_planned_by_a_function_and_told_if_it_fails():
    @chart("Some bars")
    def some_bars(height):
        """One bar. It is
        high.
        """
        if height < 0:
            raise ValueError("below zero")
        return Drawing(bars(local=height), more=f"It is {height} high.")

    good, bad = Section("", charts=[some_bars(2)]), Section("", charts=[some_bars(-1)])
    (picture,) = good.drawn("a-").pictures
    assert (picture.name, picture.title) == ("a-some-bars", "Some bars")
    assert picture.caption == "One bar. It is high. It is 2 high."
    assert "below zero" in bad.drawn().remarks[0]
    with pytest.raises(TwoscaleError, match="below zero"):
        some_bars(-1).picture()
    assert good.drawn(room=10, elsewhere="elsewhere").pictures == []


# Formats


def test_a_picture_is_written_in_both_formats(vector, tmp_path):
    vector.write(tmp_path, kinds=("png", "svg"))
    assert (tmp_path / "bars.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "bars.png").read_bytes() == vector.png
    assert vector.png[:4] == b"\x89PNG"


def test_the_page_shows_the_pixels_of_the_png(pixels):
    kind, _, content = pixels.source.partition(";base64,")
    assert kind == "data:image/webp"
    shown, written = (
        np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
        for data in (base64.b64decode(content), pixels.png)
    )
    assert shown.shape == written.shape
    assert np.abs(shown.astype(float) - written).mean() < 2  # of 255


def elements(svg):
    """Return how often each kind of element occurs, and all words."""
    root = ElementTree.fromstring(svg)
    kinds = Counter(one.tag.rpartition("}")[2] for one in root.iter())
    texts = [one.text or "" for one in root.iter() if one.tag.endswith(("text", "tspan"))]
    words = sorted(text.strip() for text in texts if text.strip())
    return {kind: kinds[kind] for kind in ("path", "use", "text", "clipPath")}, words


def test_a_drawing_is_small_and_keeps_its_shapes_words_and_styles(vector, tmp_path):
    """Nothing ends its address early: neither a quote nor a line."""
    save_figure(bars(local=1.0, ours=0.1), tmp_path / "whole.svg", kind="svg")
    whole = (tmp_path / "whole.svg").read_bytes()
    address = vector.source.removeprefix("data:image/svg+xml,")
    assert not set('"#&\n') & set(address)
    assert elements(unquote(address)) == elements(vector.svg) == elements(whole)
    assert "it's an error" in elements(whole)[1]
    assert len(vector.svg) < 0.6 * len(whole)
    root = ElementTree.fromstring(vector.svg)
    (sheet,) = [one.text for one in root.iter() if one.tag.endswith("}style")]
    used = {one.get("class") for one in root.iter() if one.get("class")}
    assert used
    assert all(f".{name}{{" in sheet for name in used)
