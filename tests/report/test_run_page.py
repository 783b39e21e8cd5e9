"""The report of runs: what it says of any fields, what it escapes, what it survives."""

import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.browser import SIZES, open_page
from tests.surrogate.tiny import make
from twoscale.errors import TwoscaleWarning
from twoscale.fields.pairs import Pairs
from twoscale.fields.samples import as_samples, with_parameters
from twoscale.report import run_charts, run_page, runs_page
from twoscale.report.run_record import RunRecord
from twoscale.report.run_samples import measure_samples

HOSTILE = "<script>alert(1)</script> $x & \"y'"
PICTURES = {"median", "best", "worst", "histogram", "shares", "error-map", "spectra", "timings"}
PICTURES |= {"losses", "reliability", "errors-and-radii", "distances"}


def record(shape=(1, 16, 16), inputs="fields", *, names=None, method="local", name="mine"):
    """Return a run of tiny fields, as if it were in a folder of that name."""
    generator = torch.Generator().manual_seed(0)
    parameters = torch.rand(40, 2, generator=generator)
    modes = torch.rand(2, *shape, generator=generator).cumsum(-1)
    u = torch.einsum("np,pchw->nchw", parameters.square(), modes)
    x = None if inputs == "parameters" else u[:, :1, :, ::2] ** 2
    given = {} if inputs == "fields" else {"parameters": parameters}
    surrogate = make(method, patches=2).fit(x, u, output_names=names, validation=0.5, **given)
    seen = None if x is None else as_samples(x, "input")
    seen = with_parameters(seen, parameters) if given else seen
    config = {
        "hash": "0123",
        "training_samples": 36,
        "dataset": {"path": "data/mine.zarr", "identity": "abcd", "samples": 40},
    }
    numbers = list(range(40))
    return RunRecord(
        Path("runs") / name,
        surrogate,
        config,
        surrogate.evaluate(x, u, **given) | {"training_mean_relative_l2": 0.01},
        surrogate.history_,
        {"device": "cpu", "device_name": "x86_64", "threads": 1, "twoscale": "0"},
        None,
        numbers,
        measure_samples(surrogate, Pairs(seen, as_samples(u, "output")), numbers),
    )


def pictures(text):
    return set(re.findall(r'<figure id="([^"]*)"', text))


@pytest.fixture(scope="module")
def run():
    return record()


@pytest.fixture
def undrawn(run):
    """A run without samples, whose page has few pictures and is made quickly."""
    return replace(run, samples=None)


def check(text, *others):
    """Say that a page has all its pictures, described in words, and asks nobody for anything."""
    wanted = PICTURES | set(others)
    assert pictures(text) == wanted
    assert "Not drawn" not in text
    assert not re.search(r"https?:(?!(//|%2F%2F)www\.w3\.org)", text)
    assert len(text) < 1_000_000
    assert len(re.findall(r'alt="([^"]+)" data-name', text)) == len(wanted)


def test_a_field_has_all_its_pictures_and_the_numbers_of_its_errors(run, golden):
    text = run_page.run_page(run)
    check(text, "seams")
    golden("run", text)
    worst = f"{100 * np.max(run.samples.errors):.5g}"
    assert re.search(rf'\["{run.samples.worst.number}",\s*"{worst}"\]', text)


def test_a_line_has_all_its_pictures():
    check(run_page.run_page(record((1, 1, 32))), "seams")


@pytest.mark.usefixtures("without_drawing")
def test_parameters_alone_and_no_patches(golden):
    text = run_page.run_page(record((1, 64, 8), "parameters", method="global"))
    check(text)
    golden("run-of-parameters", text)


def test_channels_of_any_name_are_shown_and_escaped(golden):
    names = [HOSTILE, "v\n\N{SNOWMAN}"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = record((2, 16, 17), "both", names=names, name=HOSTILE.replace("/", ""))
        text = run_page.run_page(run)
    check(text, "seams", "channels")
    assert "<script>alert" not in text
    golden("run-of-channels", text)


def test_a_picture_that_fails_is_a_remark(undrawn, monkeypatch):
    def fail(*arguments):
        raise ValueError("no such luck")

    monkeypatch.setattr(run_charts, "_stacked", fail)
    text = run_page.run_page(undrawn)
    assert "Not drawn: Time by stage" in text
    assert "no such luck" in text
    assert pictures(text) == {"losses"}


def test_a_report_that_fails_leaves_the_run(tmp_path, monkeypatch):
    def fail(*arguments):
        raise MemoryError("full")

    monkeypatch.setattr(run_page, "fresh_run", fail)
    with pytest.warns(TwoscaleWarning, match="MemoryError: full"):
        run_page.illustrate_run(tmp_path, None)
    assert list(tmp_path.iterdir()) == []


def test_an_error_without_a_number_is_told(undrawn):
    metrics = undrawn.metrics | {"mean_relative_l2": None, "mre": None}
    text = run_page.run_page(replace(undrawn, metrics=metrics))
    assert "is infinite or undefined" in text


@pytest.mark.usefixtures("without_drawing")
def test_several_runs_are_compared_first_and_folded(run, undrawn, monkeypatch, golden):
    monkeypatch.setattr(runs_page, "_LARGEST", 500)
    other = replace(undrawn, path=Path("runs/b"), metrics=run.metrics | {"mean_relative_l2": 1e-3})
    text = runs_page.runs_page({run.name: run, other.name: other})
    assert text.count('<details class="fold"') == 2
    assert {"error-time", "single-errors", "run-1-median"} <= pictures(text)
    assert "run-1-spectra" not in pictures(text)
    golden("runs", text)


def test_names_tell_runs_apart():
    assert runs_page.distinct_names([Path("one/x"), Path("two/x")]) == ["one/x", "two/x"]
    assert runs_page.distinct_names([Path("x")]) == ["x"]


# In a browser


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES.keys())
def test_a_run_is_shown_without_trouble(browser, tmp_path, size):
    page = tmp_path / "report.html"
    page.write_text(run_page.run_page(record((2, 16, 16), "both")), encoding="utf-8")
    with open_page(browser, page, size) as tab:
        assert tab.evaluate("document.documentElement.scrollWidth") == size[0]
        assert tab.locator("p.best").count() == 3
        assert tab.locator(".steps pre").count() >= 3
        tab.evaluate("document.querySelectorAll('img').forEach((i) => (i.loading = 'eager'))")
        tab.wait_for_function("[...document.images].every((i) => i.complete || !i.src)")
        widths = tab.locator("main img").evaluate_all("(all) => all.map((i) => i.naturalWidth)")
        assert min(widths) > 100
        tab.locator("#histogram .numbers").click()
        assert tab.locator("#sheet tbody tr").count() == 40
