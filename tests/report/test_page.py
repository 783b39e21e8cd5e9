import base64

from twoscale.report import figures
from twoscale.report.page import Picture, Table, write_page


def test_a_page_holds_its_pictures_and_escapes_its_text(tmp_path):
    figure = figures.bars({"error": {"local": 1.0, "two-scale": 0.1}})
    picture = Picture("bars", "Bars", "What to see", figure)
    assert picture.png[:4] == b"\x89PNG"
    assert picture.png is picture.png
    path = tmp_path / "page.html"
    table = Table(["method", "MRE %"], [["<local>", "1.0"]], "a note")
    write_page(
        path, title="Title", summary="Summary", table=table, pictures=[picture], footer="Footer"
    )
    text = path.read_text(encoding="utf-8")
    assert base64.b64encode(picture.png).decode() in text
    assert "&lt;local&gt;" in text
    for words in ("Title", "Summary", "What to see", "a note", "Footer"):
        assert words in text
    assert "http" not in text
