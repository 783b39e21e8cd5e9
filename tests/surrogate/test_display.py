"""How surrogates, searches and metrics are shown."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from twoscale import Affine, GlobalPCA, Surrogate, TwoScale, fit_auto


@pytest.fixture(scope="module")
def pairs():
    x = np.random.default_rng(0).standard_normal((40, 2, 8, 8))
    return x, x[:, 0].cumsum(axis=2)


class Balanced(HTMLParser):
    """Raises if tags are not closed in the order in which they were opened."""

    def __init__(self, page):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.text += f" {data}"


def shown(thing):
    page = thing._repr_html_()
    assert len(page) < 10_000
    assert not re.search(r"https?:|<script|<img|#[0-9a-f]{3}", page), "self-contained, no colours"
    return " ".join(Balanced(page).text.split())


@pytest.mark.parametrize(
    ("surrogate", "text"),
    [
        (Surrogate(), "Surrogate('two-scale')"),
        (Surrogate("global", predictor="affine"), "Surrogate('global', predictor='affine')"),
        (Surrogate("local", epochs=5, seed=2), "Surrogate('local', epochs=5, seed=2)"),
        (Surrogate("refinement", base="overlap"), "Surrogate('refinement', base='overlap')"),
        (Surrogate(epochs=500), "Surrogate('two-scale')"),
        (
            Surrogate(inputs=GlobalPCA(3), predictor=Affine(), outputs=TwoScale()),
            "Surrogate(inputs=GlobalPCA(3), predictor=Affine(), outputs=TwoScale())",
        ),
    ],
)
def test_the_repr_is_a_call(surrogate, text):
    assert repr(surrogate) == text
    again = eval(text, {"Surrogate": Surrogate, "GlobalPCA": GlobalPCA} | globals())
    assert again.parts.describe() == surrogate.parts.describe()


def test_an_unfitted_one_in_a_notebook():
    text = shown(Surrogate("local", problem="poisson"))
    assert "method Plain L2L inputs PatchPCA(0.99) predictor MLP(" in text
    assert "problem poisson fit not fitted yet" in text


def test_a_fitted_one_in_a_notebook(pairs):
    surrogate = Surrogate("global", predictor="affine", code_size=5, device="cpu")
    surrogate.fit(*pairs, input_names=["<a>", "b"])
    before = shown(surrogate)
    assert "fields 2x8x8 fields (<a>, b) → 8x8 fields" in before
    assert "training 36 samples, in " in before
    assert re.search(r"codes \d+ → 5 numbers per field", before)
    assert "error" not in before
    metrics = surrogate.evaluate(*pairs)
    pooled, mean = metrics["pooled_error"], metrics["mean_relative_l2"]
    assert f"pooled_error {100 * pooled:.3g} %" in shown(metrics)
    assert f"mean_relative_l2 {100 * mean:.3g} %" in shown(metrics)
    assert f"test error {100 * mean:.3g} %" in shown(surrogate)


def test_a_channel_without_an_error_in_a_notebook(pairs):
    x, u = pairs
    outputs = np.stack([u, np.zeros_like(u)], 1)
    surrogate = Surrogate("global", predictor="affine", device="cpu").fit(x, outputs)
    assert "mre of 1 infinite or undefined" in shown(surrogate.evaluate(x, outputs))


@pytest.fixture(scope="module")
def found(pairs):
    return fit_auto(*pairs, budget=0.01, predictor="affine", device="cpu")


def test_a_search_in_a_line(found):
    words = r"Found\(Surrogate\('two-scale', .*\), mean validation error .* %, 1 tried in .* s\)"
    assert re.fullmatch(words, repr(found))


def test_a_search_in_a_notebook(found):
    text = shown(found)
    assert "* two-scale affine" in text
    assert found.explanation[0] in text
    assert "validation error" in shown(found.surrogate)


def test_print_shows_what_a_fit_has_found(pairs):
    surrogate = Surrogate("global", predictor="affine")
    assert str(surrogate).startswith("Surrogate('global', predictor='affine')\n  method")
    assert "not fitted yet" in str(surrogate)
    shown = str(surrogate.fit(*pairs))
    assert "2x8x8 fields → 8x8 fields" in shown
    assert "numbers per field" in shown
