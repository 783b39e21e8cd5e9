"""SVG made small: the same shapes and words."""

from collections import Counter
from xml.etree import ElementTree

from tests.report.drawn import bars
from twoscale.report.picture import compact_svg, save_figure


def elements(svg):
    """Return how often each kind of element occurs, and all words."""
    root = ElementTree.fromstring(svg)
    kinds = Counter(one.tag.rpartition("}")[2] for one in root.iter())
    words = sorted(
        one.text.strip()
        for one in root.iter()
        if one.tag.endswith(("text", "tspan")) and one.text and one.text.strip()
    )
    return {kind: kinds[kind] for kind in ("path", "use", "text", "clipPath")}, words


def test_shapes_and_words_stay_and_most_of_the_rest_goes(tmp_path):
    figure = bars("it's an error", {"local": 1.0, "two-scale": 0.1})
    save_figure(figure, tmp_path / "bars.svg", kind="svg")
    whole = (tmp_path / "bars.svg").read_bytes()
    small = compact_svg(whole)
    assert elements(small) == elements(whole)
    assert "it's an error" in elements(small)[1]
    assert len(small) < 0.6 * len(whole)
    assert b"<metadata" not in small
    assert compact_svg(whole) == small


def test_every_style_is_kept_or_defined_as_a_class(tmp_path):
    save_figure(bars("error", {"local": 1.0}), tmp_path / "bars.svg", kind="svg")
    root = ElementTree.fromstring(compact_svg((tmp_path / "bars.svg").read_bytes()))
    (sheet,) = [one.text for one in root.iter() if one.tag.endswith("}style")]
    used = {one.get("class") for one in root.iter() if one.get("class")}
    assert used
    assert all(f".{name}{{" in sheet for name in used)
